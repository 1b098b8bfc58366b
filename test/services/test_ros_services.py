"""Masses checked and tools saved, called from outside over DDS while samples stream."""

from __future__ import annotations

import re

import numpy as np
import pytest
import yaml
from ros_arm import SMALL, Answer, Arm, file_of
from ros_messages import PAYLOAD
from ros_pipeline import Pipeline

from load_identification.model.inertial_parameters import InertialParameters


def expecting(arm: Arm, mass: float, tolerance: float, center_tolerance: float = 0.0) -> None:
    """Set what is expected."""
    results = arm.set(
        expected_mass=mass,
        mass_tolerance=tolerance,
        expected_center_of_mass=PAYLOAD.center_of_mass.tolist(),
        center_of_mass_tolerance=center_tolerance,
    )
    assert all(result.successful for result in results), results


def test_check_mass_in_one_pose_against_what_a_planner_has_set(arm: Arm) -> None:
    arm.calibrated()
    arm.body = PAYLOAD
    arm.move_to(100)
    arm.rest(0.3)
    expecting(arm, PAYLOAD.mass, 0.05)
    match = arm.call('check_mass')
    parts = [match.says[f'mass.std.{each}'] for each in ('noise', 'drift', 'calibration', 'tool')]
    assert np.hypot.reduce(parts) == pytest.approx(match.says['mass_std'], rel=1e-4)
    assert match.success
    assert match.says['verdict'] == 'match'
    assert abs(match.says['mass'] - PAYLOAD.mass) < 5.0 * match.says['mass_std']
    down = np.array(match.says['gravity_direction'])
    across = PAYLOAD.center_of_mass - down * (down @ PAYLOAD.center_of_mass)
    # 1 % of mass and torque noise of 0.6 mN m over 10.8 N: well below half a millimetre.
    np.testing.assert_allclose(match.says['center_of_mass_across_gravity'], across, atol=5e-4)
    expecting(arm, 1.0, 0.05)
    mismatch = arm.call('check_mass')
    assert not mismatch.success
    assert mismatch.says['verdict'] == 'mismatch'
    assert re.match(r'mass 1\.1\d* ± 0\.\d+ kg, expected 1\.0000 within 0\.05', mismatch.reason)
    expecting(arm, PAYLOAD.mass + 0.05, 0.05)
    edge = arm.call('check_mass')
    assert edge.says['verdict'] == 'inconclusive'
    assert re.search(r'(more poses?|would be needed)', edge.reason)


def test_a_load_held_off_its_place_is_a_mismatch_in_millimetres(arm: Arm) -> None:
    arm.calibrated()
    arm.body = PAYLOAD
    arm.move_to(100)
    arm.rest(0.3)
    expecting(arm, PAYLOAD.mass, 0.05, 0.005)
    assert arm.call('check_mass').success
    down = np.array(arm.call('check_mass').says['gravity_direction'])
    aside = np.cross(down, [1.0, 0.0, 0.0])
    arm.body = InertialParameters.from_center_of_mass(
        PAYLOAD.mass,
        PAYLOAD.center_of_mass + 0.012 * aside / np.linalg.norm(aside),
        PAYLOAD.inertia_about_center_of_mass,
    )
    arm.rest(0.3)
    answer = arm.call('check_mass')
    assert answer.says['verdict'] == 'mismatch'
    assert re.search(r'held 1[12]\.\d ± \d\.\d mm off, 5\.0 allowed', answer.reason)


def test_parameters_at_run_time_are_checked(arm: Arm) -> None:
    (result,) = arm.set(mass_tolerance=-1.0)
    assert not result.successful
    assert 'it must be a number from 1e-06 to 1000 kg' in result.reason
    (result,) = arm.set(expected_center_of_mass=[0.0, 1.0])
    assert not result.successful
    assert 'expected_center_of_mass' in result.reason
    (result,) = arm.set(force_noise=1.0)
    assert not result.successful
    (result,) = arm.set(expected_mass=2.0)
    assert result.successful
    expecting(arm, -1.0, 0.05)
    arm.calibrated()
    assert 'set expected_mass or a catalogue' in arm.call('check_mass').reason


