"""A small motion about the present pose: the program and its demonstration."""
