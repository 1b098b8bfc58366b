"""Hold the joint posterior of payload, offset and errors as one immutable value."""
