"""Run the pipeline as ROS nodes; only this room uses rclpy and messages."""
