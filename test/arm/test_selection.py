"""Friction and lateness of efforts: taken where held-out data say so, and not elsewhere."""

from __future__ import annotations

import numpy as np
import pinocchio
import pytest
from arm_bags import GRAVITY, JOINTS, NOMINAL, RATE, TRUTH, stamps_of

from load_identification.arm.arm_estimate import identified_arm
from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.dynamics.tree import Arm
from load_identification.arm.identification import Session, identify_and_test
from load_identification.arm.methods.drive_gains import Loaded
from load_identification.arm.prediction import relative_error
from load_identification.arm.recording import Recording
from load_identification.arm.settings import Settings
from load_identification.simulation.motions import smooth_motion
from load_identification.simulation.robots import PinocchioArm, inertial, joint
from load_identification.typing_aliases import FloatArray

LEVEL, SLOPE = np.array([3.0, 4.0, 1.5]), np.array([4.0, 5.0, 1.5])
"""Coulomb and viscous friction [N m, N m s/rad]."""

ROTORS, DAMPED = np.array([1.2, 1.5, 0.45]), 10.0
"""Inertia at each joint [kg m^2], and viscous friction in units of `SLOPE`: 30 ms of both."""

GAINS = np.array([8.0, -6.0, 3.0])
"""[N m per ampere]."""

FLANGE = inertial(0.2, '0.01 0 0', (1e-4, 0.0, 0.0, 6e-5, 0.0, 6e-5))
"""Of a disc, turned about its own axis."""

MASS, CENTER = 3.0, np.array([0.3, 0.05, -0.1])
"""Of a load in the last link [kg, m]."""


def moved(seed: int, seconds: float, stribeck: float, load: float, mass: float = 0.0) -> Recording:
    """Return a motion of a seed, with shares of friction at low speed and under load.

    A mass [kg] is held by the last link.
    """
    rng, samples = np.random.default_rng(seed), round(RATE * seconds)
    q, qd, qdd = smooth_motion(rng, 3, samples, 1.0 / RATE)
    arm = PinocchioArm(TRUTH, GRAVITY)
    if mass:
        body = pinocchio.Inertia(mass, CENTER, 0.02 * np.eye(3))
        arm.model.appendBodyToJoint(arm.model.njoints - 1, body, pinocchio.SE3.Identity())
        arm.data = arm.model.createData()
    torque = arm.torque((q, qd, qdd))
    dry = LEVEL * (1.0 + stribeck * np.exp(-((qd / 0.15) ** 2))) + load * np.abs(torque)
    noisy = torque + np.sign(qd) * dry + SLOPE * qd + rng.normal(0.0, 0.02, q.shape)
    times = np.arange(samples) / RATE
    return Recording.held(f'seed {seed}', JOINTS, stamps_of(times), q, qd, noisy)


def selected(stribeck: float, load: float, cutoffs: tuple[float, ...]) -> Session:
    """Identify from one motion, and predict another one."""
    fit, test = moved(2, 20.0, stribeck, load), moved(3, 15.0, stribeck, load)
    return identified(fit, test, cutoffs=cutoffs)


