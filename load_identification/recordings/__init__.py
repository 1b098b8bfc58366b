"""Convert recordings to batches."""
