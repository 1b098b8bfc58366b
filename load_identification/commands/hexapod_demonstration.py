"""Run `hexapod_demo`: identify the load of a simulated hexapod live over ROS topics.

The platform moves alone, becomes the tool, and moves again with a load on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rich.console import Console

from load_identification.commands.demo_pipeline import DemoError, NodeProcess, connected
from load_identification.errors import ParameterError
from load_identification.interface.batches import EffortBatch
from load_identification.interface.messages import NS
from load_identification.interface.names import INTERVAL, PARAMETER_KEYS, STAGES
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.nodes.client.monitor import Monitor
from load_identification.nodes.client.planner import LoadIdentification
from load_identification.nodes.transport.publishers import JOINT_STATES, JointStatePublisher
from load_identification.nodes.transport.subscriptions import STREAM_QOS, DrainedSubscription
from load_identification.parallel.excitation import plan_sines
from load_identification.parallel.geometry_file import read_geometry
from load_identification.parallel.mechanism import Mechanism
from load_identification.report.tables import PARAMETERS, interval_table, verdict_of
from load_identification.simulation.hexapod import (
    AMPLITUDE,
    FREQUENCY,
    LOAD,
    PLATFORM,
    REST,
    leg_states,
)

DEADLINE = 60.0
"""Longest time for a service to answer [s]."""

PERIOD = 0.005
"""Interval between checks for due samples [s]."""

REFRESH, LINES = 0.25, 5.0
"""Refresh interval on a terminal, and interval between lines elsewhere [s]."""

SURE = 4.0
"""Largest error of a good estimate [std]: ten 95 % intervals seldom all contain the truth."""

MASS_GOAL = 0.01
"""Largest relative error of a good mass."""


class Machine:
    """The simulated machine on /joint_states, and the messages of the nodes.

    It runs faster than the stamps by a factor `speed`.
    """

    def __init__(self, node: Node, monitor: Monitor, speed: float) -> None:
        self.two_step: dict[str, float] = {}
        """Values and deviations of the recursive two steps, as reported by `hexapod_node`."""
        self._monitor, self._speed = monitor, speed
        self._client = LoadIdentification(node, node.get_namespace(), DEADLINE)
        self._publisher = JointStatePublisher(node, JOINT_STATES)
        self._diagnostics = DrainedSubscription(node, DiagnosticArray, '/diagnostics', STREAM_QOS)
        self._base = time.time_ns()

    @property
    def unheard(self) -> list[str]:
        """Topics without a subscriber."""
        return [] if self._publisher.wanted else [JOINT_STATES]

    def play(
        self,
        legs: EffortBatch,
        check: Callable[[], None],
        show: Callable[[float], None],
        services: Sequence[str] = (),
    ) -> None:
        """Publish leg states when due; after the motion, call services in turn.

        `show` is called repeatedly with the time of the motion [s].
        """
        waiting = list(services)
        begin, done, future = time.monotonic(), 0, None
        still = int(legs.stamps[-1]) - round(REST * NS)
        while done < len(legs.stamps) or waiting or future is not None:
            clock = int((time.monotonic() - begin) * NS * self._speed)
            due = int(np.searchsorted(legs.stamps, clock, side='right'))
            new = legs.select(slice(done, due))
            values = {name: getattr(new, name) for name in ('position', 'velocity', 'effort')}
            self._publisher.publish(legs.names, self._base + new.stamps, **values)
            done = due
            check()
            self._listen(clock / NS)
            show(clock / NS)
            # Half of the rest is for the motion's last samples to arrive.
            if future is None and waiting and clock > still + round(0.5 * REST * NS):
                future = self._client.call_async(waiting.pop(0))
            if future is not None and future.done():
                answer, future = future.result(), None
                if not answer.success:
                    raise DemoError(f'the estimator refuses: {answer.reason}')
            time.sleep(PERIOD)
        self._base += int(legs.stamps[-1]) + NS

    def _listen(self, elapsed: float) -> None:
        """Read the messages of the nodes."""
        self._monitor.update(elapsed)
        for array in self._diagnostics.take():
            for status in array.status:
                found = {
                    item.key.removeprefix('two_step.'): float(item.value)
                    for item in status.values
                    if item.key.startswith('two_step.')
                }
                self.two_step = found or self.two_step


@contextmanager
def progress(
    console: Console, monitor: Monitor, phase: str, duration: float
) -> Iterator[Callable[[float], None]]:
    """Yield what shows the progress of a motion, refreshed on a terminal, in lines elsewhere.

    It is called with the time of the motion [s], which takes a duration [s].
    """
    due = 0.0

    def line(elapsed: float) -> str:
        estimate = monitor.estimate
        parts = [f'{phase}: {min(elapsed, duration):.0f} of {duration:.0f} s']
        if estimate.identified[0]:
            half = INTERVAL * estimate.std[0]
            parts.append(f'mass {estimate.values[0]:.2f} ± {half:.2f} kg')
        missing = [stage for stage, its in STAGES.items() if not estimate.identified[its].all()]
        parts.append(f'{missing[0]} not yet' if missing else 'all identified')
        return ', '.join(parts)

    with console.status(phase) as status:

        def show(elapsed: float) -> None:
            nonlocal due
            if elapsed < due:
                return
            if console.is_terminal:
                due = elapsed + REFRESH
                status.update(line(elapsed))
            else:
                due = elapsed + LINES
                console.print(line(elapsed), soft_wrap=True)

        yield show


def demonstrate(
    node: Node, path: Path, duration: float, seed: int, speed: float, console: Console
) -> bool:
    """Run the whole demonstration and return whether the estimate holds.

    Raises LoadIdentificationError if it cannot run.
    """
    if not 0.0 < speed < np.inf:
        raise ParameterError(f'--speed is {speed}; it must be > 0')
    mechanism = Mechanism(replace(read_geometry(path), platform_body=None))
    motion = plan_sines(mechanism, AMPLITUDE, FREQUENCY, duration)
    degrees = ', '.join(f'{a:.1f}' for a in np.rad2deg(motion.amplitude))
    console.print(f'Sinusoids of {degrees} degrees in roll, pitch and yaw, within the limits')
    monitor = Monitor(node)
    # The simulated machine is exact except for friction and noise.
    settings = {'mechanism': path.resolve(), 'with_estimator': 'true', 'systematic_errors': 'none'}
    start = partial(NodeProcess, 'hexapod_node', settings)
    make = partial(Machine, node, monitor, speed)
    with connected(node, console, monitor, make, start) as (machine, check):
        whole = motion.duration + REST
        with progress(console, monitor, 'platform alone', whole) as show:
            legs = leg_states(mechanism, PLATFORM, motion, seed)
            machine.play(legs, check, show, ('save_tool', 'reset'))
        platform = machine.two_step
        with progress(console, monitor, 'with the load', whole) as show:
            legs = leg_states(mechanism, PLATFORM + LOAD, motion, seed + 1)
            machine.play(legs, check, show)
    return print_verdict(console, monitor, platform, machine.two_step)


def print_verdict(
    console: Console, monitor: Monitor, platform: Mapping[str, float], loaded: Mapping[str, float]
) -> bool:
    """Print the results beside the truth and return whether they hold.

    The monitor has received the one-step estimate of the load. `platform` and `loaded` are values
    and deviations of the two steps, for the platform alone and with the load.
    """
    truth, found = to_message_order(LOAD.to_vector()), monitor.estimate
    used = f'{monitor.state.used} samples; {monitor.state.words}'
    console.print(f'Load on `inertia`, one step, platform as the tool: {used}', style='bold')
    console.print(
        interval_table(
            PARAMETERS, found.values, found.std, found.identified, 'not identified', truth
        )
    )
    good = bool(found.identified.all() and (abs(found.values - truth) <= SURE * found.std).all())
    good &= bool(abs(found.values[0] / LOAD.mass - 1.0) <= MASS_GOAL)
    if not platform or not loaded:
        console.print('hexapod_node has given no estimate in two steps', style='bold red')
        return False
    load = _body(loaded) - _body(platform)
    std = float(np.hypot(loaded['mass.std'], platform['mass.std']))
    center = ', '.join(f'{1e3 * c:.1f}' for c in load.center_of_mass)
    moments = ', '.join(f'{m:.3f}' for m in load.principal().moments)
    console.print(
        f'Load by hexapod_node, two steps (the paper), as a difference: '
        f'{load.mass:.3f} ± {INTERVAL * std:.3f} kg, centre of mass ({center}) mm, '
        f'principal moments {moments} kg·m²',
        soft_wrap=True,
    )
    good &= abs(load.mass / LOAD.mass - 1.0) <= MASS_GOAL
    console.print(
        verdict_of(
            'ten',
            '40 %',
            f'whether each error is within {SURE:g} standard deviations, and that of either '
            f'mass within {100.0 * MASS_GOAL:g} %',
        ),
        soft_wrap=True,
    )
    console.print('The estimate ' + ('holds' if good else 'DOES NOT HOLD'), style='bold')
    return good


def _body(two_step: Mapping[str, float]) -> InertialParameters:
    return InertialParameters.from_message_order([two_step[key] for key in PARAMETER_KEYS])
