"""Joint paths, joint limits, clearance."""
