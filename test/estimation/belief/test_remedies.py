"""What is said of a large error of the cell names what to set, and setting it removes it."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from estimates import estimated

from load_identification.estimation.belief import claim
from load_identification.estimation.belief.error_scales import exceeding
from load_identification.estimation.belief.remedies import remedies
from load_identification.estimation.belief.tool import NO_TOOL
from load_identification.estimation.identifiability import Excitation
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.estimation.systematic_errors import CLASSES
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.model.robot import tilted
from load_identification.motion.joint_path import JointPath
from load_identification.motion.limits import Limits
from load_identification.motion.sines import random_sines
from load_identification.pipeline import settings
from load_identification.simulation.cells import Conditions, filtered, record, sample
from load_identification.simulation.motions import MOTIONS, Motion
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import NO_ERRORS, Cell, CellErrors, draw_cell

PUMA = MOUNTS['puma']
LOAD = InertialParameters.from_center_of_mass(
    1.5, np.array([0.05, 0.02, 0.1]), np.diag([0.01, 0.01, 0.005])
)
DOWN = (0.0, 0.0, -9.80665)
SIDEWAYS = (9.80665, 0.0, 0.0)
TILTED = replace(NO_ERRORS, tilt=0.015)


@cache
def played(
    mounted: tuple[float, ...], seed: int, errors: CellErrors, **said: Any
) -> tuple[PayloadEstimator, PayloadEstimate]:
    """Play a cell with some errors and parameters; the arm is as if mounted with that gravity."""
    mount = replace(PUMA, gravity=mounted)
    reach = 0.4 * np.array(mount.upper)
    motion = random_sines(np.zeros(6), Limits(-reach, reach, np.full(6, 1.5)), 10.0, seed)
    path = sample(mount, Motion(JointPath((motion,))), 10.0, 250.0)
    joints, wrenches = record(path, LOAD, Conditions(errors), seed)
    parameters = replace(Parameters(), **{'gravity': mounted, **said})
    batch, _ = filtered(replace(mount, gravity=parameters.gravity), joints, wrenches, parameters)
    estimator = settings.payload_estimator(parameters)
    estimator.update(batch)
    estimator.finish()
    return estimator, estimated(estimator)


def off(seed: int, errors: CellErrors, gravity: tuple[float, ...] = DOWN) -> Cell:
    """Return the cell that is played, drawn as `published` does."""
    rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(4)[0])
    return draw_cell(errors, np.array(gravity), 6, rng)


@pytest.mark.parametrize(
    ('gravity', 'axes', 'seed'),
    [pytest.param(DOWN, 'xy', 2, marks=pytest.mark.seeds), (SIDEWAYS, 'yz', 4)],
    ids=['floor', 'wall'],
)
def test_gravity_set_as_said_leaves_no_tilt(
    gravity: tuple[float, ...], axes: str, seed: int
) -> None:
    _, estimate = played(gravity, seed, TILTED)
    assert len(estimate.warnings) == 1, estimate.warnings
    found = re.fullmatch(
        rf'base tilted (?P<size>-?\d\.\d\d) ± 0\.\d\d° about [{axes}]'
        rf'( and -?\d\.\d\d ± 0\.\d\d° about {axes[1]})?: set gravity to \[(?P<set>.*)\]',
        estimate.warnings[0],
    )
    assert found is not None, estimate.warnings
    said = tuple(float(x) for x in found['set'].split(', '))
    true = off(seed, TILTED, gravity).gravity
    apart, before = (
        np.rad2deg(np.linalg.norm(np.subtract(each, true)) / np.linalg.norm(true))
        for each in (said, gravity)
    )
    assert apart < before / 4.0
    _, again = played(gravity, seed, TILTED, gravity=said)
    assert again.warnings == ()
    left = [x.value for name, x in again.calibration.items() if name.startswith('base_tilt')]
    assert max(map(abs, left), default=0.0) < np.deg2rad(before / 4.0)


@pytest.mark.parametrize(('factor', 'named'), [(1.0, True), (4.0, True), (6.0, False)])
def test_no_error_is_named_where_all_together_are_impossible(
    factor: float, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who set gravity as said, because something had pulled, broke what was right."""
    estimator, _ = played(DOWN, 2, TILTED)
    monkeypatch.setattr(claim, 'conflict', lambda *_: factor**2)
    said = estimator.estimate_with_tool().warnings
    assert any('set gravity' in words for words in said) is named
    together = [words for words in said if f'would be {factor:.1f} times those expected' in words]
    assert len(together) == (factor > 2.0)
    assert len(said) == named + len(together)


