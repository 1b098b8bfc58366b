"""Formulate the arm's equations of motion, linear in its parameters."""
