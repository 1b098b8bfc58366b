"""Published joint velocities: whether they are those of the positions."""