@pytest.mark.parametrize(
    ('stribeck', 'load', 'says'),
    [
        (0.0, 0.0, ''),
        (0.5, 0.0, ', a Stribeck term of 0.'),
        (0.0, 0.08, ', friction in proportion to the load'),
    ],
)
def test_friction_beyond_coulombs_is_taken_where_another_motion_shows_it(
    stribeck: float, load: float, says: str
) -> None:
    plain, chosen = (selected(stribeck, load, cutoffs) for cutoffs in ((), (10.0,)))
    left = [
        relative_error(s.prediction.measured, s.prediction.consistent) for s in (plain, chosen)
    ]
    model = chosen.estimate.model
    assert isinstance(model, ArmModel)
    assert bool(model.drive.stribeck_velocity) == bool(stribeck)
    assert model.drive.load_friction == bool(load)
    assert says in chosen.method
    assert chosen.identified
    if not says:
        assert left[1] == pytest.approx(left[0], rel=0.05)
        return
    assert left[1] < 0.7 * left[0]
    arm = identified_arm(chosen.estimate, 10.0, slow=np.full(len(chosen.estimate.noise), np.nan))
    # Of unknown slow errors, all of the noise may be one.
    np.testing.assert_array_equal(arm.slow, arm.noise)
    assert (arm.values[model.positive] >= 0.0).all()
    if load:
        # 1 N m of the level could be told from 13 N m under load no better than this.
        np.testing.assert_allclose(arm.level('load_friction'), load, atol=0.01)
    # What weighs by the file predicts the same as what was tested.
    motion = smooth_motion(np.random.default_rng(4), 3, 50)
    found = arm.model(NOMINAL).predict(arm.values, motion)
    expected = model.predict(chosen.estimate.consistent, motion)
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_friction_under_load_is_that_of_the_load_found_with_the_drive_gains() -> None:
    """Of a load whose mass alone is known: it hangs far from the origin of its link."""
    empty, held = moved(2, 20.0, 0.0, 0.08), moved(5, 20.0, 0.0, 0.08, MASS)
    drive = DriveModel('symmetric', 'symmetric', offset=True)
    session = identify_and_test(
        ArmModel(Arm(NOMINAL), drive),
        [empty.scaled(1.0 / GAINS)],
        moved(3, 15.0, 0.0, 0.08).scaled(1.0 / GAINS),
        Settings(cutoff=10.0, cutoffs=(10.0,), bandwidth=10.0),
        Loaded(held.scaled(1.0 / GAINS), MASS),
    )
    arm = identified_arm(session.estimate, 10.0, excess=session.excess)
    std = np.sqrt(np.diag(arm.covariance)[-3:])
    np.testing.assert_allclose(arm.level('load_friction'), 0.08, atol=0.01)
    assert np.all(np.abs(arm.effort_scale - GAINS) < 2.5 * std)
    assert np.all(np.abs(arm.effort_scale / GAINS - 1.0) < 0.02)
    np.testing.assert_allclose(session.estimate.gains.load[1:4] / MASS, CENTER, atol=0.01)


def test_a_joint_that_bears_nothing_has_no_friction_under_load() -> None:
    """Its share would be that of noise, as on the flange of an arm that holds nothing."""
    limit = 'lower="-3" upper="3" velocity="3" effort="10"'
    names = 'joint_4', 'revolute', 'link_3', 'flange'
    turned = joint(*names, '0.3 0 0', axis='1 0 0', limit=limit, body=FLANGE)
    whole, known = (urdf.replace('</robot>', f'{turned}</robot>') for urdf in (TRUTH, NOMINAL))

    def flanged(seed: int, seconds: float) -> Recording:
        rng, samples = np.random.default_rng(seed), round(RATE * seconds)
        q, qd, qdd = smooth_motion(rng, 4, samples, 1.0 / RATE)
        torque = PinocchioArm(whole, GRAVITY).torque((q, qd, qdd))
        dry = np.append(LEVEL, 1.0) + 0.08 * np.abs(torque)
        noisy = torque + np.sign(qd) * dry + np.append(SLOPE, 1.0) * qd
        noisy += rng.normal(0.0, [0.02, 0.02, 0.02, 0.1], q.shape)
        stamps = stamps_of(np.arange(samples) / RATE)
        return Recording.held(f'seed {seed}', (*JOINTS, 'joint_4'), stamps, q, qd, noisy)

    session = identify_and_test(
        ArmModel(Arm(known), DriveModel('symmetric', 'symmetric', offset=True)),
        [flanged(2, 20.0)],
        flanged(3, 15.0),
        Settings(cutoff=10.0, cutoffs=(10.0,), bandwidth=10.0),
    )
    assert session.identified
    arm = identified_arm(session.estimate, 10.0, excess=session.excess)
    np.testing.assert_allclose(arm.level('load_friction'), [0.08, 0.08, 0.08, 0.0], atol=0.01)
    words = ' to the load (but of joint_4: too little is borne there to tell)'
    assert words in session.method


def test_a_load_that_the_description_lacks_is_asked_for() -> None:
    logs = [moved(seed, 10.0, 0.0, 0.0, MASS) for seed in (2, 3)]
    drive = DriveModel('symmetric', 'symmetric', offset=True)
    session = identify_and_test(
        ArmModel(Arm(NOMINAL), drive), logs[:1], logs[1], Settings(cutoff=10.0, bandwidth=10.0)
    )
    assert not session.identified
    assert 'does the arm carry what it lacks, or are they motor currents' in session.warnings[0]


