"""Listen to a running pipeline and call its services from other programs."""
