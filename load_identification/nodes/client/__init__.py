"""What programs beside the pipeline hear of it and ask of it."""
