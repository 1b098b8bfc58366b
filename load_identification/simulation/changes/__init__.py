"""Simulated runs in which a load changes, a sensor is re-zeroed, or an external force pushes."""
