"""Filter joint states with efforts into the motion and wrench of a frame of the arm."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from load_identification.arm.arm_file import IdentifiedArm
from load_identification.arm.dynamics.friction import RESTING
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.dynamics.tree import FROM_ZERO
from load_identification.arm.payload.joint_wrench import (
    ArmErrors,
    check_visible,
    locked_before,
    random_poses,
    sensor_jacobian,
    shown_by,
    torque_to_wrench,
    unseen_parameters,
)
from load_identification.errors import DescriptionError
from load_identification.interface.batches import EffortBatch, FilteredBatch, SynchronizedBatch
from load_identification.model.robot import Robot
from load_identification.numerics.weighted_rows import whitening
from load_identification.signals.differentiator import DifferentiatedBatch, Differentiator
from load_identification.signals.effort_stage import (
    EffortStage,
    least_speed,
    share_known,
    smoothed_sign,
)
from load_identification.typing_aliases import FloatArray, IntArray

LEAST_NOISE = 0.25
"""Least variance assumed of a wrench, as a share of the usual variance [-]."""

USABLE = 1.0
"""Largest share of the usual variance at which a sample counts where weights are 0 or 1. Beyond
it, a few samples noisier than the others look like a change of the load [-]."""

MOST = 25.0
"""Largest share of the usual variance at which a sample is used: five times the noise [-]."""


@dataclass(frozen=True, eq=False)
class Efforts:
    """Filtered efforts and their prediction by the arm alone."""

    names: tuple[str, ...]
    """The J joints of the arm."""
    stamps: IntArray
    """(n,) [ns]."""
    position: FloatArray
    """(n, J) [rad, m]."""
    predicted: FloatArray
    residual: FloatArray
    """Predicted by links and drives, (n, J); measured minus predicted, due to the payload
    [N m, N]."""


class EffortFilter(EffortStage):
    """The stage of an arm that weighs with its joints.

    ``tau - tau_arm = J^T f``, where f is the wrench that the arm exerts on the load.

    Parameters
    ----------
    arm : IdentifiedArm
        The arm without its payload.
    differentiator, max_gap
        As in `EffortStage`.
    """

    def __init__(self, arm: IdentifiedArm, differentiator: Differentiator, max_gap: float) -> None:
        super().__init__(arm.joints, differentiator, max_gap)
        self.arm = arm
        self.waiting_for = 'the robot description'
        self.refused_frame: str | None = None
        """Frame named by the messages that the description lacks; None, because they name none."""
        self.robot: Robot | None = None
        self.unseen: tuple[str, ...] = ()
        """Payload parameters that the torques of this arm never observe by themselves."""
        self.efforts: Efforts | None = None
        """Efforts of the last update; None if it has completed no sample."""
        self._model: ArmModel | None = None
        self._errors: ArmErrors
        self._columns: list[int] = []
        self._slow: IntArray
        self._in_place: tuple[str, ...] = ()
        self._away: set[str] = set()
        self._usual: FloatArray = np.ones(6)

    def set_description(self, description: str, sensor_frame: str = '') -> None:
        """Set the robot description; without a sensor frame, that of the last link is used.

        Raises DescriptionError if it does not belong to the arm of the model, or the joint torques
        do not determine a whole wrench; ParameterError if a joint moves another link in it than in
        the arm model. The description in use is kept.
        """
        model = self.arm.model(description)
        frame = sensor_frame or self.arm.links[-1]
        whole = Robot(description, frame, self.arm.gravity)
        locked = locked_before(whole, self.arm.joints)
        self._in_place = shown_by(whole, locked)
        robot = Robot(description, frame, self.arm.gravity, locked)
        check_visible(robot)
        columns = [self.arm.joints.index(name) for name in robot.joints]
        coupled = set(self.arm.transmission.joints if self.arm.transmission else ())
        if coupled & set(robot.joints) and not coupled <= set(robot.joints):
            raise DescriptionError(
                f'the transmission of the arm model couples joints that move {robot.sensor_frame} '
                'with others'
            )
        matrix = model.motors(np.eye(len(self.arm.joints))).T
        # To the Jacobian by the motors' velocities.
        self._per_motor = np.asarray(np.linalg.inv(matrix[columns][:, columns]), np.float64)
        self.unseen = unseen_parameters(robot)
        self._model, self.robot, self._errors = model, robot, ArmErrors.of(self.arm, model)
        self._columns = columns
        self._slow = np.flatnonzero(self.arm.slow[columns])
        self._usual = self._usual_variance(robot)
        self.waiting_for = 'the first joint states'
        self.reset()

    def update(self, batch: EffortBatch) -> FilteredBatch | None:
        self.efforts = self._states = None
        if self.robot is None:
            self.dropped['no_robot'] += len(batch.stamps)
            return None
        return super().update(batch)

    def raw(self) -> SynchronizedBatch | None:
        """Return joint states and the unfiltered wrench of the last update, or None.

        It serves weighing at rest. There the friction of the joints is undetermined, so that the
        wrench is NaN if the arm has any.
        """
        joints, robot, model = self._states, self.robot, self._model
        if joints is None or robot is None or model is None:
            return None
        wrench = np.full((len(joints.stamps), 6), np.nan)
        if not self._dry_friction(np.ones(len(self.arm.joints))).any():
            still = np.zeros_like(joints.position)
            arm = model.predict(self.arm.values, (joints.position, still, still))
            mine = self._columns
            jacobian = sensor_jacobian(robot, joints.position[:, mine]) @ self._per_motor
            gain = torque_to_wrench(jacobian, self.arm.noise[mine] ** 2).gain
            wrench = -np.einsum('nij,nj->ni', gain, (joints.wrench - arm)[:, mine])
        return replace(joints, frame=robot.sensor_frame, wrench=wrench)

    def _usable(self, batch: EffortBatch) -> SynchronizedBatch | None:
        for name in set(self._in_place) & set(batch.names):
            far = np.abs(batch.position[-1:, batch.names.index(name)]) > FROM_ZERO
            (self._away.add if far.any() else self._away.discard)(name)
        states = self._ordered(batch)
        if states is None:
            return None
        if self._away:
            words = f'{", ".join(sorted(self._away))} at zero, where the arm was identified'
            self._count('joint_not_at_zero', np.ones(len(batch.stamps), dtype=bool), words)
            return None
        used, effort = np.isfinite(states.velocity) & self.arm.velocities, states.effort
        if self.arm.transmission is not None:
            effort = self.arm.transmission.motor_efforts(effort, self.names)
        velocity = np.where(used, states.velocity, np.nan)
        states = replace(states, velocity=velocity, effort=effort * self.arm.effort_scale)
        finite, known = np.isfinite(states.position).all(axis=1), np.isfinite(states.effort)
        self._count('joint_state_not_finite', ~finite, 'finite joint positions')
        keep = np.asarray(finite & known.all(axis=1))
        dumb = [name for k, name in enumerate(self.names) if not known[:, k].any()]
        words = f'the effort of {", ".join(dumb) or "every joint"}'
        self._count('effort_missing', finite & ~keep, words)
        return self._gated(states, keep)

    def _resolve(self, out: DifferentiatedBatch) -> FilteredBatch:
        robot, model = self.robot, self._model
        assert robot is not None
        assert model is not None
        motion = (out.position, out.velocity, out.acceleration)
        rows, load = model.regressor_of_efforts(motion, out.wrench, self.arm.values)
        predicted = rows @ self.arm.values
        residual = out.wrench - predicted
        self.efforts = Efforts(self.arm.joints, out.stamps, out.position, predicted, residual)
        mine = self._columns
        frame_motion = robot.motion(*(array[:, mine] for array in motion))
        jacobian = frame_motion.jacobian @ self._per_motor
        found = torque_to_wrench(jacobian, self._variance(out, model, load)[:, mine])
        least = torque_to_wrench(jacobian, self.arm.noise[mine] ** 2)
        wrench = -np.einsum('nij,nj->ni', found.gain, residual[:, mine])
        finite = np.isfinite(wrench).all(axis=1)
        singular = finite & ~(self._share(least.covariance) <= MOST)
        self._count('near_singular', singular, 'a pose farther from a singularity')
        slow = finite & ~singular & ~(self._share(found.covariance) <= MOST)
        moving = 'joints that move: the friction of slow ones is unknown'
        self._count('friction_unknown', slow, moving)
        good = finite & ~singular & ~slow
        covariance = np.where(good[:, None, None], found.covariance, 0.0)
        return FilteredBatch(
            frame=robot.sensor_frame,
            stamps=out.stamps,
            wrench=np.where(good[:, None], wrench, np.nan),
            linear_velocity=frame_motion.linear_velocity,
            angular_velocity=frame_motion.angular_velocity,
            linear_acceleration=frame_motion.linear_acceleration,
            angular_acceleration=frame_motion.angular_acceleration,
            gravity=frame_motion.gravity,
            rest=self._rested(out.stamps),
            motion_by_joint=frame_motion.motion_by_joint,
            whitening=whitening(covariance, self._usual[[0, 3]], LEAST_NOISE),
            gravity_by_tilt=frame_motion.gravity_by_tilt,
            by_slow=found.gain[:, :, self._slow] * self.arm.slow[mine][self._slow],
            sensitivity=found.gain @ self._errors.off(rows, predicted)[:, mine],
            by_gain=np.einsum('nij,nkj,jg->ngik', found.gain, jacobian, self._errors.gain[mine]),
        )

    def _share(self, covariance: FloatArray) -> FloatArray:
        """Return the wrenches' variance in units of the usual one, mean over components (n,)."""
        variance = np.diagonal(covariance, axis1=1, axis2=2)
        return np.asarray(np.mean(variance / self._usual, axis=1))

    def _usual_variance(self, robot: Robot) -> FloatArray:
        """Return the usual variance of forces and torques, median over random poses, (6,)."""
        jacobian = sensor_jacobian(robot, random_poses(robot)) @ self._per_motor
        covariance = torque_to_wrench(jacobian, self.arm.noise[self._columns] ** 2).covariance
        variance = np.diagonal(covariance, axis1=1, axis2=2).reshape(-1, 2, 3).mean(axis=2)
        return np.repeat(np.median(variance, axis=0), 3)

    def _dry_friction(self, load: FloatArray) -> FloatArray:
        """Return each joint's level of friction at low speed under loads (…, J) [N m, N]."""
        arm = self.arm
        level = arm.level('coulomb', 'coulomb+', 'coulomb-') + arm.level('stribeck')
        return level + arm.level('load_friction') * load

    def _variance(self, out: DifferentiatedBatch, model: ArmModel, load: FloatArray) -> FloatArray:
        """Return the variance of each effort (n, J): noise, and friction where it is unknown.

        At a velocity reversal a motor's friction has either sign, smeared by the low-pass.
        """
        # From three times that speed on friction is fully known.
        low = max(RESTING, self.arm.drive.transition_velocity)
        velocity, acceleration = model.motors(out.velocity), model.motors(out.acceleration)
        speed = least_speed(velocity, acceleration, self.delay)
        unknown = 1.0 - share_known(speed, low, 3.0 * low)
        sign = smoothed_sign(velocity, acceleration, self._step)
        unknown = np.maximum(unknown, np.abs(sign - np.sign(velocity)))
        return self.arm.noise**2 + (self._dry_friction(load) * unknown) ** 2
