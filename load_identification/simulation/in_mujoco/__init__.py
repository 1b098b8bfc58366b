"""Machines in MuJoCo, which only the extra `test` brings: for tests and benchmarks alone."""
