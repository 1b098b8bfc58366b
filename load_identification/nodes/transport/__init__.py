"""Convert samples between rclpy and arrays."""
