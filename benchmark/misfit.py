"""How often a wrong set-up is named rightly, how soon, and how often a sound one is called wrong.

Each fault of `simulation/misfits.py` on three robots, in an ordinary cell, with loads of 0.5 to
3 kg; then sound cells that are worse than ordinary: errors of twice the usual size, coarse
encoders, drift, contacts, loads that change.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from load_identification.estimation.misfit.trials import Kind
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import to_message_order
from load_identification.pipeline import settings
from load_identification.simulation.cells import Conditions, filtered
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.changes.runs import pieces
from load_identification.simulation.misfits import FAULTS, SOUND, Fault, recorded
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import CellErrors
from load_identification.simulation.sensors import WRIST_SENSOR

ROBOTS = ('puma', 'scara', 'seven_joints')
ORDINARY = Conditions(CellErrors())
CELLS: dict[str, Conditions] = {
    'ordinary': ORDINARY,
    'twice': Conditions(CellErrors().times(2.0)),
    'fields and path': Conditions(CellErrors(), tied=('smooth', 'path')),
    'friction': Conditions(CellErrors(), tied=('friction',)),
    'cables': Conditions(CellErrors(), tied=('smooth', 'cables')),
    'encoders of 1 mrad': Conditions(
        CellErrors(), sensors=replace(WRIST_SENSOR, encoder_resolution=1e-3)
    ),
    'drift of 2 N': Conditions(CellErrors(), drift=2.0),
    'compliance': Conditions(CellErrors(), compliance=12.0),
}
"""Sound ones."""


@dataclass(frozen=True)
class Outcome:
    """Of one run.

    Attributes
    ----------
    kinds : tuple of Kind
        That were named, in their order.
    first : float
        When the last of them was first named [s]; NaN: none was.
    last : Kind or None
        What is said in the end.
    spoilt : bool
        A mass or centre of mass was claimed that is more than 4 standard deviations off; looked
        at with `--claims`.
    """

    kinds: tuple[Kind, ...]
    first: float
    last: Kind | None
    spoilt: bool
    words: str


def run(
    fault: Fault, conditions: Conditions, motion: str, seconds: float, seed: int, claims: bool
) -> Outcome:
    """Simulate and identify once."""
    mount = MOUNTS[ROBOTS[seed % len(ROBOTS)]]
    parameters = replace(Parameters(), gravity=mount.gravity)
    drawn = MOTIONS[motion](mount, seconds, np.random.default_rng([seed, 0]))
    rng = np.random.default_rng([seed, 1])
    load = drawn_load(rng, float(np.exp(rng.uniform(np.log(0.5), np.log(3.0)))))
    streams = recorded(mount, drawn, seconds, load, fault, conditions, seed)
    batch, _ = filtered(mount, *streams, parameters)
    truth = to_message_order(load.to_vector())[:4]
    estimator = settings.payload_estimator(parameters)
    named: list[tuple[Kind, float]] = []
    spoilt, words = False, ''
    for piece in pieces(batch):
        estimator.update(piece)
        estimate = estimator.estimate() if claims and fault.steady else None
        if estimate is not None and estimate.identified[0]:
            away = np.abs(estimate.values[:4] - truth) > 4.0 * estimate.std[:4]
            spoilt |= bool((away & estimate.identified[:4]).any())
        kind, at = estimator.misfit.named.kind, 1e-9 * (piece.stamps[-1] - batch.stamps[0])
        if kind is not None and (not named or named[-1][0] is not kind):
            named.append((kind, float(at)))
        words = estimator.misfit.cause or words
    kinds, first = tuple(kind for kind, _ in named), named[-1][1] if named else np.nan
    return Outcome(kinds, first, estimator.misfit.named.kind, spoilt, words)


def row(name: str, fault: Fault, outcomes: Sequence[Outcome]) -> str:
    """Return a line of the table."""
    n = len(outcomes)
    right = [o for o in outcomes if fault.kind is not None and o.last is fault.kind]
    wrong = [o for o in outcomes if set(o.kinds) - {fault.kind}]
    spoilt = sum(o.spoilt for o in outcomes)
    unnamed = sum(o.spoilt and not o.kinds for o in outcomes)
    when = f'{np.median([o.first for o in right]):5.1f}' if right else '    -'
    others = {kind.value for o in wrong for kind in set(o.kinds) - {fault.kind}}
    return (
        f'{name:32} {len(right) / n:6.2f} {len(wrong) / n:6.2f} {when} '
        f'{spoilt / n:7.2f} {unnamed / n:7.2f}  {", ".join(sorted(others))}'
    )


HEAD = f'{"":32} {"right":>6} {"wrong":>6} {"s":>5} {"spoilt":>7} {"unnamed":>7}'


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--runs', type=int, default=6, help='of each row, robots by turns')
    parser.add_argument('--motions', nargs='*', default=['rich', 'pauses', 'poses'])
    parser.add_argument('--only', default='', help='rows whose name has this in it')
    parser.add_argument('--seconds', type=float, default=20.0)
    parser.add_argument('--seed', type=int, default=0, help='of the first run')
    parser.add_argument('--claims', action='store_true', help='look for false claims: slower')
    parser.add_argument('--words', action='store_true', help='print what is said')
    arguments = parser.parse_args()
    rows = [(name, fault, ORDINARY) for name, fault in FAULTS.items()]
    rows += [(f'sound: {name}', Fault(None), cell) for name, cell in CELLS.items()]
    rows += [(f'sound: {name}', fault, ORDINARY) for name, fault in SOUND.items()]
    print(HEAD)
    began, sound = time.perf_counter(), []
    for name, fault, conditions in rows:
        for motion in arguments.motions:
            label = f'{name}, {motion}'
            if arguments.only not in label:
                continue
            seconds = arguments.seconds * (1.5 if motion == 'poses' else 1.0)
            outcomes = [
                run(fault, conditions, motion, seconds, seed, arguments.claims)
                for seed in range(arguments.seed, arguments.seed + arguments.runs)
            ]
            print(row(label, fault, outcomes), flush=True)
            sound += outcomes if fault.kind is None else []
            if arguments.words:
                print('\n'.join(f'    {o.words}' for o in outcomes if o.words))
    if sound:
        wrong = sum(bool(o.kinds) for o in sound)
        print(f'sound: something named in {wrong} of {len(sound)} runs')
    print(f'{time.perf_counter() - began:.0f} s')


if __name__ == '__main__':
    main()
