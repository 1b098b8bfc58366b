"""The payload handed to the robot's driver: the services, and the client of the driver's own."""
