"""Parallel machines: platform motion and wrench seen through the actuators; no ROS."""
