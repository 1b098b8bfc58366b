"""Stateless physics: inertial parameters, the regressor, the robot."""
