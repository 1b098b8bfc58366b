"""Constants of nature, without NumPy: `--help` is there before it is loaded."""

STANDARD_GRAVITY = 9.80665
"""Standard acceleration of gravity [m/s²]."""

GRAVITY_VECTOR = (0.0, 0.0, -STANDARD_GRAVITY)
"""Gravity in a root frame that stands upright [m/s²]."""
