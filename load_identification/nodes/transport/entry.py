"""Start the nodes' executables: signals and help first, then the slow imports."""

from __future__ import annotations

import functools
import importlib
import os
import signal
import sys

from load_identification import __version__
from load_identification.interface.program import say_without_ros, without_ros_arguments

END_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def _run(program: str, kind: str) -> int:
    """Run the named callable of a program's module in nodes/; return the exit status.

    Importing rclpy and Pinocchio takes half a second and more. Nothing needs cleaning up yet, so
    a signal ends the process at once. `runtime.run` replaces these handlers by its own.
    """
    for number in END_SIGNALS:
        signal.signal(number, lambda *_: os._exit(0))
    own = without_ros_arguments(sys.argv[1:])
    if '--version' in own:
        print(f'load_identification {__version__}')
        return 0
    if '--help' in own or '-h' in own:
        # It imports NumPy; the signal handlers above must be in place before.
        from load_identification.interface.node_table import describe

        print(describe(program))
        return 0
    # A launch file passes an empty word for an argument that is not given.
    if unknown := ' '.join(filter(None, own)):
        print(
            f'{program}: {unknown!r}: parameters and remappings follow --ros-args, as in '
            f'{program} --ros-args -p gravity:="[0.0, 0.0, 9.81]"; other arguments are --help and '
            '--version',
            file=sys.stderr,
        )
        return 2
    try:
        from load_identification.nodes.transport import runtime
    except ModuleNotFoundError as error:
        say_without_ros(program, error)
        return 2

    module = importlib.import_module(f'load_identification.nodes.{program.removesuffix("_node")}')
    return runtime.run(program, getattr(module, kind))


load_identification = functools.partial(_run, 'load_identification', 'Pipeline')
fusion_node = functools.partial(_run, 'fusion_node', 'FusionNode')
filter_node = functools.partial(_run, 'filter_node', 'FilterNode')
estimator_node = functools.partial(_run, 'estimator_node', 'EstimatorNode')
compensation_node = functools.partial(_run, 'compensation_node', 'StandaloneCompensationNode')
hexapod_node = functools.partial(_run, 'hexapod_node', 'HexapodNode')
arm_estimator_node = functools.partial(_run, 'arm_estimator_node', 'ArmNode')

if __name__ == '__main__':
    from load_identification.interface.node_table import PROGRAMS

    if sys.argv[1:2] and sys.argv[1] in PROGRAMS:
        raise SystemExit(globals()[sys.argv.pop(1)]())
    print(f'name one of {", ".join(PROGRAMS)}', file=sys.stderr)
    raise SystemExit(2)
