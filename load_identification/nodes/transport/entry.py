"""Where the executables of the nodes begin: signals, help, then what takes long."""

from __future__ import annotations

import functools
import importlib
import os
import signal
import sys

from load_identification import __version__
from load_identification.interface.program import without_ros_arguments

END_SIGNALS = (signal.SIGINT, signal.SIGTERM)


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


load_identification = functools.partial(_run, 'load_identification')
fusion_node = functools.partial(_run, 'fusion_node')
filter_node = functools.partial(_run, 'filter_node')
estimator_node = functools.partial(_run, 'estimator_node')
compensation_node = functools.partial(_run, 'compensation_node')
hexapod_node = functools.partial(_run, 'hexapod_node')
arm_estimator_node = functools.partial(_run, 'arm_estimator_node')
