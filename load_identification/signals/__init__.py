"""Streams to samples: synchronisation and differentiation."""
