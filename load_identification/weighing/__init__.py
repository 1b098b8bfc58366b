"""Identify at rest: offset calibration, mass check, recognition, catalogue."""
