"""Machines in MuJoCo, which only the extra `test` installs: for tests and benchmarks only."""

import importlib.util
import sys

if importlib.util.find_spec('mujoco') is None:
    sys.exit('MuJoCo is missing: `make test` installs it, or pip install mujoco')
