"""Samples between rclpy and arrays."""
