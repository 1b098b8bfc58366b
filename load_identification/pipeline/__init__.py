"""Wire the stages once: batches in, estimates out, without rclpy."""
