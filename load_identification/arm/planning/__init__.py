"""Experiments that show an arm's parameters."""
