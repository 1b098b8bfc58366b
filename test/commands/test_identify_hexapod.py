"""`identify_load --mechanism` on recordings of a hexapod, and the demo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from bags import states, write
from exact_hexapod import exact_legs

from load_identification.commands import identify_load as identify
from load_identification.interface.batches import EffortBatch
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.parallel.mechanism import Mechanism
from load_identification.recordings.identification import identify as run_identification
from load_identification.recordings.reader import Topics, open_recording
from load_identification.simulation.hexapod import GEOMETRY, GEOMETRY_FILE

BODY = InertialParameters.from_center_of_mass(31.26, [0.02, -0.01, 0.0], np.diag([0.4, 0.5, 0.8]))


def record(path: Path, legs: EffortBatch, effort: bool = True, gripper: bool = False) -> Path:
    """Write leg states to a recording that has no other topic.

    A gripper's states, which are on the same topic, are 1 ms older than the legs'.
    """
    if not effort:
        legs = replace(legs, effort=np.full_like(legs.effort, np.nan))
    messages = [*states(legs)]
    if gripper:
        shape = len(legs.stamps), 1
        fingers = [np.full(shape, 0.02)] * 3
        messages += states(EffortBatch(('finger',), legs.stamps - 1_000_000, *fingers))
    return write(path, messages)


@pytest.fixture(scope='module')
def legs() -> EffortBatch:
    clean = exact_legs(Mechanism(GEOMETRY), BODY, duration=16.0, rate=250.0)
    friction = 22.0 * np.sign(clean.velocity) + 55.0 * clean.velocity
    noise = np.random.default_rng(1).standard_normal(clean.effort.shape)
    return EffortBatch(
        clean.names, clean.stamps, clean.position, clean.velocity, clean.effort + friction + noise
    )


def test_a_recording_of_leg_states_alone_gives_the_platforms_body(
    legs: EffortBatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / 'estimate.yaml'
    path = record(tmp_path / 'bag', legs)
    status = identify.main([str(path), '--mechanism', str(GEOMETRY_FILE), '--output', str(output)])
    assert status == identify.IDENTIFIED, capsys.readouterr()
    estimate = yaml.safe_load(output.read_text(encoding='utf-8'))
    assert estimate['frame'] == 'platform'
    mass = estimate['mass']
    # One run: four standard deviations.
    assert abs(mass['value'] - BODY.mass) < 4.0 * mass['std']
    assert mass['std'] < 0.3
    assert estimate['samples']['dropped']['leg_speed_low'] > 0


def test_time_is_counted_from_the_first_sample_whatever_else_is_on_the_topic(
    legs: EffortBatch, tmp_path: Path
) -> None:
    first = EffortBatch(
        legs.names,
        *(part[:1500] for part in (legs.stamps, legs.position, legs.velocity, legs.effort)),
    )
    path = record(tmp_path / 'bag', first, gripper=True)
    with open_recording(path, Topics(wrench='')) as recording:
        result = run_identification(recording, Parameters(), mechanism=GEOMETRY_FILE)
    # Filtered samples are half a window of 0.116 s younger than the first that they rest on.
    assert 0 <= result.start - int(legs.stamps[0]) < 100_000_000


def test_a_recording_without_efforts_says_so(
    legs: EffortBatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = record(tmp_path / 'bag', legs, effort=False)
    assert identify.main([str(path), '--mechanism', str(GEOMETRY_FILE)]) == identify.UNUSABLE
    assert 'waiting for the effort of every leg' in capsys.readouterr().err


def test_a_bad_geometry_is_one_line_and_status_2(
    legs: EffortBatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = record(tmp_path / 'bag', legs)
    assert identify.main([str(path), '--mechanism', str(tmp_path / 'no.yaml')]) == 2
    assert capsys.readouterr().err.count('\n') == 1
