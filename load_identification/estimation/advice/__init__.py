"""Advise motions that would help, and predict what they would tell."""
