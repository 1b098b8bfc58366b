"""What keeps state between samples: the recursive estimator and its statistics."""
