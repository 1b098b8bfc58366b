"""Simulated runs in which a load changes, a sensor is re-zeroed, or something pushes."""
