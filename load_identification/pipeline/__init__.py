"""The stages wired once: batches in, estimates out; no rclpy."""
