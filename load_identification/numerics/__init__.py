"""Least squares in square-root form, noise of rows, the nearest possible body."""
