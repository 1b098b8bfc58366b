"""The kinds of error, motion and robot of which `reality.py` makes its table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from load_identification.simulation.cells import Conditions
from load_identification.simulation.robots import MOUNTS, Arm
from load_identification.simulation.sensor_errors import NO_ERRORS, CellErrors
from load_identification.simulation.sensors import WRIST_SENSOR

ROBOTS: dict[str, Arm] = {
    **MOUNTS,
    'hanging': replace(MOUNTS['puma'], gravity=(0.0, 0.0, 9.80665)),
    'on-a-wall': replace(MOUNTS['six_joints'], gravity=(9.80665, 0.0, 0.0)),
    'wrist': replace(
        MOUNTS['puma'],
        lower=(-1e-6, -0.5 - 1e-6, 0.4 - 1e-6, -2.0, -1.5, -2.5),
        upper=(1e-6, -0.5 + 1e-6, 0.4 + 1e-6, 2.0, 1.5, 2.5),
    ),
}
"""The last ones only when asked for: upside down, on a wall, wrist joints alone."""

SHAPES = ('puma', 'scara', 'seven_joints')


@dataclass(frozen=True)
class Case:
    """What is simulated.

    Attributes
    ----------
    motion : str
        Of `MOTIONS`.
    mass : tuple of two floats
        Range of the load's, uniform in its logarithm [kg].
    looks : tuple of float
        After the motion starts [s]; or, with poses, ends of so many holds [-].
    longer : bool
        Whether other times can be asked for.
    """

    motion: str = 'rich'
    conditions: Conditions = field(default_factory=Conditions)
    mass: tuple[float, float] = (0.5, 3.0)
    looks: tuple[float, ...] = (1.0, 2.0, 4.0, 10.0)
    longer: bool = True


ORDINARY = CellErrors()
POSES = Case('poses', looks=(2, 4, 10), longer=False)


def _cases() -> dict[str, Case]:
    cases = {}

    def add(label: str, conditions: Conditions, *motions: str) -> None:
        for motion in motions:
            case = POSES if motion == 'poses' else Case(motion)
            cases[f'{label}/{motion}'] = replace(case, conditions=conditions)

    every, two = ('rich', 'pauses', 'tool-down', 'poses'), ('rich', 'pauses')
    ordinary = Conditions(ORDINARY)
    add('white', Conditions(), *every)
    add('ordinary', ordinary, *every)
    single = {
        'common-gain': ('common_gain',),
        'gains': ('gain',),
        'cross-talk': ('cross_talk', 'moment_arm'),
        **{name: (name,) for name in ('mounting', 'tilt', 'zeros', 'lag')},
    }
    alone = {label: ORDINARY.only(*names) for label, names in single.items()}
    for label, errors in alone.items():
        add(label, Conditions(errors), *two)
    for label, errors in alone.items():
        add(f'twice-{label}', Conditions(errors.times(2.0)), 'rich')
    add('twice', Conditions(ORDINARY.times(2.0)), 'rich')
    for kind in ('smooth', 'rough', 'hysteresis', 'cables'):
        add(kind, Conditions(tied=(kind,)), 'poses')
    add('prior', replace(ordinary, tied=('smooth', 'path')), *every)
    add('like-a-load', replace(ordinary, tied=('smooth', 'path', 'linear')), *two)
    add('tied', Conditions(tied=('smooth', 'cables')), *two)
    add('all', replace(ordinary, tied=('smooth', 'cables')), *two, 'poses')
    add('taut-cable', Conditions(tied=('taut cable',)), *every[:3])
    add('friction', replace(ordinary, tied=('friction',)), *every)
    for frequency in (12.0, 7.0):
        add(f'compliance-{frequency:.0f}Hz', Conditions(compliance=frequency), *every[:3])
    for away in (0.002, 0.01):
        add(f'origin-{1e3 * away:.0f}mm', Conditions(replace(NO_ERRORS, origin=away)), *every[:3])
    add('jitter', replace(ordinary, jitter=1.5e-3), *two)
    add('clocks', replace(ordinary, clock=2e-4), *two)
    add('spikes', replace(ordinary, spikes=2.0), *two)
    add('swing', replace(ordinary, swing=0.4), *two)
    add('velocities', Conditions(sensors=replace(WRIST_SENSOR, velocity_noise=0.01)), 'rich')
    coarse = Conditions(sensors=replace(WRIST_SENSOR, encoder_resolution=1e-4))
    cases['8kg/little'] = Case('little', coarse, mass=(8.0, 8.0))
    cases['drift/trend'] = Case('trend', Conditions(drift=2.0), looks=(10, 25, 50), longer=False)
    cases['creep/creep'] = Case('creep', mass=(5.0, 5.0), looks=(30.0, 60.0, 90.0))
    return cases


CASES = _cases()
