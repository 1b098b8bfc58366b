"""Recordings to batches."""
