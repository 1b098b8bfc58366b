"""What is known of payload, offset and errors, as one value."""
