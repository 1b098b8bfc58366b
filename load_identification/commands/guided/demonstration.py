"""Run `load_demo --guided`: `identify_payload` moves a simulated arm."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial

import numpy as np
from rclpy.node import Node
from rich.console import Console

from load_identification.commands.demo_arm import SENSOR_FRAME, Truth
from load_identification.commands.demo_pipeline import NodeProcess, connected
from load_identification.commands.demonstration import PERIOD
from load_identification.commands.guided.arm import GuidedArm
from load_identification.commands.load_demo_view import judge, result_table, verdict
from load_identification.interface.program import TRAJECTORY
from load_identification.nodes.client.monitor import Monitor
from load_identification.simulation.robots import puma_description
from load_identification.simulation.sensors import SensorModel, aluminium_block

POSE = np.deg2rad([0.0, -45.0, 135.0, 0.0, -60.0, 0.0])
"""Pose with the elbow up and the hand in front of the arm [rad]."""

PROGRAM = ('identify_payload', '--execute', '--yes', '--need', 'mass', 'com', 'inertia')

BACK = np.deg2rad(0.1)
"""Largest deviation of any joint for the arm to be back in its pose [rad]."""


def demonstrate(node: Node, seed: int, own_pipeline: bool, console: Console) -> bool:
    """Run `identify_payload` beside a simulated arm; return whether its result is right.

    The arguments are those of `commands.demonstration.demonstrate`, as is what is raised.
    """
    monitor, payload = Monitor(node), aluminium_block()
    console.print(
        f'A simulated PUMA-like arm holds an aluminium block of {payload.mass:.3f} kg. '
        f'ROS domain {node.context.get_domain_id()}, noise of seed {seed}.',
        soft_wrap=True,
    )
    start = NodeProcess if own_pipeline else None
    where = SENSOR_FRAME, POSE, payload, TRAJECTORY
    machine = partial(GuidedArm, node, puma_description(), *where, seed=seed)
    with connected(node, console, monitor, machine, start) as (arm, _):
        arm.start()
        console.print(f'It is moved by:  {" ".join(PROGRAM)}\n', style='bold', soft_wrap=True)
        status = _moved(node, arm, monitor)
    if status:
        console.print(f'\n{PROGRAM[0]} has ended with status {status}.', style='bold red')
        return False
    truth = Truth(payload, np.array(SensorModel().offset))
    judgement = judge(truth, monitor.estimate)
    off = float(np.max(np.abs(arm.position - POSE)))
    back = off < BACK
    console.print('\nBeside the truth, which only the simulated arm knows:', soft_wrap=True)
    console.print(result_table(truth, monitor.estimate))
    console.print(verdict(judgement), style='bold green' if judgement.holds else 'bold red')
    console.print(
        f'The arm is {"back in" if back else "NOT back in"} its pose, to {np.rad2deg(off):.2f}°.',
        style='bold green' if back else 'bold red',
    )
    return judgement.holds and back


def _moved(node: Node, arm: GuidedArm, monitor: Monitor) -> int:
    """Run the program beside the arm; return its exit status."""
    domain = {'ROS_DOMAIN_ID': str(node.context.get_domain_id())}
    module = 'load_identification.commands.guided.identify_payload'
    program = subprocess.Popen(
        [sys.executable, '-m', module, *PROGRAM[1:]], env=os.environ | domain
    )
    interrupted = False
    while (status := program.poll()) is None:
        try:
            arm.publish_due()
            monitor.update(0.0)
            time.sleep(PERIOD)
        except KeyboardInterrupt:
            # Ctrl-C also reaches the program, which stops the arm: keep the arm alive until then.
            interrupted = True
    if interrupted:
        raise KeyboardInterrupt
    return status
