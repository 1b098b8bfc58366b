"""A sensor in the flange of the arm, behind the last joint's gear, feels that joint's friction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import to_message_order
from load_identification.pipeline import settings
from load_identification.simulation.cells import RUBBING, Conditions, filtered, record, sample
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import CellErrors
from load_identification.simulation.sensors import aluminium_block

TRUTH = to_message_order(aluminium_block().to_vector())


def identified(
    robot: str,
    motion: str,
    conditions: Conditions,
    joint_friction: float = 0.05,
    known: bool = True,
) -> tuple[PayloadEstimate, int]:
    """Return what is found in eight seconds, and how many events there were."""
    mount = MOUNTS[robot]
    drawn = MOTIONS[motion](mount, 9.0, np.random.default_rng(5))
    joints, wrenches = record(sample(mount, drawn, 8.5, 500.0), aluminium_block(), conditions, 5)
    parameters = replace(Parameters(), gravity=mount.gravity, joint_friction=joint_friction)
    batch, _ = filtered(mount, joints, wrenches, parameters)
    estimator = settings.payload_estimator(parameters)
    nothing = np.empty((len(batch.stamps), 6, 0))
    estimator.update(batch if known else replace(batch, robot=None, sensitivity=nothing))
    estimate = estimator.estimate()
    assert estimate is not None
    return estimate, len(estimator.events.since(0))


def deviations(estimate: PayloadEstimate) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return errors over standard deviations of what is identified."""
    return np.abs((estimate.values - TRUTH) / estimate.std)[estimate.identified]


@pytest.mark.parametrize(
    ('robot', 'motion'),
    [
        ('scara', 'rich'),
        pytest.param('puma', 'tool-down', marks=pytest.mark.seeds),
        pytest.param('seven_joints', 'tool-down', marks=pytest.mark.seeds),
    ],
)
def test_friction_of_the_last_joint_is_found_and_taken_off(robot: str, motion: str) -> None:
    estimate, events = identified(robot, motion, Conditions(CellErrors(), tied=('friction',)))
    assert estimate.identified[:4].all()
    assert deviations(estimate).max() < 3.0
    assert events == 0
    found = estimate.calibration['joint_friction'].value
    assert found == pytest.approx(RUBBING, rel=0.1)
    assert 'joint_friction.slow' not in estimate.calibration
    said = [words for words in estimate.warnings if 'friction' in words]
    assert len(said) == 1
    assert f'the sensor feels friction of the last joint, {found:.2f} ± 0.0' in said[0]


def test_friction_that_is_left_out_is_taken_for_inertia_or_hides_it() -> None:
    friction = Conditions(CellErrors(), tied=('friction',))
    found, _ = identified('puma', 'rich', friction)
    assert found.identified.all()
    without, _ = identified('puma', 'rich', friction, joint_friction=0.0)
    assert not without.identified[4:].all() or deviations(without).max() > 4.0


def test_a_sensor_that_feels_no_friction_is_not_said_to() -> None:
    estimate, _ = identified('puma', 'rich', Conditions(CellErrors()))
    assert estimate.identified.all()
    assert abs(estimate.calibration['joint_friction'].value) < 0.005
    assert not any('friction' in words for words in estimate.warnings)


def test_where_the_joints_are_not_known_there_is_no_friction_to_find() -> None:
    estimate, _ = identified('puma', 'rich', Conditions(CellErrors()), known=False)
    assert not any('friction' in name for name in estimate.calibration)


def claims(moving: float, ends: tuple[float, ...]) -> list[PayloadEstimate]:
    """Return the estimates at these times, of an arm that stands still after some motion [s]."""
    mount = MOUNTS['puma']
    path = MOTIONS['rich'](mount, moving, np.random.default_rng(5))
    track = sample(mount, path, max(ends), 250.0)
    joints, wrenches = record(track, aluminium_block(), Conditions(CellErrors()), 5)
    parameters = replace(Parameters(), gravity=mount.gravity, joint_friction=0.15)
    batch, _ = filtered(mount, joints, wrenches, parameters)
    assert batch.rest[-1]
    estimator = settings.payload_estimator(parameters)
    found = []
    for end in ends:
        before = batch.stamps <= round(end * 1e9)
        estimator.update(batch.select(before & (batch.stamps > estimator.newest)))
        estimate = estimator.estimate()
        assert estimate is not None
        found.append(estimate)
    return found


def test_standing_still_does_not_make_the_centre_of_mass_less_certain() -> None:
    first, last = claims(11.0, (13.0, 28.0))
    assert first.identified[:4].all()
    assert last.identified[:4].all()
    assert (last.std[:4] < 1.2 * first.std[:4]).all()


def test_coming_to_rest_does_not_lose_what_the_motion_has_shown() -> None:
    first, last = claims(7.0, (7.0, 11.0))
    assert last.identified.all()
    assert last.calibration['joint_friction'].std < 1.2 * first.calibration['joint_friction'].std
