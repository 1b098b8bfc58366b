"""Find why a payload does not fit the data: test causes, and name them with numbers."""
