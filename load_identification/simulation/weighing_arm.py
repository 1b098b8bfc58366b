"""A simulated seven-joint arm that weighs with its joints: recordings with and without a load.

Torques of links and load are Pinocchio's RNEA and thus independent of the package. All numbers are
made up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio
import scipy.signal

from load_identification.arm.arm_estimate import identified_arm
from load_identification.arm.arm_file import IdentifiedArm
from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.dynamics.transmission import Transmission
from load_identification.arm.dynamics.tree import Arm
from load_identification.arm.filtering import FilteredRecording
from load_identification.arm.identification import identify_motion
from load_identification.arm.settings import Settings
from load_identification.constants import GRAVITY_VECTOR
from load_identification.interface.batches import EffortBatch, SynchronizedBatch
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.motion.limits import Limits
from load_identification.motion.sines import random_sines
from load_identification.signals.differentiator import DifferentiatedBatch, Differentiator
from load_identification.simulation.robots import SEVEN_JOINTS, PinocchioArm
from load_identification.typing_aliases import FloatArray

JOINTS = SEVEN_JOINTS.joints
FRAME = SEVEN_JOINTS.sensor_frame
PAYLOAD = InertialParameters.from_center_of_mass(
    2.0,
    np.array([0.03, -0.02, 0.08]),
    np.array([[0.012, 0.001, -0.002], [0.001, 0.014, 0.0015], [-0.002, 0.0015, 0.008]]),
)
WRIST = Transmission(JOINTS[5:], np.array([[1.0, 1.0], [1.0, -1.0]]), 'motors')
"""A differential: both motors of the last two joints turn either joint."""
NOISE = 0.1
"""Standard deviation of each torque sample [N m]."""
ENCODER_STEP = 1e-5
"""Step of the encoders [rad]."""
LASTING = 0.8
"""Time in which the correlation of wandering errors falls to 37 % [s]."""
COULOMB = np.array(
    [[2.1, 1.7], [2.4, 2.0], [1.6, 1.3], [1.5, 1.8], [0.9, 0.7], [0.7, 0.8], [0.5, 0.4]]
)
VISCOUS = np.array([3.0, 3.5, 2.0, 2.2, 1.0, 0.9, 0.6])
"""Coulomb friction of each joint, forward and backward [N m]; viscous friction [N m s/rad]."""
CUTOFF, OUTPUT_RATE, MAX_GAP = 20.0, 50.0, 0.1
RATE = 250.0
"""Sampling rate of the joint states [Hz]."""
CENTER = np.array([0.0, 0.5, 0.0, 1.4, 0.0, 1.4, 0.0])
"""Elbow and wrist bent: far from a singularity [rad]."""
NS = 1_000_000_000


@dataclass(frozen=True, eq=False)
class Run:
    """A motion and the exact torques of the drives."""

    stamps: FloatArray
    position: FloatArray
    velocity: FloatArray
    torque: FloatArray

    def wandering(self, seed: int, size: FloatArray) -> Run:
        """Return the run with errors of the torques that wander, as of gears and friction.

        `size` (7,) are their standard deviations [N m].
        """
        kept = float(np.exp(-(self.stamps[1] - self.stamps[0]) / LASTING))
        steps = np.random.default_rng(seed).standard_normal(self.torque.shape)
        steps[1:] *= np.sqrt(1.0 - kept**2)
        error = scipy.signal.lfilter([1.0], [1.0, -kept], steps, axis=0)
        return replace(self, torque=self.torque + size * error)

    def measured(self, seed: int, noise: FloatArray | float = NOISE) -> EffortBatch:
        """Return joint states with the noise of a seed."""
        drawn = np.random.default_rng(seed).standard_normal(self.torque.shape)
        position = np.round(self.position / ENCODER_STEP) * ENCODER_STEP
        stamps = np.round(self.stamps * NS).astype(np.int64)
        velocity = np.full_like(position, np.nan)
        return EffortBatch(JOINTS, stamps, position, velocity, self.torque + noise * drawn)


def friction(velocity: FloatArray) -> FloatArray:
    """Return the friction torque (n, 7), which differs by direction."""
    level = np.where(velocity > 0.0, COULOMB[:, 0], -COULOMB[:, 1])
    return np.asarray(level * (velocity != 0.0) + VISCOUS * velocity)


def run(
    duration: float,
    seed: int,
    payload: InertialParameters | None = None,
    rate: float = RATE,
    share: FloatArray | float = 1.0,
    coupled: Transmission | None = None,
) -> Run:
    """Move richly from rest to rest, with a share of the usual friction.

    If joints are coupled, friction and the returned torques are those of the motors.
    """
    times = np.arange(round(duration * rate) + 1) / rate + 100.0
    reach = np.array([2.2, 1.2, 1.5, 1.1, 2.2, 1.2, 2.8])
    motion = random_sines(
        CENTER, Limits(CENTER - reach, CENTER + reach, np.full(7, 2.2)), duration, seed, 0.7
    )
    q, qd, qdd = motion.sample(times - 100.0)
    matrix = np.eye(len(JOINTS)) if coupled is None else coupled.over(JOINTS)
    at_motors = link_torque(q, qd, qdd, payload) @ np.linalg.inv(matrix)
    torque = at_motors + share * friction(qd @ matrix.T)
    return Run(times, q, qd, torque)


def link_torque(
    q: FloatArray, qd: FloatArray, qdd: FloatArray, payload: InertialParameters | None
) -> FloatArray:
    """Return the torque (n, 7) of links and payload."""
    arm = PinocchioArm(SEVEN_JOINTS.urdf, np.array(GRAVITY_VECTOR), JOINTS)
    if payload is not None:
        frame = arm.model.frames[arm.model.getFrameId(FRAME)]
        body = pinocchio.Inertia(
            payload.mass, payload.center_of_mass, payload.inertia_about_center_of_mass
        )
        arm.model.appendBodyToJoint(frame.parentJoint, body, frame.placement)
        arm.data = arm.model.createData()
    return arm.torque((q, qd, qdd))


def differentiator(cutoff: float = CUTOFF) -> Differentiator:
    """Return the filter used for all data here."""
    return Differentiator(cutoff, OUTPUT_RATE, MAX_GAP)


def filtered(batch: EffortBatch) -> DifferentiatedBatch:
    """Filter joint states and efforts."""
    out = differentiator().update(
        SynchronizedBatch(JOINTS, '', batch.stamps, batch.position, batch.velocity, batch.effort)
    )
    assert out is not None
    return out


class Identifier:
    """Identify the arm from one motion without a load, with noise of any seed.

    The motion is always the same, and so is the transition velocity, chosen once.
    """

    def __init__(self, unloaded: Run, seed: int = 0) -> None:
        self._run = unloaded
        model = ArmModel(Arm(SEVEN_JOINTS.urdf, joints=JOINTS), DRIVE)
        self._model = identify_motion(model, self._log(seed), Settings()).model

    def arm(self, seed: int) -> IdentifiedArm:
        """Return the arm identified from the recording with the noise of a seed."""
        settings = Settings(transition_velocities=())
        return identified_arm(identify_motion(self._model, self._log(seed), settings), CUTOFF)

    def _log(self, seed: int) -> FilteredRecording:
        own = filtered(self._run.measured(seed))
        return FilteredRecording.of(np.asarray(1e-9 * own.stamps), own)


DRIVE = DriveModel('symmetric', 'symmetric', offset=True)


def exact_arm() -> IdentifiedArm:
    """Return the true arm without uncertainty."""
    arm = Arm(SEVEN_JOINTS.urdf, joints=JOINTS)
    drives = np.column_stack([COULOMB.mean(axis=1), VISCOUS, (COULOMB @ [0.5, -0.5])])
    noise = NOISE * np.sqrt(4.785 / (RATE * 1.16 / CUTOFF))
    return certain(arm, replace(DRIVE, transition_velocity=0.0), drives, noise)


def certain(arm: Arm, drive: DriveModel, drives: FloatArray, noise: float) -> IdentifiedArm:
    """Return an arm with the links of its description and given drives (J, k), both exact."""
    return IdentifiedArm(
        joints=arm.joints,
        links=arm.bodies,
        gravity=arm.gravity,
        drive=drive,
        parameters=arm.nominal,
        drives=drives,
        noise=np.full(len(arm.joints), noise),
        slow=np.zeros(len(arm.joints)),
        cutoff=CUTOFF,
        covariance=np.zeros((arm.nominal.size + drives.size + len(arm.joints),) * 2),
        velocities=True,
        effort_scale=np.ones(len(arm.joints)),
    )
