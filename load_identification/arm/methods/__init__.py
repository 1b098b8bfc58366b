"""Provide five methods for the parameters of an arm."""
