"""Where the executables of the nodes begin: signals, help, then what takes long."""

from __future__ import annotations

import importlib
import os
import signal
import sys

from load_identification import __version__
from load_identification.interface.program import without_ros_arguments

END_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def load_identification() -> int:
    """Run fusion, filter, estimator and compensation in one process."""
    return _run('load_identification')


def fusion_node() -> int:
    """Run the fusion node."""
    return _run('fusion_node')


def filter_node() -> int:
    """Run the filter node."""
    return _run('filter_node')


def estimator_node() -> int:
    """Run the estimator node."""
    return _run('estimator_node')


def compensation_node() -> int:
    """Run the compensation node."""
    return _run('compensation_node')


def hexapod_node() -> int:
    """Run the hexapod node."""
    return _run('hexapod_node')


def arm_estimator_node() -> int:
    """Run the node of an arm that weighs with its joints, and the estimator."""
    return _run('arm_estimator_node')


def _run(program: str) -> int:
    """Run the main function of a program's module beside this one; return the exit status.

    Importing rclpy and Pinocchio takes half a second and more. There is nothing to clean up yet,
    so a signal ends the process at once; `runtime.run` puts its own handlers in the place of
    these.
    """
    for number in END_SIGNALS:
        signal.signal(number, lambda *_: os._exit(0))
    own = without_ros_arguments(sys.argv[1:])
    if '--version' in own:
        print(f'load_identification {__version__}')
        return 0
    if '--help' in own or '-h' in own:
        # NumPy comes with it, and a signal is to find the handlers above.
        from load_identification.interface.node_table import describe

        print(describe(program))
        return 0
    module = program.removesuffix('_node')
    status: int = importlib.import_module(f'load_identification.nodes.{module}').main()
    return status