@pytest.mark.parametrize('gravity', [DOWN, SIDEWAYS, (0.0, 6.9, -6.9)])
def test_the_gravity_said_is_that_turned_by_both_components(gravity: tuple[float, ...]) -> None:
    tilt = np.deg2rad([1.0, -0.2])
    errors = [(f'base_tilt.{a}', x, 1e-3, 1e-3) for a, x in zip('xy', tilt, strict=True)]
    (words,) = remedies(errors, np.array(gravity), 0.0)
    # A base that is turned one way sees gravity turned the other way.
    assert words.startswith('base tilted -1.00 ')
    said = np.array(words.partition('[')[2].rstrip(']').split(', '), dtype=float)
    expected = np.array(gravity) + tilted(np.array(gravity)) @ tilt
    np.testing.assert_allclose(said, expected, atol=3e-3)
    assert np.linalg.norm(said) == pytest.approx(np.linalg.norm(gravity), abs=1e-3)
    assert '-0.20' not in words


def test_a_tilt_that_may_be_another_error_tied_to_the_pose_is_to_be_measured() -> None:
    """A field of 0.3 N, of 0.1 N said, was a tilt of 1.0 ± 0.5°, with gravity to set."""
    estimator, _ = played(DOWN, 2, TILTED)
    for scale, doubted in ((1.0, False), (2.5, True)):
        scales = np.ones(len(CLASSES) + 1)
        scales[[CLASSES.index('cross_talk'), CLASSES.index('base_tilt')]] = scale, 3.0
        belief = replace(estimator.state[0], scales=scales)
        found = claim.Claim(belief, NO_TOOL, Excitation(0.0, 0.0, 0.0), estimator.settings)
        said = claim.warnings(found, None, 0, '', late=False, low_passed=False)[0]
        assert ('measure the tilt before you set gravity to [' in said) == doubted
        assert ('cross_talk' in exceeding(scales)) == doubted
        assert 'gain' not in exceeding(scales)


def test_a_compliance_is_said_as_a_frequency() -> None:
    (words,) = remedies([('compliance', 7e-4, 5e-5, 1.8e-4)], np.array(DOWN), 0.0)
    assert 'give way as on a spring of 5.6 to 6.5 Hz: start and' in words
    assert words.endswith('set compliance to 0.0007')
    assert remedies([('compliance', -7e-4, 5e-5, 1.8e-4)], np.array(DOWN), 0.0) == []


def test_where_the_sensor_measures_is_said_and_the_inertia_holds() -> None:
    """With 10 mm moments of inertia had been claimed 5 std off, without a word."""
    away = np.array([0.0, 0.0, 0.01])
    path = sample(PUMA, MOTIONS['rich'](PUMA, 15.0, np.random.default_rng(0)), 15.0, 250.0)
    joints, wrenches = record(path, LOAD, Conditions(), 0)
    there = wrenches.wrench.copy()
    there[:, 3:] -= np.cross(away, there[:, :3])
    batch, _ = filtered(PUMA, joints, replace(wrenches, wrench=there), Parameters())
    estimator = settings.payload_estimator(replace(Parameters(), gravity=PUMA.gravity))
    estimate = estimated(estimator, [batch])
    assert estimate.identified.all()
    true = to_message_order(LOAD.to_vector())
    true[1:4] -= away
    assert np.all(np.abs(estimate.values - true) < 3.0 * estimate.std)
    (said,) = [w for w in estimate.warnings if 'the wrench is measured' in w]
    found = re.search(r'measured (\d+\.\d) ± \d+\.\d mm along z from the origin of its', said)
    assert found is not None
    assert float(found[1]) == pytest.approx(10.0, abs=2.0)


@pytest.mark.parametrize(
    ('seed', 'size'), [(2, 0.004), pytest.param(2, 0.03, marks=pytest.mark.seeds)]
)
def test_a_delay_is_said_once_and_set_as_said_is_gone(seed: int, size: float) -> None:
    errors = replace(NO_ERRORS, lag=size)
    before = 0.003
    estimator, estimate = played(DOWN, seed, errors, wrench_delay=before)
    said = [w for w in (*estimate.warnings, estimator.delay_words) if 'wrench_delay' in w]
    assert len(said) == 1, said
    value = float(said[0].partition('set wrench_delay to ')[2])
    assert value == pytest.approx(off(seed, errors).lag, abs=1e-3)
    estimator, estimate = played(DOWN, seed, errors, wrench_delay=value)
    assert (*estimate.warnings, estimator.delay_words) == ('',)