def recording(
    seed: int,
    seconds: float,
    delay: float = 0.0,
    low_pass: float = 0.0,
    bristles: float = 0.0,
    motors: bool = False,
) -> Recording:
    """Return a motion whose efforts come after a delay [s], or through a low-pass [Hz].

    With bristles Coulomb friction builds up over a way [rad]. Efforts of motors contain `ROTORS`,
    and `DAMPED` of viscous friction.
    """
    rng, times = np.random.default_rng(seed), np.arange(round(RATE * seconds)) / RATE
    q, qd, qdd = smooth_motion(rng, 3, len(times), 1.0 / RATE)
    dry = bent(q, bristles) if bristles else np.sign(qd)
    effort = PinocchioArm(TRUTH, GRAVITY).torque((q, qd, qdd)) + dry * LEVEL + SLOPE * qd
    if motors:
        effort += ROTORS * qdd + (DAMPED - 1.0) * SLOPE * qd
    if delay:
        effort = np.stack([np.interp(times - delay, times, one) for one in effort.T], axis=1)
    if low_pass:
        share = 1.0 - np.exp(-2.0 * np.pi * low_pass / RATE)
        for k in range(1, len(effort)):
            effort[k] = effort[k - 1] + share * (effort[k] - effort[k - 1])
    effort += rng.normal(0.0, 0.02, q.shape)
    return Recording.held(f'seed {seed}', JOINTS, stamps_of(times), q, qd, effort)


def bent(q: FloatArray, way: float) -> FloatArray:
    """Return what bristles that bend over a way give of their level, (n, J) (Dahl)."""
    out = np.zeros_like(q)
    for k, step in enumerate(np.diff(q, axis=0), start=1):
        out[k] = np.clip(out[k - 1] + step / way * (1.0 - out[k - 1] * np.sign(step)), -1.0, 1.0)
    return out


def identified(
    fit: Recording,
    test: Recording,
    cutoffs: tuple[float, ...] = (10.0,),
    cutoff: float = 10.0,
    rotor_inertia: bool = False,
) -> Session:
    drive = DriveModel('symmetric', 'symmetric', rotor_inertia, offset=True)
    settings = Settings(cutoff=cutoff, cutoffs=cutoffs, bandwidth=10.0)
    return identify_and_test(ArmModel(Arm(NOMINAL), drive), [fit], test, settings)


@pytest.mark.parametrize(
    ('delay', 'low_pass', 'says'),
    [
        pytest.param(0.02, 0.0, 'the efforts are about 20 ms late', marks=pytest.mark.seeds),
        # A first step of 20 ms hardly helps here.
        (0.15, 0.0, 'the efforts are about 150 ms late'),
        (-0.02, 0.0, 'the efforts are about 20 ms early'),
        pytest.param(-0.2, 0.0, 'the efforts are about 200 ms early', marks=pytest.mark.seeds),
        # 75 ms where motion is slow.
        (0.0, 2.0, 'the efforts are about 60 ms late'),
    ],
)
def test_efforts_at_another_time_than_positions_are_named(
    delay: float, low_pass: float, says: str
) -> None:
    session = identified(recording(2, 20.0, delay, low_pass), recording(3, 15.0, delay, low_pass))
    assert session.warnings[0].startswith(says)
    assert not session.identified


def test_late_efforts_are_named_whose_fit_has_a_lower_cutoff_than_the_test() -> None:
    session = identified(
        recording(2, 20.0, 0.05), recording(3, 15.0, 0.05), cutoffs=(7.0,), cutoff=7.0
    )
    assert any(each.startswith('the efforts are about 50 ms late') for each in session.warnings)


@pytest.mark.parametrize('bristles', [pytest.param(0.0, marks=pytest.mark.seeds), 0.05])
def test_efforts_in_time_are_not(bristles: float) -> None:
    """Friction that comes after the velocity reverses is no delay."""
    session = identified(
        recording(2, 20.0, bristles=bristles), recording(3, 15.0, bristles=bristles)
    )
    assert not [each for each in session.warnings if 'against the positions' in each]


@pytest.mark.parametrize('rotor_inertia', [False, True])
def test_efforts_of_motors_are_not_early_but_contain_rotors(rotor_inertia: bool) -> None:
    """Friction with the inertia of rotors is nearly that of a moment later."""
    logs = recording(2, 20.0, motors=True), recording(3, 15.0, motors=True)
    session = identified(*logs, rotor_inertia=rotor_inertia)
    words = ' '.join(session.warnings)
    assert 'against the positions' not in words
    assert ('--rotor-inertia' in words) == (not rotor_inertia)
    assert session.identified == rotor_inertia


def test_early_efforts_of_motors_are_named_with_the_rotors_identified() -> None:
    logs = recording(2, 20.0, -0.05, motors=True), recording(3, 15.0, -0.05, motors=True)
    session = identified(*logs, rotor_inertia=True)
    assert session.warnings[0].startswith('the efforts are about 50 ms early')
