"""Simulated arms, sensors, machines and faults, for demos, tests and benchmarks."""
