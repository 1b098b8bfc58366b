"""At rest: offset calibration, mass check, recognition, catalogue."""
