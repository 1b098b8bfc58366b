"""What does not fit what was known: found, and named."""
