"""Five ways to the parameters of an arm."""
