"""The contract in code: names, parameters, batches, messages and files, without rclpy."""
