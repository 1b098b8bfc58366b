"""Plan experiments that identify an arm's parameters."""
