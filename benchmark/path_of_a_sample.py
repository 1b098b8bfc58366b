"""How much code a sample goes through: modules and functions of the package, counted.

    python benchmark/path_of_a_sample.py [--names]

The pipeline of one process gets the demonstration's arm over topics, both at 1 kHz. Once the mass
is identified, one second of samples and the estimates of that second are watched with
`sys.setprofile`: whatever function of the package is entered counts once. The limits are those of
the stages, without the nodes that read and publish.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from pathlib import Path
from types import FrameType

import rclpy
from rclpy.node import Node

import load_identification
from load_identification.commands.demo_arm import Simulation, simulate_arm
from load_identification.nodes.load_identification import Pipeline
from load_identification.nodes.transport.publishers import InputPublisher

ROOT = Path(load_identification.__file__).parent

WARM_UP, WATCHED = 12.0, 1.0
"""Seconds of samples before, and watched."""

BATCH = 0.05
"""Samples published at once [s]."""

MOST_MODULES, MOST_FUNCTIONS = 20, 110


class Entered:
    """Functions of the package that have been entered, by module."""

    def __init__(self) -> None:
        self.functions: defaultdict[str, set[str]] = defaultdict(set)

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """Note a call, as `sys.setprofile` wants it."""
        code = frame.f_code
        # Comprehensions and generator expressions are part of where they stand.
        named = event == 'call' and not code.co_name.startswith('<')
        if named and code.co_filename.startswith(str(ROOT)):
            module = str(Path(code.co_filename).relative_to(ROOT))
            self.functions[module].add(f'{code.co_name}:{code.co_firstlineno}')


def play(
    pipeline: Pipeline,
    inputs: InputPublisher,
    simulation: Simulation,
    span: tuple[float, float],
    entered: Entered | None = None,
) -> None:
    """Publish the samples between two times [s], and tick whenever an estimate is due."""
    recording = simulation.recording
    seconds = recording.stamps * 1e-9
    due, last = span
    while due < last:
        new = (seconds >= due) & (seconds < due + BATCH)
        stamps = recording.stamps[new] + 1_000_000_000
        inputs.publish(stamps, recording.wrench[new], position=recording.position[new])
        due += BATCH
        # Estimates are due by the clock.
        time.sleep(BATCH)
        sys.setprofile(entered)
        pipeline.tick()
        sys.setprofile(None)


def main() -> int:
    """Print the counts; return 1 where there is more than there should be."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').splitlines()[0])
    parser.add_argument('--names', action='store_true', help='print every function')
    arguments = parser.parse_args()
    simulation, entered = simulate_arm(0), Entered()
    rclpy.init()
    try:
        node, pipeline = Node('input'), Pipeline()
        inputs = InputPublisher(node, simulation.recording.names, simulation.recording.frame)
        while inputs.unheard:
            time.sleep(0.05)
        inputs.describe(simulation.description)
        for served in pipeline.nodes:
            rclpy.spin_once(served, timeout_sec=1.0)
        play(pipeline, inputs, simulation, (0.0, WARM_UP))
        play(pipeline, inputs, simulation, (WARM_UP, WARM_UP + WATCHED), entered)
        for each in (node, *pipeline.nodes):
            each.destroy_node()
    finally:
        rclpy.try_shutdown()
    for module, functions in sorted(entered.functions.items()):
        print(f'{module:45} {len(functions):3}', *(sorted(functions) if arguments.names else ()))
    nodes, stages = (
        [len(f) for m, f in entered.functions.items() if m.startswith('nodes/') == inside]
        for inside in (True, False)
    )
    print(f'nodes:  {len(nodes)} modules, {sum(nodes)} functions')
    print(
        f'stages: {len(stages)} modules, at most {MOST_MODULES}; '
        f'{sum(stages)} functions, at most {MOST_FUNCTIONS}'
    )
    return int(len(stages) > MOST_MODULES or sum(stages) > MOST_FUNCTIONS)


if __name__ == '__main__':
    raise SystemExit(main())
