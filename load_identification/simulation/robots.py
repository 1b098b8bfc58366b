"""Made-up arms of different shape, the machines of the package, and the dynamics of arms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio

from load_identification.constants import GRAVITY_VECTOR
from load_identification.errors import DescriptionError
from load_identification.model.inertial_parameters import MOMENTS
from load_identification.model.robot import Robot
from load_identification.model.urdf import configurations
from load_identification.motion.limits import Limits
from load_identification.typing_aliases import FloatArray


def shipped_file(name: str) -> Path:
    """Find a file of config/, in the checkout or in share/ of any installation.

    Parameters
    ----------
    name : str
        For example `puma.urdf`.

    Raises DescriptionError if it is in neither.
    """
    # In every installation, share/ is beside the lib/ that contains this file.
    for folder in Path(__file__).resolve().parents:
        for path in (
            folder / 'config' / name,
            folder / 'share' / 'load_identification' / 'config' / name,
        ):
            if path.is_file():
                return path
    raise DescriptionError(f'config/{name} of load_identification is not installed beside here')


def puma_description() -> str:
    """Return the URDF of the PUMA 560 that the demonstrations move."""
    return shipped_file('puma.urdf').read_text(encoding='utf-8')


@dataclass(frozen=True)
class Arm:
    """An arm with a sensor, and the range in which its joints are moved."""

    urdf: str
    sensor_frame: str
    joints: tuple[str, ...]
    """The moving joints between root and sensor, (J,)."""
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()
    velocity_limit: tuple[float, ...] = ()
    """(J,) [rad or m, and per s]."""
    gravity: tuple[float, float, float] = GRAVITY_VECTOR
    """In the root frame, (3,) [m/s²]."""

    @property
    def limits(self) -> Limits:
        """Range and largest velocities, without a limit of acceleration."""
        return Limits(*map(np.array, (self.lower, self.upper, self.velocity_limit)))

    def robot(self) -> Robot:
        """Return the kinematics of the description."""
        return Robot(self.urdf, self.sensor_frame, self.gravity)


class PinocchioArm:
    """Inverse dynamics by Pinocchio, sample by sample: the oracle."""

    def __init__(self, urdf: str, gravity: FloatArray, joints: tuple[str, ...] | None = None):
        model = pinocchio.buildModelFromXML(urdf)
        if joints is not None:
            locked = [k for k in range(1, model.njoints) if model.names[k] not in joints]
            model = pinocchio.buildReducedModel(model, locked, pinocchio.neutral(model))
        model.gravity.linear = np.array(gravity)
        self.model, self.data = model, model.createData()

    def torque(self, motion: tuple[FloatArray, FloatArray, FloatArray]) -> FloatArray:
        """Return joint torques (n, J) for positions, velocities, accelerations (n, J)."""
        q, qd, qdd = motion
        samples = zip(configurations(self.model, q), qd, qdd, strict=True)
        return np.array([pinocchio.rnea(self.model, self.data, *each) for each in samples])


def inertial(mass: float, xyz: str, inertia: Sequence[float], rpy: str = '0 0 0') -> str:
    """Return a body: mass [kg], centre [m], six entries of the inertia about it [kg m²]."""
    entries = ' '.join(f'{name}="{x}"' for name, x in zip(MOMENTS, inertia, strict=True))
    return (
        f'<inertial><origin xyz="{xyz}" rpy="{rpy}"/><mass value="{mass}"/>'
        f'<inertia {entries}/></inertial>'
    )


LIGHT = inertial(1.3, '0.01 -0.02 0.1', (0.01, 0.0, 0.0, 0.011, 0.0, 0.004), '0.1 0.2 -0.3')
"""Some body: MuJoCo requires one on everything that moves."""


def joint(
    name: str,
    kind: str,
    parent: str,
    child: str,
    xyz: str = '0 0 0',
    rpy: str = '0 0 0',
    axis: str = '0 0 1',
    inside: str = '',
    limit: str = 'lower="-3" upper="3" effort="100" velocity="2.5"',
    body: str = LIGHT,
) -> str:
    """Return a joint and its child link; a continuous joint gets no limit."""
    return f"""
  <joint name="{name}" type="{kind}">
    <parent link="{parent}"/>
    <child link="{child}"/>
    <origin xyz="{xyz}" rpy="{rpy}"/>
    <axis xyz="{axis}"/>
    {'' if kind in ('continuous', 'fixed') else f'<limit {limit}/>'}
    {inside}
  </joint>
  <link name="{child}">{body}</link>"""


def robot(root: str, *parts: str) -> str:
    """Return a description from its root link and joints."""
    return f'<robot name="arm"><link name="{root}">{LIGHT}</link>{"".join(parts)}\n</robot>'


SIX_JOINTS = Arm(
    robot(
        'base_link',
        joint('shoulder_pan', 'revolute', 'base_link', 'shoulder', '0 0 0.163', '0 0 3.14159'),
        joint('shoulder_lift', 'revolute', 'shoulder', 'upper', '0 0.14 0', '0 1.57 0', '0 1 0'),
        joint('elbow', 'revolute', 'upper', 'lower', '0.02 -0.131 0.425', '0.3 0 -0.2', '0 -1 0'),
        joint('wrist_1', 'revolute', 'lower', 'link_4', '0 0 0.392', '0 1.5708 0.7', '0.6 0.8 0'),
        joint('wrist_2', 'revolute', 'link_4', 'link_5', '0 0.127 0', '0.1 0 0'),
        joint('wrist_3', 'revolute', 'link_5', 'link_6', '0 0 0.1', '1.2 -0.5 0', '1 0 0'),
        joint('flange', 'fixed', 'link_6', 'tool0', '0.05 0.1 0', '-1.57 0 -1.57'),
        joint('ft_mount', 'fixed', 'tool0', 'ft_sensor', '0.01 0 0.035', '0.2 0.3 0.785'),
        # A gripper beyond the sensor, with fingers outside the chain.
        joint('gripper_mount', 'fixed', 'ft_sensor', 'gripper', '0 0 0.02'),
        joint('finger_a', 'prismatic', 'gripper', 'link_a', '0.02 0 0.1', axis='1 0 0'),
        joint(
            'finger_b',
            'prismatic',
            'gripper',
            'link_b',
            '-0.02 0 0.1',
            axis='-1 0 0',
            inside='<mimic joint="finger_a" multiplier="1" offset="0"/>',
        ),
    ),
    'ft_sensor',
    ('shoulder_pan', 'shoulder_lift', 'elbow', 'wrist_1', 'wrist_2', 'wrist_3'),
    (-1.5,) * 6,
    (1.5,) * 6,
    (2.0,) * 3 + (2.5,) * 3,
)

# A SCARA with a tilting wrist: without it, every rotation is about the vertical, and no wrench
# depends on Ixx, Ixy and Iyy of the load.
SCARA = Arm(
    robot(
        'base',
        joint('column', 'revolute', 'base', 'inner_arm', '0 0 0.4'),
        joint('elbow', 'revolute', 'inner_arm', 'outer_arm', '0.35 0 0'),
        joint('camera_pan', 'continuous', 'outer_arm', 'camera', '0.1 0 0.2', axis='0 1 0'),
        joint('quill', 'prismatic', 'outer_arm', 'quill_link', '0.3 0 0', '0.02 0 0', '0 0 -1'),
        joint('roll', 'continuous', 'quill_link', 'roll_link', '0 0 -0.1', '0 0 0.4', '0 0 -1'),
        joint('tilt', 'continuous', 'roll_link', 'wrist', '0 0.02 -0.05', '3.1 0 0', '0.6 0.8 0'),
    ),
    'wrist',
    ('column', 'elbow', 'quill', 'roll', 'tilt'),
    (-2.0, -2.0, -0.15, -3.0, -1.2),
    (2.0, 2.0, 0.15, 3.0, 1.2),
    (2.5, 2.5, 0.5, 4.0, 3.0),
)

SEVEN_JOINTS = Arm(
    robot(
        'world',
        # The base hangs on a wall at a slant; a second arm shares it.
        joint('tilt', 'fixed', 'world', 'torso', '0 0 1', '0.4 -0.9 1.1'),
        joint('right_1', 'revolute', 'torso', 'right_link_1', '0 -0.2 0'),
        joint('left_1', 'revolute', 'torso', 'left_link_1', '0 0.1 0.31'),
        joint('left_2', 'revolute', 'left_link_1', 'left_link_2', '0 0 0.2', axis='0 -1 0'),
        joint('left_3', 'revolute', 'left_link_2', 'left_link_3', '0 0 0.2'),
        joint('left_4', 'revolute', 'left_link_3', 'left_link_4', '0.01 0 0.2', axis='0 1 0'),
        joint('left_5', 'revolute', 'left_link_4', 'left_link_5', '0 0 0.2', '0 0 0.3'),
        joint('left_6', 'revolute', 'left_link_5', 'left_link_6', '0 0 0.19', '0.05 0 0', '0 1 0'),
        joint('left_7', 'revolute', 'left_link_6', 'left_link_7', '0 0 0.078', '0 0.1 0'),
        joint('left_ft', 'fixed', 'left_link_7', 'left_ft_frame', '0 0 0.03', '3.1 0.1 -2.3'),
    ),
    'left_ft_frame',
    tuple(f'left_{k}' for k in range(1, 8)),
    (-1.5,) * 7,
    (1.5,) * 7,
    (1.5,) * 4 + (2.5,) * 3,
)

PUMA = Arm(
    puma_description(),
    'ft_sensor',
    tuple(f'joint_{k}' for k in range(1, 7)),
    (-1.5, -1.5, -1.0, -2.0, -1.5, -2.5),
    (1.5, 0.5, 1.5, 2.0, 1.5, 2.5),
    (1.4, 0.9, 2.2, 3.5, 3.5, 4.5),
)

ARMS = {'six_joints': SIX_JOINTS, 'scara': SCARA, 'seven_joints': SEVEN_JOINTS}

MOUNTS = {'puma': PUMA, **ARMS}
