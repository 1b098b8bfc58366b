"""Live identification of a robot arm's payload from a wrist force/torque sensor."""

import os

# The matrices here have a dozen columns: more threads than one only spin and steal the robot's
# cores. It has to be said before NumPy is first imported.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

__version__ = '0.1.0'
"""As in package.xml and setup.py."""
