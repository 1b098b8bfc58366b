"""The arm itself: every link's parameters from joint torques or a base sensor; no ROS."""
