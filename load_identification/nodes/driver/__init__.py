"""Pass the payload to the robot's driver: services, and the client of the driver's own service."""
