"""Least squares in square-root form, noise levels of rows, nearest physically consistent body."""
