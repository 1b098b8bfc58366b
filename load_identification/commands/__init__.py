"""The programs: arguments, calls, printing."""
