"""Recognition: the nearest known object in the measure of the uncertainty, or none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio
import pytest
import yaml
from checkout import ROOT

from load_identification.model.inertial_parameters import InertialParameters
from load_identification.simulation.sensors import aluminium_block
from load_identification.typing_aliases import FloatArray
from load_identification.weighing.catalogue import CatalogueError, KnownObject, load_catalogue
from load_identification.weighing.recognition import mass_alone, mass_and_moments, recognize
from load_identification.weighing.verdict import INCONCLUSIVE, MATCH, MISMATCH

EXAMPLE = ROOT / 'config' / 'catalogue.yaml'
BLOCK = np.array([0.002379, 0.002379, 0.000476])
PLATE = np.array([0.004281, 0.002167, 0.002167])


def body(mass: float, moments: FloatArray, seed: int = 0) -> InertialParameters:
    """Return a body held anyhow."""
    rng = np.random.default_rng(seed)
    turn = pinocchio.Quaternion(*(q := rng.standard_normal(4)) / np.linalg.norm(q)).matrix()
    center = 0.05 * rng.standard_normal(3)
    return InertialParameters.from_center_of_mass(mass, center, turn @ np.diag(moments) @ turn.T)


COVARIANCE = np.diag([1e-3] + [3e-5] * 3 + [3e-5] * 6) ** 2


def test_example_catalogue_is_read_and_its_moments_are_those_of_its_bodies() -> None:
    objects = {known.name: known for known in load_catalogue(EXAMPLE)}
    block, plate = objects['aluminium_block'], objects['aluminium_plate']
    for known, inches in ((block, (2.0, 2.0, 6.0)), (plate, (6.0, 6.0, 2.0 / 3.0))):
        sides = 0.0254 * np.array(inches)
        moments = known.mass * (np.sum(sides**2) - sides**2) / 12.0
        assert known.principal_moments is not None
        np.testing.assert_allclose(known.principal_moments, np.sort(moments)[::-1], atol=1e-6)
    assert objects['bottle_full'].principal_moments is None


def test_at_rest_mass_alone_names_the_object_and_the_runner_up() -> None:
    found = recognize(mass_alone(0.541, 0.003), load_catalogue(EXAMPLE))
    assert found.verdict.verdict == MATCH
    assert found.best.entry.name == 'bottle_full'
    assert found.best.features == 1
    assert found.runner_up is not None
    assert found.runner_up.entry.name != 'bottle_full'


def test_two_of_one_mass_are_distinguished_by_motion_whatever_the_grasp() -> None:
    objects = load_catalogue(EXAMPLE)
    at_rest = recognize(mass_alone(1.106, 0.002), objects)
    assert at_rest.verdict.verdict == INCONCLUSIVE
    assert {'aluminium_block', 'aluminium_plate'} == {
        at_rest.best.entry.name, at_rest.runner_up.entry.name  # type: ignore[union-attr]
    }  # fmt: skip
    assert 'move it' in at_rest.verdict.reason
    for name, moments in (('aluminium_block', BLOCK), ('aluminium_plate', PLATE)):
        for seed in range(5):
            features = mass_and_moments(body(1.106, moments, seed).to_vector(), COVARIANCE)
            found = recognize(features, objects)
            assert (found.verdict.verdict, found.best.entry.name) == (MATCH, name)
            assert found.best.features == 4


def test_an_unknown_object_is_called_so() -> None:
    found = recognize(mass_alone(0.8, 0.003), load_catalogue(EXAMPLE))
    assert found.verdict.verdict == MISMATCH
    assert found.verdict.reason.startswith('unknown object: mass 0.8000 ± 0.0059 kg')


def test_right_mass_with_wrong_moments_is_unknown() -> None:
    features = mass_and_moments(body(1.106, 1.3 * BLOCK).to_vector(), COVARIANCE)
    assert recognize(features, load_catalogue(EXAMPLE)).verdict.verdict == MISMATCH


def test_a_vague_mass_names_nobody() -> None:
    only = (KnownObject('only', 1.0, 0.01),)
    assert recognize(mass_alone(1.0, 0.001), only).verdict.verdict == MATCH
    vague = recognize(mass_alone(1.3, 0.5), only)
    assert vague.verdict.verdict == INCONCLUSIVE
    assert 'too vague' in vague.verdict.reason
    assert vague.runner_up is None


def test_a_mass_that_this_sensor_has_measured_is_compared_without_its_gains(
    tmp_path: Path,
) -> None:
    path = tmp_path / 'c.yaml'
    own = GOOD | {'name': 'own', 'mass': 0.312, 'mass_tolerance': 0.001, 'by_this_sensor': True}
    path.write_text(yaml.safe_dump({'objects': [GOOD | {'mass_tolerance': 0.001}, own]}))
    objects = load_catalogue(path)
    # Gains may be wrong by 10 g and repeat to 1 g: only the mass on a label may be 10 g off.
    weighed = mass_alone(0.300, 0.010, 0.001)
    assert [recognize(weighed, (each,)).verdict.verdict for each in objects] == [MATCH, MISMATCH]
    again = mass_alone(0.312, 0.010, 0.001)
    assert recognize(again, objects[1:]).verdict.verdict == MATCH


def test_a_mass_that_this_sensor_has_measured_counts_as_such_beside_moments() -> None:
    """It had no effect once motion had told the moments: 15 g off was a match."""
    body = aluminium_block()
    phi, mass = body.to_vector(), body.mass
    moments = np.linalg.eigvalsh(body.inertia_about_center_of_mass)[::-1]
    # The common gain is known to 0.5 %, 5.5 g; the sensor repeats to 1 g.
    common = np.outer(phi, phi) * 0.005**2
    covariance = common + np.diag([1e-3**2] + [1e-4**2] * 3 + [1e-5**2] * 6)
    seen = mass_and_moments(phi, covariance, common)
    assert np.all(np.linalg.eigvalsh(seen.repeated) > 0.0)
    verdicts = [
        recognize(
            seen,
            (
                KnownObject(
                    'own',
                    mass - off,
                    0.001,
                    principal_moments=moments,
                    principal_moments_tolerance=1e-4,
                    by_this_sensor=own,
                ),
            ),
        ).verdict.verdict
        for own, off in ((False, 0.015), (True, 0.015), (True, 0.001))
    ]
    assert verdicts == [MATCH, MISMATCH, MATCH]


def test_moments_of_a_gain_that_two_measurements_share_leave_honest_distances() -> None:
    """Draw both errors: of 1500 true objects 1 % are called unknown."""
    rng, body = np.random.default_rng(3), aluminium_block()
    phi = body.to_vector()
    moments = np.linalg.eigvalsh(body.inertia_about_center_of_mass)[::-1]
    common = np.outer(phi, phi) * 0.005**2
    alone = np.diag([3e-3**2] + [1e-4**2] * 3 + [1e-5**2] * 6)
    unknown, count = 0, 1500
    for _ in range(count):
        gain = 0.005 * rng.standard_normal()
        found = phi * (1.0 + gain) + np.sqrt(np.diag(alone)) * rng.standard_normal(10)
        before = body.mass * (1.0 + gain) + 3e-3 * rng.standard_normal()
        known = KnownObject(
            'own',
            before,
            1e-6,
            principal_moments=moments,
            principal_moments_tolerance=1e-9,
            by_this_sensor=True,
        )
        seen = mass_and_moments(found, common + alone, common)
        unknown += recognize(seen, (known,)).verdict.verdict == MISMATCH
    assert unknown < 0.02 * count


@pytest.mark.parametrize('moments', [BLOCK, PLATE, np.array([0.004, 0.003, 0.002])])
def test_the_right_object_is_seldom_called_unknown(moments: FloatArray) -> None:
    rng = np.random.default_rng(0)
    known = (KnownObject('it', 1.106, 1e-4, None, moments, 1e-6),)
    root = np.sqrt(np.diag(COVARIANCE))
    wrong = 0
    for seed in range(200):
        measured = body(1.106, moments, seed).to_vector() + root * rng.standard_normal(10)
        found = recognize(mass_and_moments(measured, COVARIANCE), known)
        wrong += found.verdict.verdict == MISMATCH
    # 1 % by the quantile; three standard deviations of 200 draws make 3.1 %. Equal moments
    # count as more uncertain than they are.
    assert wrong <= 6


def grasped(tmp_path: Path, orientation: list[float]) -> tuple[KnownObject, ...]:
    """Read a catalogue of two cups that differ only in where their centre of mass is."""
    cups = [
        {
            'name': name,
            'mass': 0.3,
            'mass_tolerance': 0.01,
            'center_of_mass': center,
            'center_of_mass_tolerance': 0.005,
        }
        for name, center in (('upright', [0.03, 0.0, 0.0]), ('tilted', [0.0, 0.03, 0.0]))
    ]
    frame = {'position': [0.0, 0.0, 0.1], 'orientation': orientation}
    path = tmp_path / 'c.yaml'
    path.write_text(yaml.safe_dump({'grasp_frame': frame, 'objects': cups}))
    return load_catalogue(path)


def test_the_place_in_the_sensor_frame_is_that_of_the_grasp_frame(tmp_path: Path) -> None:
    angles = [0.3, -0.5, 1.1]
    upright, tilted = grasped(tmp_path, angles)
    turn = pinocchio.rpy.rpyToMatrix(*angles)
    for known, center in ((upright, [0.03, 0, 0]), (tilted, [0, 0.03, 0])):
        assert known.place is not None
        np.testing.assert_allclose(known.place, turn @ center + [0, 0, 0.1], atol=1e-12)


def test_the_centre_of_mass_decides_between_objects_alike_where_the_grasp_is_known(
    tmp_path: Path,
) -> None:
    objects = grasped(tmp_path, [0.0, 0.0, 0.0])
    # What one pose sees: not along gravity, here z.
    covariance = np.diag([1e-3, 1e-3, 1e2]) ** 2
    features = mass_alone(0.3, 0.001)
    assert recognize(features, objects).verdict.verdict == INCONCLUSIVE
    for known in objects:
        assert known.place is not None
        center = known.place + np.array([0.001, 0.0, 7.0])
        found = recognize(features, objects, center, covariance)
        assert (found.verdict.verdict, found.best.entry, found.known) == (MATCH, known, True)
    assert found.runner_up is not None
    assert found.runner_up.entry.name == 'upright'


def test_a_known_object_held_off_its_place_is_named_and_a_mismatch(tmp_path: Path) -> None:
    upright = grasped(tmp_path, [0.0, 0.0, 0.0])[:1]
    assert upright[0].place is not None
    center = upright[0].place + np.array([0.0, 0.012, 0.0])
    found = recognize(mass_alone(0.3, 0.001), upright, center, 1e-8 * np.eye(3))
    assert found.known
    assert found.verdict.verdict == MISMATCH
    assert found.verdict.reason == 'upright: held 12.0 ± 0.2 mm off, 5.0 allowed'
    other = recognize(mass_alone(0.5, 0.001), upright, upright[0].place, 1e-8 * np.eye(3))
    assert not other.known
    assert other.verdict.reason.startswith('unknown object')


@pytest.mark.parametrize(
    ('frame', 'words'),
    [
        ([0, 0, 0], r'grasp_frame is \[0, 0, 0\]; it must hold position and orientation'),
        ({'position': [0, 0, 0]}, 'it must hold position and orientation'),
        ({'position': [0, 0], 'orientation': [0, 0, 0]}, r'position is \[0, 0\]'),
        ({'position': None, 'orientation': [0, 0, 0]}, 'grasp_frame.position is None'),
        (
            {'position': [0, 0, 0], 'orientation': [0, 0, 0]},
            'cup: center_of_mass_tolerance is None',
        ),
    ],
)
def test_a_bad_grasp_frame_is_named_with_its_value(frame: Any, words: str, tmp_path: Path) -> None:
    path = tmp_path / 'c.yaml'
    cup = GOOD | {'center_of_mass': [0, 0, 0]}
    path.write_text(yaml.safe_dump({'grasp_frame': frame, 'objects': [cup]}))
    with pytest.raises(CatalogueError, match=words):
        load_catalogue(path)


GOOD: dict[str, Any] = {'name': 'cup', 'mass': 0.3, 'mass_tolerance': 0.01}


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        ({'mass': 0}, r'cup: mass is 0; it must be a number from 1e-12 to 1e\+06'),
        ({'mass': 'heavy'}, r"mass is 'heavy'"),
        ({'mass': True}, r'mass is True'),
        ({'mass_tolerance': None}, r'mass_tolerance is None'),
        ({'by_this_sensor': 'yes'}, r"by_this_sensor is 'yes', not true or false"),
        ({'principal_moments': [1, 2]}, r'principal_moments is \[1, 2\]; it must be'),
        ({'principal_moments': [1, 1, 1]}, r'principal_moments_tolerance is None'),
        (
            {'principal_moments': [1, 2, 3], 'principal_moments_tolerance': 0.1},
            r'must be positive, largest first',
        ),
        (
            {'principal_moments': [9, 3, 2], 'principal_moments_tolerance': 0.1},
            r'must be positive, largest first',
        ),
        ({'center_of_mass': 'middle'}, r"center_of_mass is 'middle'"),
        ({'colour': 'red'}, r'no field colour'),
        ({'name': 7}, r'is no object with a name'),
    ],
)
def test_a_bad_entry_is_named_with_its_value(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    path = tmp_path / 'c.yaml'
    path.write_text(yaml.safe_dump({'objects': [GOOD]}))
    assert load_catalogue(path)[0].name == 'cup'
    path.write_text(yaml.safe_dump({'objects': [GOOD | change]}))
    with pytest.raises(CatalogueError, match=words):
        load_catalogue(path)


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('objects: []', 'must hold a list'),
        ('[]', 'must hold a list'),
        ('objects: [', 'while parsing'),
        (yaml.safe_dump({'objects': [GOOD, GOOD]}), 'cup is in it twice'),
    ],
)
def test_an_unusable_catalogue_is_refused_in_one_line(
    text: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / 'c.yaml'
    path.write_text(text)
    with pytest.raises(CatalogueError, match=words) as raised:
        load_catalogue(path)
    assert '\n' not in str(raised.value)
    assert str(path) in str(raised.value)