def test_a_tool_is_subtracted_and_its_uncertainty_carried(
    arm: Arm, live: tuple[Arm, Pipeline]
) -> None:
    pipeline = live[1]
    assert 'nothing hangs' in empty(arm).reason
    arm.body = PAYLOAD
    arm.call('reset')
    arm.run()
    saved = arm.call('save_tool')
    assert saved.success, saved.says
    assert saved.says['mass'] == pytest.approx(PAYLOAD.mass, abs=5 * saved.says['mass_std'])
    stored = yaml.safe_load(file_of(arm.group).read_text())
    assert stored['tool']['value'][0] == pytest.approx(saved.says['mass'], rel=1e-4)
    pipeline.settle()
    assert abs(pipeline.number('mass')) < 4.0 * pipeline.number('mass.std')
    assert pipeline.status['com.x.identified'] == 'false'
    assert 'nothing is held' in pipeline.words
    arm.body = PAYLOAD + SMALL
    arm.call('reset')
    arm.run()
    pipeline.settle()
    std = pipeline.number('mass.std')
    assert abs(pipeline.number('mass') - SMALL.mass) < 4.0 * std
    assert std > saved.says['mass_std']
    center = pipeline.numbers(f'com.{axis}' for axis in 'xyz')
    center_std = pipeline.numbers(f'com.{axis}.std' for axis in 'xyz')
    assert np.all(np.abs(center - SMALL.center_of_mass) < 4.0 * center_std)
    assert arm.call('clear_tool').success
    pipeline.settle()
    assert pipeline.number('mass') == pytest.approx(PAYLOAD.mass + SMALL.mass, abs=0.02)
    assert yaml.safe_load(file_of(arm.group).read_text())['tool'] is None


def empty(arm: Arm) -> Answer:
    """Call save_tool with nothing on the calibrated sensor."""
    arm.calibrated()
    arm.rest(0.5)
    return arm.call('save_tool')


def test_save_tool_refuses_what_is_not_identified(arm: Arm) -> None:
    arm.calibrated()
    arm.body = PAYLOAD
    arm.rest(0.2)
    arm.call('reset')
    arm.rest(0.8)
    answer = arm.call('save_tool')
    assert not answer.success
    assert re.match(r'(centre of mass x, y, z unknown|mass std)', answer.reason)


def test_one_service_twice_is_told_so_and_others_run_beside(arm: Arm) -> None:
    arm.rest(0.3)
    arm.call('reset')
    first, second, check, reset, clear = arm.answers(
        'calibrate_offset', 'calibrate_offset', 'check_mass', 'reset', 'clear_tool'
    )
    busy, done = sorted([first, second], key=lambda answer: answer.success)
    assert done.success
    assert busy.reason == 'calibrate_offset is already running: wait for its answer'
    # At once, not after the one that runs.
    assert busy.took < done.took
    assert 'mass' in check.says
    assert reset.success
    assert clear.success


def test_a_mass_that_the_node_has_published_is_compared_with_what_was_known_then(arm: Arm) -> None:
    """The number names the measurement: errors of cell and offset that are in both cancel."""
    arm.calibrated()
    arm.body = PAYLOAD
    for sample in (0, 100, 200):
        arm.move_to(sample)
        arm.rest(0.6)
    first = arm.call('check_mass').says
    arm.set(expected_mass=first['mass'], mass_tolerance=0.01, expected_by_this_sensor=True)
    answers: list[Answer] = []

    def decided() -> bool:
        answers.append(arm.call('check_mass'))
        return bool(answers[-1].says['verdict'] != 'inconclusive')

    # Half a second of samples has a std of 2 to 4 g, the more of them a busy machine loses.
    arm.group.wait_for(decided, 'a std that 10 g are told by')
    again = answers[-1]
    assert again.success, again.says
    assert abs(again.says['mass_from_expected']) < 4.0 * again.says['mass_from_expected_std']
    assert again.says['mass_from_expected_std'] < 0.005
    # A mass on a label is another matter.
    arm.set(expected_mass=first['mass'] + 0.00123, mass_tolerance=1e-4)
    label = arm.call('check_mass')
    assert 'mass_from_expected' not in label.says
    assert 'no number that this node has published' in label.reason
