"""Parallel machines: motion and wrench of the platform from its actuators, without ROS."""
