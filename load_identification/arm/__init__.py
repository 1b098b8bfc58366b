"""Identify the arm itself: link parameters from joint torques or a base sensor; no ROS."""
