"""Output of `hexapod_demo`: one line while the platform moves, then the results."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from rich.console import Console
from rich.status import Status

from load_identification.interface.names import INTERVAL, PARAMETER_KEYS, STAGES
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.nodes.client.monitor import Monitor
from load_identification.report.tables import PARAMETERS, interval_table
from load_identification.simulation.hexapod import LOAD

REFRESH, LINES = 0.25, 5.0
"""Refresh interval on a terminal, and interval between lines elsewhere [s]."""

SURE = 4.0
"""Largest error of a good estimate [std]: ten 95 % intervals seldom all contain the truth."""

MASS_GOAL = 0.01
"""Largest relative error of a good mass."""


class Progress:
    """Show the progress of a motion: a refreshed line on a terminal, separate lines elsewhere.

    The motion's name is `phase`, its duration is in s.
    """

    def __init__(self, console: Console, monitor: Monitor, phase: str, duration: float) -> None:
        self._console, self._monitor = console, monitor
        self._phase, self._duration = phase, duration
        self._status = Status(phase, console=console)
        self._due = 0.0

    def __enter__(self) -> Progress:
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def show(self, elapsed: float) -> None:
        """Show the present state if due at a time [s]."""
        if elapsed < self._due:
            return
        if self._console.is_terminal:
            self._due = elapsed + REFRESH
            self._status.update(self._line(elapsed))
        else:
            self._due = elapsed + LINES
            self._console.print(self._line(elapsed), soft_wrap=True)

    def _line(self, elapsed: float) -> str:
        estimate = self._monitor.estimate
        parts = [f'{self._phase}: {min(elapsed, self._duration):.0f} of {self._duration:.0f} s']
        if estimate.identified[0]:
            half = INTERVAL * estimate.std[0]
            parts.append(f'mass {estimate.values[0]:.2f} ± {half:.2f} kg')
        missing = [stage for stage, its in STAGES.items() if not estimate.identified[its].all()]
        parts.append(f'{missing[0]} not yet' if missing else 'all identified')
        return ', '.join(parts)


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
    console.print('The estimate ' + ('holds' if good else 'DOES NOT HOLD'), style='bold')
    return good


def _body(two_step: Mapping[str, float]) -> InertialParameters:
    return InertialParameters.from_message_order([two_step[key] for key in PARAMETER_KEYS])
