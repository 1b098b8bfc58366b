"""Compute a payload's wrench from the efforts of the joints."""
