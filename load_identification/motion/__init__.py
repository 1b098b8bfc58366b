"""Joint paths, their limits, clearance."""
