"""Convert streams to samples: synchronisation and differentiation."""
