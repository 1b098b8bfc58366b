"""The kinds of error, motion and robot of which `reality.py` makes its table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from load_identification.simulation.cells import Conditions
from load_identification.simulation.robots import MOUNTS, Arm
from load_identification.simulation.sensor_errors import CellErrors
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
    conditions : Conditions
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
    cases = {f'white/{m}': Case(m) for m in ('rich', 'pauses', 'tool-down')}
    cases['white/poses'] = POSES
    ordinary = Conditions(ORDINARY)
    cases |= {f'ordinary/{m}': Case(m, ordinary) for m in ('rich', 'pauses', 'tool-down')}
    cases['ordinary/poses'] = replace(POSES, conditions=ordinary)
    single = {
        'common-gain': ('common_gain',),
        'gains': ('gain',),
        'cross-talk': ('cross_talk', 'moment_arm'),
        **{name: (name,) for name in ('mounting', 'tilt', 'zeros', 'lag')},
    }
    for label, names in single.items():
        alone = Conditions(ORDINARY.only(*names))
        cases |= {f'{label}/{m}': Case(m, alone) for m in ('rich', 'pauses')}
    for label, names in single.items():
        alone = Conditions(ORDINARY.only(*names).times(2.0))
        cases[f'twice-{label}/rich'] = Case('rich', alone)
    cases['twice/rich'] = Case('rich', Conditions(ORDINARY.times(2.0)))
    for kind in ('smooth', 'rough', 'hysteresis', 'cables'):
        cases[f'{kind}/poses'] = replace(POSES, conditions=Conditions(tied=(kind,)))
    prior = Conditions(ORDINARY, tied=('smooth', 'path'))
    cases |= {f'prior/{m}': Case(m, prior) for m in ('rich', 'pauses', 'tool-down')}
    cases['prior/poses'] = replace(POSES, conditions=prior)
    tied = Conditions(tied=('smooth', 'cables'))
    cases |= {f'tied/{m}': Case(m, tied) for m in ('rich', 'pauses')}
    everything = Conditions(ORDINARY, tied=('smooth', 'cables'))
    cases |= {f'all/{m}': Case(m, everything) for m in ('rich', 'pauses')}
    cases['all/poses'] = replace(POSES, conditions=everything)
    rubbing = Conditions(ORDINARY, tied=('friction',))
    cases |= {f'friction/{m}': Case(m, rubbing) for m in ('rich', 'pauses', 'tool-down')}
    cases['friction/poses'] = replace(POSES, conditions=rubbing)
    cases['compliance/rich'] = Case('rich', Conditions(compliance=12.0))
    for motion in ('rich', 'pauses'):
        cases[f'jitter/{motion}'] = Case(motion, replace(ordinary, jitter=1.5e-3))
        cases[f'clocks/{motion}'] = Case(motion, replace(ordinary, clock=2e-4))
        cases[f'spikes/{motion}'] = Case(motion, replace(ordinary, spikes=2.0))
        cases[f'swing/{motion}'] = Case(motion, replace(ordinary, swing=0.4))
    noisy = Conditions(sensors=replace(WRIST_SENSOR, velocity_noise=0.01))
    cases['velocities/rich'] = Case('rich', noisy)
    coarse = Conditions(sensors=replace(WRIST_SENSOR, encoder_resolution=1e-4))
    cases['8kg/little'] = Case('little', coarse, mass=(8.0, 8.0))
    cases['drift/trend'] = Case('trend', Conditions(drift=2.0), looks=(10, 25, 50), longer=False)
    cases['creep/creep'] = Case('creep', mass=(5.0, 5.0), looks=(30.0, 60.0, 90.0))
    return cases


CASES = _cases()
