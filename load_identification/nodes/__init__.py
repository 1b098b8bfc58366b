"""The only place that knows rclpy and messages."""
