"""What motion would help: predicted, then made, and found to be so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from filtered_samples import BLOCK, NOISE, OFFSET, RATE

from load_identification.estimation import excitation
from load_identification.estimation.advice.advice import BEYOND, NO_TURN, PLACES, Advice, advise
from load_identification.estimation.advice.predicted_covariance import (
    HOLD,
    Knowledge,
    predicted_std,
    swings,
)
from load_identification.estimation.excitation import FastestMotion
from load_identification.estimation.identifiability import (
    CENTER_OF_MASS,
    INERTIA,
    MASS,
    Identifiability,
    Requirements,
    judge,
)
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.model.regressor import wrench_regressor
from load_identification.model.robot import Robot, RotationAxis, joint_axes, sensor_axes
from load_identification.motion.joint_path import JointMotion, Move
from load_identification.pipeline import settings
from load_identification.simulation.cells import Conditions, filtered, record, sample
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import (
    MOUNTS,
    PUMA,
    SEVEN_JOINTS,
    SIX_JOINTS,
    Arm,
    joint,
    robot,
)
from load_identification.simulation.sensor_errors import CellErrors
from load_identification.simulation.sensors import load_wrench
from load_identification.typing_aliases import FloatArray

WRIST = Arm(
    robot(
        'base',
        joint('about_x', 'continuous', 'base', 'first', axis='1 0 0'),
        joint('about_y', 'continuous', 'first', 'second', axis='0 1 0'),
        joint('about_z', 'continuous', 'second', 'sensor', axis='0 0 1'),
    ),
    'sensor',
    ('about_x', 'about_y', 'about_z'),
)
"""At zero its joints turn the sensor about its own axes: an arm of which nothing is told."""

PRIOR = np.array([1e3] * 10 + [1e5] * 3 + [1e4] * 3)
REQUIRED = Requirements()


def scaled(factor: float) -> InertialParameters:
    return InertialParameters.from_vector(factor * BLOCK.to_vector())


class Session:
    """An arm that moves as advised, its load, and least squares over all rows at once."""

    def __init__(
        self, arm: Arm, payload: InertialParameters, seed: int = 0, noise: FloatArray = NOISE
    ) -> None:
        self.robot = Robot(arm.urdf, arm.sensor_frame)
        self.fastest = FastestMotion()
        self.pose = np.linspace(0.3, -0.4, len(arm.joints))
        self._payload, self._noise = payload, noise
        self._rng = np.random.default_rng(seed)
        self._seconds = 10.0
        self._rows: list[FloatArray] = []
        self._wrenches: list[FloatArray] = []
        self._specific_force = np.zeros(3)

    def move(self, motion: JointMotion) -> None:
        moved = self.robot.motion(*motion)
        n = len(motion[0])
        wrench = load_wrench(self._payload, moved) + OFFSET
        wrench = wrench + self._noise * self._rng.standard_normal((n, 6))
        stamps = np.round((self._seconds + np.arange(n) / RATE) * 1e9).astype(np.int64)
        self._seconds += n / RATE
        matrix = wrench_regressor(
            moved.linear_acceleration, moved.angular_velocity, moved.angular_acceleration
        )
        self.fastest.update(
            stamps,
            -matrix[:, 3:, 1:],
            wrench[:, 3:],
            moved.angular_velocity,
            moved.angular_acceleration,
        )
        self._rows.append(np.concatenate([-matrix, np.tile(np.eye(6), (n, 1, 1))], axis=2))
        self._wrenches.append(wrench)
        self.pose, self._specific_force = motion[0][-1], moved.linear_acceleration[-1]

    def stand(self, seconds: float = HOLD) -> None:
        position = np.tile(self.pose, (int(seconds * RATE), 1))
        self.move((position, 0.0 * position, 0.0 * position))

    def follow(self, advice: Advice) -> None:
        """Do what is advised, as a robot does it: quintics from rest to rest."""
        motion = advice.motion
        name = motion.axis.name
        number = (
            self.robot.joints.index(name)
            if name in self.robot.joints
            else [axis.name for axis in sensor_axes()].index(name)
        )
        goal = self.pose + motion.angle * np.eye(len(self.pose))[number]
        if motion.rate:
            # The peak rate of a Move is 15/8 of its mean.
            duration = 15.0 / 8.0 * motion.angle / motion.rate
            legs = [(self.pose, goal), (goal, self.pose)] * motion.swings
        else:
            duration, legs = 2.0, [(self.pose, goal)]
        times = np.arange(1, int(duration * RATE) + 1) / RATE
        for start, end in legs:
            self.move(Move(start, end, duration).sample(times))
        if not motion.rate:
            self.pose = goal
            self.stand()

    def know(self) -> tuple[Knowledge, Identifiability, FloatArray]:
        """Return what is known, judged, and the standard deviations judged by."""
        rows, wrenches = np.concatenate(self._rows), np.concatenate(self._wrenches)
        noise = self._noise[[0, 3]]
        for _ in range(2):
            values = solved(rows, wrenches, noise)
            residual = wrenches - rows @ values
            noise = np.sqrt(np.mean(residual.reshape(-1, 2, 3) ** 2, axis=(0, 2)))
        excitation = self.fastest.excitation(values[:10])
        unexplained = max(float(noise[1]), excitation.unexplained)
        knowledge = Knowledge(
            values[:10], triangle_of(rows, noise), noise, self._specific_force, unexplained
        )
        std = predicted_std(knowledge, knowledge.information[None])[0]
        judgement = judge(
            to_message_order(values[:10]) if values[0] > 0.0 else values[:10],
            std,
            REQUIRED,
            excitation.inertial_torque,
            unexplained,
            excitation.rate,
        )
        return knowledge, judgement, std

    def advised(self, axes: tuple[RotationAxis, ...] | None = None) -> Advice:
        knowledge, judgement, _ = self.know()
        if axes is None:
            axes = joint_axes(self.robot, self.pose)
        return advise(knowledge, judgement, REQUIRED, axes)


def solved(rows: FloatArray, wrenches: FloatArray, noise: FloatArray) -> FloatArray:
    weight = 1.0 / np.repeat(noise, 3)
    matrix = np.vstack([np.diag(1.0 / PRIOR), (rows * weight[:, None]).reshape(-1, 16)])
    values = np.concatenate([np.zeros(16), (wrenches * weight).ravel()])
    return np.asarray(np.linalg.lstsq(matrix, values, rcond=None)[0])


def triangle_of(rows: FloatArray, noise: FloatArray) -> FloatArray:
    weighted = rows / np.repeat(noise, 3)[:, None]
    stacked = np.vstack([np.diag(1.0 / PRIOR), weighted.reshape(-1, 16)])
    return np.asarray(np.linalg.qr(stacked, mode='r'))


@pytest.mark.parametrize('scale', [0.3, 1.0, 3.0], ids=['light', 'block', 'heavy'])
@pytest.mark.parametrize('arm', [SIX_JOINTS, PUMA, SEVEN_JOINTS], ids=['six', 'puma', 'seven'])
def test_who_follows_the_advice_identifies_everything_stage_by_stage(
    arm: Arm, scale: float
) -> None:
    session = Session(arm, scaled(scale))
    session.stand(3.0)
    stages = []
    for _ in range(9):
        advice = session.advised()
        if not advice.text:
            break
        _, before, _ = session.know()
        stages.append(before.lacking)
        assert advice.motion is not None, advice.text
        session.follow(advice)
        _, _, reached = session.know()
        # Of what is lacking, where it becomes known at all; the noise is learned meanwhile, and
        # a Move is not the sine that was thought of.
        places = np.arange(10)[PLACES[before.lacking]]
        near = places[advice.std[places] <= 10.0 * before.allowed[places]]
        assert np.abs(np.log(advice.std[near] / reached[near])).max(initial=0.0) <= np.log(1.3)
    assert session.advised().text == ''
    assert stages[0] == MASS
    order = [MASS, CENTER_OF_MASS, INERTIA]
    assert [order.index(s) for s in stages] == sorted(order.index(s) for s in stages)
    knowledge, judgement, std = session.know()
    assert judgement.identified.all()
    # And what is said to be known is so.
    error = to_message_order(knowledge.parameters) - to_message_order(scaled(scale).to_vector())
    assert np.all(np.abs(error) <= 4.0 * std)


def test_without_a_robot_the_sensor_is_turned_about_its_own_axes() -> None:
    session = Session(WRIST, BLOCK)
    session.pose = np.zeros(3)
    session.stand(3.0)
    texts = []
    for _ in range(9):
        # After swings it is back at zero, after turns it is not: then its axes are others.
        advice = session.advised(
            () if not session.pose.any() else joint_axes(session.robot, session.pose)
        )
        if not advice.text:
            break
        texts.append(advice.text)
        session.follow(advice)
        if advice.motion is not None and not advice.motion.rate:
            session.pose = np.zeros(3)
            session.stand(1.0)
    assert session.know()[1].identified.all()
    assert texts[0].startswith('turn the sensor about its ')
    assert any(text.startswith('rotate the sensor about its ') for text in texts)


def test_a_mass_of_zero_is_advised_about_without_a_division_by_zero() -> None:
    """Nothing is allowed of its inertia: NumPy had warned on stderr."""
    session = Session(SIX_JOINTS, scaled(0.3))
    session.stand(3.0)
    knowledge, _, std = session.know()
    nothing = judge(np.zeros(10), std, REQUIRED, 0.0, 1.0)
    assert not nothing.allowed[4:].any()
    with np.errstate(all='raise'):
        advice = advise(knowledge, nothing, REQUIRED, joint_axes(session.robot, session.pose))
    assert 'kg expected, 0.01 required' in advice.text


def test_advice_gives_numbers() -> None:
    session = Session(SIX_JOINTS, scaled(0.3))
    session.stand(3.0)
    advice = session.advised()
    assert advice.text == (
        f'turn {advice.motion.axis.name} by 20°, hold 2 s: '
        f'mass std {advice.std[0]:.2g} kg expected, 0.01 required'
    )
    session.follow(advice)
    advice = session.advised()
    assert 'centre of mass' in advice.text
    assert 'mm expected, 2 required' in advice.text
    session.follow(advice)
    advice = session.advised()
    assert 'rad/s or more' in advice.text
    assert 'times to and fro' in advice.text
    assert 'adds most about ' in advice.text


def test_a_sensor_that_cannot_see_the_inertia_is_said_not_to() -> None:
    """20 g on a sensor of 0.05 N·m noise."""
    session = Session(SIX_JOINTS, scaled(0.02), noise=NOISE * np.repeat([0.1, 3.0], 3))
    for pose in np.random.default_rng(3).uniform(-1.0, 1.0, (12, 6)):
        session.pose = pose
        session.stand()
    knowledge, judgement, _ = session.know()
    assert judgement.lacking in (CENTER_OF_MASS, INERTIA)
    seen = Identifiability(
        np.arange(10) < 4, judgement.reasons, False, INERTIA, judgement.allowed
    )  # as if the centre of mass were known
    advice = advise(knowledge, seen, REQUIRED, joint_axes(session.robot, session.pose))
    assert advice.motion is None
    assert advice.text.startswith('inertia: the sensor cannot see it')
    assert ' N·m rms, ' in advice.text


@pytest.mark.parametrize(
    ('priors', 'said'),
    [
        (
            {'gain_common': 0.03},
            'mass: no turn is enough, as errors of the cell leave std 0.049 kg after every one,',
        ),
        ({'gain': 0.03}, 'turn the sensor about its '),
    ],
)
def test_what_errors_of_the_sensor_leave_is_not_promised(
    priors: dict[str, float], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gain common to all channels stays, however the sensor turns; single gains average out."""
    mount, parameters = MOUNTS['puma'], replace(Parameters(), **priors)
    motion = MOTIONS['poses'](mount, 4.0, np.random.default_rng([3, 0]))
    load = drawn_load(np.random.default_rng([3, 1]), 1.5)
    joints, wrenches = record(sample(mount, motion, 4.0, 500.0), load, Conditions(CellErrors()), 3)
    estimator = settings.payload_estimator(parameters)
    estimator.update(filtered(mount, joints, wrenches, parameters)[0])
    assert estimator.advice().startswith(said)
    assert BEYOND not in estimator.advice()
    # A prior that the data exceed is not told to be lowered without a word.
    monkeypatch.setattr(excitation, 'exceeding', lambda _: frozenset(priors))
    assert (BEYOND in estimator.advice()) == ('errors of the cell' in said)


def test_where_gravity_stays_in_the_axis_no_turn_is_advised() -> None:
    """At rest, turned about the vertical alone, mass and offset of force z stay one."""
    session = Session(WRIST, BLOCK)
    session.pose = np.zeros(3)
    session.stand()
    vertical = RotationAxis('table', np.array([0.0, 0.0, 1.0]), np.array([0.3, 0.0, 0.0]))
    advice = session.advised((vertical,))
    assert advice.motion is None
    assert advice.text == f'mass: {NO_TURN}'


def test_no_joint_is_asked_to_go_faster_than_it_can() -> None:
    axes = tuple(RotationAxis(f'{v}', np.eye(3)[0], np.zeros(3), v) for v in (0.4, 1.5, 2.5, 9.0))
    rates = {axis.name: {m.rate for m in swings(axes) if m.axis is axis} for axis in axes}
    assert rates == {
        '0.4': {0.4},
        '1.5': {1.0, 1.5},
        '2.5': {1.0, 2.0, 2.5},
        '9.0': {1.0, 2.0, 3.0},
    }
