"""Physics without state: inertial parameters, the regressor, the robot."""
