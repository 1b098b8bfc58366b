"""What a person starts: the demo and the offline identification."""
