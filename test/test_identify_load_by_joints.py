"""`identify_load --arm-model`: a payload out of a recording of joint efforts alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from bags import description, error_of, states, write

from load_identification.arm.arm_file import write_arm_model
from load_identification.commands.identify_load import IDENTIFIED, main
from load_identification.interface.batches import EffortBatch
from load_identification.model.inertial_parameters import to_message_order
from load_identification.simulation.robots import SEVEN_JOINTS
from load_identification.simulation.weighing_arm import FRAME, PAYLOAD, exact_arm, run

TRUTH = to_message_order(PAYLOAD.to_vector())


@pytest.fixture(scope='module')
def joints() -> EffortBatch:
    """Return 14 s of joint states under the payload."""
    return run(14.0, 3, PAYLOAD).measured(1)


@pytest.fixture
def arm_model(tmp_path: Path) -> Path:
    path = tmp_path / 'arm.yaml'
    write_arm_model(path, exact_arm())
    return path


@pytest.fixture
def recording(tmp_path: Path, joints: EffortBatch) -> Path:
    return write(tmp_path / 'bag', [description(SEVEN_JOINTS.urdf), *states(joints)])


def test_a_recording_of_joint_efforts_gives_the_payload(
    recording: Path, arm_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, report = tmp_path / 'estimate.yaml', tmp_path / 'report'
    options = ['--arm-model', arm_model, '--sensor-frame', FRAME]
    options += ['--output', output, '--report', report]
    assert main([str(part) for part in (recording, *options)]) == IDENTIFIED
    said = capsys.readouterr().out
    assert f'Payload in {FRAME}' in said
    assert '0 wrenches' in said
    found = yaml.safe_load(output.read_text(encoding='utf-8'))
    assert found['frame'] == FRAME
    value = np.array([found['mass']['value'], *found['center_of_mass']['value']])
    std = np.array([found['mass']['std'], *found['center_of_mass']['std']])
    # One run: four standard deviations.
    assert (np.abs(value - TRUTH[:4]) < 4.0 * std).all()
    assert found['samples']['dropped']['friction_unknown'] > 0
    assert FRAME in (report / 'report.html').read_text(encoding='utf-8')


def test_the_description_may_be_a_file_and_the_frame_on_tf_static(
    joints: EffortBatch, arm_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    urdf = tmp_path / 'arm.urdf'
    urdf.write_text(SEVEN_JOINTS.urdf, encoding='utf-8')
    bag = write(tmp_path / 'bag', states(joints.select(slice(0, 2000))))
    assert 'robot_description' in error_of(capsys, bag, '--arm-model', arm_model)
    options = ['--arm-model', str(arm_model), '--description', str(urdf)]
    assert main([str(bag), *options]) == IDENTIFIED
    # Without a frame it is that of the last link.
    assert 'Payload in left_link_7' in capsys.readouterr().out
    message = error_of(capsys, bag, *options, '--sensor-frame', 'elsewhere')
    assert 'elsewhere' in message


def test_what_cannot_be_used_is_said_in_a_line(
    recording: Path,
    joints: EffortBatch,
    arm_model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = ('--arm-model', arm_model)
    assert 'cannot be read' in error_of(capsys, recording, '--arm-model', tmp_path / 'no.yaml')
    assert 'leave out --gravity' in error_of(capsys, recording, *model, '--gravity', 0, 0, -9.8)
    assert 'one at a time' in error_of(capsys, recording, *model, '--mechanism', arm_model)
    mute = replace(joints, effort=np.full_like(joints.effort, np.nan)).select(slice(0, 500))
    bag = write(tmp_path / 'mute', [description(SEVEN_JOINTS.urdf), *states(mute)])
    assert 'waiting for the effort of left_1, left_2' in error_of(capsys, bag, *model)
    parts = (joints.position, joints.velocity, joints.effort)
    five = [np.ascontiguousarray(part[:500, :5]) for part in parts]
    few = EffortBatch(joints.names[:5], joints.stamps[:500], *five)
    bag = write(tmp_path / 'few', [description(SEVEN_JOINTS.urdf), *states(few)])
    assert 'the joint states lack left_6, left_7' in error_of(capsys, bag, *model)
    bag = write(tmp_path / 'other', [description(), *states(joints.select(slice(0, 50)))])
    assert 'left_1' in error_of(capsys, bag, *model)
