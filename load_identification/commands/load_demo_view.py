"""Output of the demonstration: the estimate while it converges, then the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text
from scipy.special import chdtri

from load_identification.commands.demo_arm import ArmPublisher, Simulation, Truth
from load_identification.interface.names import INTERVAL, STAGES, in_words
from load_identification.model.inertial_parameters import to_message_order
from load_identification.nodes.client.monitor import Estimate, Milestone, Monitor, Rate
from load_identification.report.snapshot import believed_parameters
from load_identification.report.tables import (
    OFFSETS,
    PARAMETERS,
    decimals,
    group_in_words,
    interval_table,
    verdict_of,
)
from load_identification.typing_aliases import FloatArray

REFRESH, LINES = 0.25, 1.0
"""Refresh interval on a terminal, and interval between lines elsewhere [s]."""

STAGE_UNITS = dict(zip(STAGES, PARAMETERS, strict=True))
"""Units and decimals of each stage's values."""

UNKNOWNS = (
    *PARAMETERS,
    *(replace(group, names=tuple(f'offset {name}' for name in group.names)) for group in OFFSETS),
)

CONFIDENCE = 0.999
"""Share of valid estimates that pass the joint test."""


@dataclass(frozen=True)
class Judgement:
    """Result of a comparison with the truth."""

    identified: bool
    """Whether all ten parameters are identified."""
    distance: float
    """e^T P^-1 e, with P the covariance of the sixteen errors e; infinite if unavailable."""
    limit: float
    """Quantile of chi-square with sixteen degrees of freedom, at `CONFIDENCE`."""

    @property
    def holds(self) -> bool:
        """Whether everything is identified and the errors agree with the covariance.

        In up to half of all runs, at least one of sixteen valid 95 % intervals misses the truth.
        The joint distance is therefore the criterion.
        """
        return self.identified and self.distance <= self.limit


def judge(truth: Truth, estimate: Estimate) -> Judgement:
    """Compare an estimate with the truth."""
    true_unknowns = np.concatenate([truth.payload.to_vector(), truth.offset])
    found = np.concatenate([believed_parameters(estimate.values), estimate.offset])
    error = found - true_unknowns
    return Judgement(
        identified=bool(estimate.identified.all()),
        distance=_squared_distance(error, estimate.covariance),
        limit=float(chdtri(len(error), 1.0 - CONFIDENCE)),
    )


def _squared_distance(error: FloatArray, covariance: FloatArray) -> float:
    """Return the squared Mahalanobis distance e^T P^-1 e.

    It is infinite if an error is unknown or the covariance is not positive definite.
    """
    variance = np.diag(covariance)
    if not (np.isfinite(error).all() and np.isfinite(covariance).all() and np.all(variance > 0)):
        return np.inf
    # Scaled, because the units span ten orders of magnitude.
    std = np.sqrt(variance)
    try:
        root = np.linalg.cholesky(covariance / np.outer(std, std))
    except np.linalg.LinAlgError:
        return np.inf
    return float(np.sum(np.linalg.solve(root, error / std) ** 2))


