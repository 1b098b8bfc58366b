"""Joint paths, their limits, collision."""
