"""Where the executables of the nodes begin: with their signals, then with what takes long."""

from __future__ import annotations

import importlib
import os
import signal

END_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def load_identification() -> int:
    """Run fusion, filter and estimator in one process."""
    return _run('load_identification')


def fusion_node() -> int:
    """Run the fusion node."""
    return _run('fusion')


def filter_node() -> int:
    """Run the filter node."""
    return _run('filter')


def estimator_node() -> int:
    """Run the estimator node."""
    return _run('estimator')


def hexapod_node() -> int:
    """Run the hexapod node."""
    return _run('hexapod')


def arm_estimator_node() -> int:
    """Run the node of an arm that weighs with its joints, and the estimator."""
    return _run('arm_estimator')


def _run(module: str) -> int:
    """Run the main function of a module beside this one; return the exit status.

    Importing rclpy and Pinocchio takes half a second and more. There is nothing to clean up yet,
    so a signal ends the process at once; `runtime.run` puts its own handlers in the place of
    these.
    """
    for number in END_SIGNALS:
        signal.signal(number, lambda *_: os._exit(0))
    status: int = importlib.import_module(f'load_identification.nodes.{module}').main()
    return status