class View:
    """Show the progress: a live table on a terminal, a line per second elsewhere."""

    def __init__(
        self, console: Console, simulation: Simulation, arm: ArmPublisher, monitor: Monitor
    ) -> None:
        self._console = console
        self._simulation, self._arm, self._monitor = simulation, arm, monitor
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._due = self._rates_due = -np.inf if console.is_terminal else 0.0
        self._samples, self._estimates, self._rates_text = Rate(), Rate(), ''

    def __enter__(self) -> View:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self) -> None:
        """Show the present state if due."""
        now = self._arm.elapsed
        if now < self._due:
            return
        if now >= self._rates_due:
            self._rates_due = np.floor(now) + LINES
            if self._arm.published:
                self._samples.update(now, self._arm.published)
                self._estimates.update(now, self._monitor.estimates)
            rates = self._samples.per_second(now), self._estimates.per_second(now)
            if np.isfinite(rates[0]):
                self._rates_text = f'{rates[0]:4.0f} samples/s, {rates[1]:2.0f} estimates/s'
        if self._console.is_terminal:
            self._due = now + REFRESH
            self._live.update(self._picture(now), refresh=True)
        else:
            self._due = np.floor(now) + LINES
            self._console.print(self._line(now), soft_wrap=True)

    def _picture(self, elapsed: float) -> Group:
        duration, estimate = self._simulation.duration, self._monitor.estimate
        clock = f'{min(max(elapsed, 0.0), duration):4.1f} of {duration:.0f} s'
        head = Text.assemble(
            (f'{self._simulation.phase(elapsed):16}', 'bold'), f'{clock}   {self._rates_text}'
        )
        truth, known = self._simulation.truth.payload.to_vector(), estimate.identified
        values, std = estimate.values, estimate.std
        table = interval_table(PARAMETERS, values, std, known, 'not yet', to_message_order(truth))
        reasons = Text(self._monitor.state.words.replace('; ', '\n'), style='yellow')
        if known.all():
            reasons = Text('all ten parameters identified', style='green')
        return Group(Text(), head, table, reasons)

    def _line(self, elapsed: float) -> str:
        estimate = self._monitor.estimate
        parts = []
        for stage, columns in STAGES.items():
            known = bool(estimate.identified[columns].all())
            values, std = estimate.values[columns].tolist(), estimate.std[columns].tolist()
            now = group_in_words(STAGE_UNITS[stage], values, std, between=' ')
            parts.append(f'{stage} {now if known else "not yet"}')
        phase = self._simulation.phase(elapsed)
        if self._rates_text:
            parts.append(self._rates_text)
        return f'{elapsed:4.1f} s  {phase:16}  {" | ".join(parts)}'


def result_table(truth: Truth, estimate: Estimate) -> Table:
    """Make the table of all results beside the truth."""
    table = interval_table(
        UNKNOWNS,
        np.concatenate([estimate.values, estimate.offset]),
        np.concatenate([estimate.std, estimate.offset_std]),
        np.concatenate([estimate.identified, np.isfinite(estimate.offset_std)]),
        'not identified',
        np.concatenate([to_message_order(truth.payload.to_vector()), truth.offset]),
    )
    table.columns[0].header = 'result'
    return table


def milestone_table(simulation: Simulation, milestones: Mapping[str, Milestone]) -> Table:
    """Make the table of when each stage was identified, and its accuracy at that moment."""
    truth = to_message_order(simulation.truth.payload.to_vector())
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column('identified')
    for heading in ('after', '± 95 % then', 'error then'):
        table.add_column(heading, justify='right')
    table.add_column('unit')
    for stage, columns in STAGES.items():
        milestone = milestones.get(stage)
        if milestone is None:
            table.add_row(stage, 'never')
            continue
        group = STAGE_UNITS[stage]
        half = group.scale * INTERVAL * float(np.max(milestone.std))
        error = group.scale * float(np.max(np.abs(milestone.values - truth[columns])))
        digits = decimals(half)
        after = milestone.elapsed - simulation.motion_start
        table.add_row(
            stage, f'{after:.1f} s', f'{half:.{digits}f}', f'{error:.{digits}f}', group.unit
        )
    return table


def print_result(
    console: Console,
    simulation: Simulation,
    arm: ArmPublisher,
    monitor: Monitor,
    judgement: Judgement,
) -> None:
    """Print results, times, sample counts, and whether the estimate holds."""
    console.print(result_table(simulation.truth, monitor.estimate))
    console.print(
        verdict_of(
            'sixteen',
            'half',
            'that of all sixteen errors together, measured by the published covariance',
        ),
        soft_wrap=True,
    )
    console.print(milestone_table(simulation, monitor.milestones))
    console.print(
        'Time since the arm began to move; of several entries the worst.\n'
        f'{arm.published} joint states and wrenches published, {monitor.state.used} samples used '
        f'after filtering, dropped: {in_words(monitor.state.dropped) or "none"}.',
        soft_wrap=True,
    )
    style = 'bold green' if judgement.holds else 'bold red'
    console.print(verdict(judgement), style=style, soft_wrap=True)


def verdict(judgement: Judgement) -> str:
    """Return in a sentence whether the estimate holds and why."""
    if not judgement.identified:
        return 'The estimate DOES NOT HOLD: not all ten parameters are identified.'
    return (
        f'The estimate {"holds" if judgement.holds else "DOES NOT HOLD"}: all identified, joint '
        f'error χ² = {judgement.distance:.1f}, {100.0 * CONFIDENCE:.1f} % limit '
        f'{judgement.limit:.1f}.'
    )
