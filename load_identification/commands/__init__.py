"""Command-line programs: arguments, calls, printed output."""
