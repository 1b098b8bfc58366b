"""Estimate the payload in motion: the recursive estimator and its statistics."""
