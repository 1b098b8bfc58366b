"""Machines in MuJoCo, which only the extra `test` installs: for tests and benchmarks only."""
