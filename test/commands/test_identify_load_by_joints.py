"""`identify_load --arm-model`: a payload out of a recording of joint efforts alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from bags import description, error_of, states, write
from exact_hexapod import exact_legs

from load_identification.arm.arm_file import write_arm_model
from load_identification.commands import identify_load as identify
from load_identification.commands.identify_arm import main as identify_arm
from load_identification.commands.identify_load import main
from load_identification.interface.batches import EffortBatch
from load_identification.interface.parameters import Parameters
from load_identification.interface.program import DONE, UNUSABLE
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.parallel.mechanism import Mechanism
from load_identification.recordings.identification import identify as run_identification
from load_identification.recordings.reader import Topics, open_recording
from load_identification.simulation.hexapod import GEOMETRY, GEOMETRY_FILE
from load_identification.simulation.robots import SEVEN_JOINTS, joint
from load_identification.simulation.weighing_arm import FRAME, PAYLOAD, exact_arm, run

TRUTH = to_message_order(PAYLOAD.to_vector())

BODY = InertialParameters.from_center_of_mass(31.26, [0.02, -0.01, 0.0], np.diag([0.4, 0.5, 0.8]))


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


@pytest.mark.usefixtures('undrawn')
def test_a_recording_of_joint_efforts_gives_the_payload(
    recording: Path, arm_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, report = tmp_path / 'estimate.yaml', tmp_path / 'report'
    options = ['--arm-model', arm_model, '--sensor-frame', FRAME]
    options += ['--output', output, '--report', report]
    assert main([str(part) for part in (recording, *options)]) == DONE
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


@pytest.mark.usefixtures('unchosen')
def test_an_arm_on_a_torso_is_identified_and_weighs(
    joints: EffortBatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # What is fixed in `SEVEN_JOINTS` hangs on a lift and turns here, and has a head besides.
    urdf = SEVEN_JOINTS.urdf.replace('name="tilt" type="fixed"', 'name="tilt" type="continuous"')
    urdf = urdf.replace('<parent link="world"/>', '<parent link="column"/>')
    parts = ('lift', 'prismatic', 'world', 'column'), ('head', 'revolute', 'torso', 'eye')
    more = ''.join(joint(*part) for part in parts)
    urdf = urdf.replace('</robot>', f'{more}</robot>')
    bare = write(
        tmp_path / 'bare', [description(urdf), *states(run(25.0, 0, rate=125.0).measured(0))]
    )
    arm, output = tmp_path / 'arm.yaml', tmp_path / 'estimate.yaml'
    assert identify_arm([str(bare), '--cutoff', '10', '--model', str(arm)]) == DONE
    assert 'locked at zero: lift, tilt, head, right_1' in capsys.readouterr().out

    def standing(lift: float, tilt: float) -> Path:
        still = np.array([lift, tilt]) * np.ones((len(joints.stamps), 1))
        batch = replace(
            joints,
            names=(*joints.names, 'lift', 'tilt'),
            position=np.hstack([joints.position, still]),
            velocity=np.hstack([joints.velocity, np.nan * still]),
            effort=np.hstack([joints.effort, 0.0 * still]),
        )
        return write(tmp_path / f'{lift}_{tilt}', [description(urdf), *states(batch)])

    options = [str(x) for x in ('--arm-model', arm, '--sensor-frame', FRAME, '--output', output)]
    # Where a lift is no effort shows; a turn that tilts the arm is not guessed at.
    assert main([str(standing(0.4, 0.0)), *options]) == DONE
    mass = yaml.safe_load(output.read_text(encoding='utf-8'))['mass']
    assert abs(mass['value'] - PAYLOAD.mass) < 3.0 * mass['std'] < 0.15
    capsys.readouterr()
    message = error_of(capsys, standing(0.4, 0.3), *options)
    assert 'waiting for tilt at zero, where the arm was identified' in message


def test_the_description_may_be_a_file_and_the_frame_on_tf_static(
    joints: EffortBatch, arm_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    urdf = tmp_path / 'arm.urdf'
    urdf.write_text(SEVEN_JOINTS.urdf, encoding='utf-8')
    bag = write(tmp_path / 'bag', states(joints.select(slice(0, 2000))))
    assert 'robot_description' in error_of(capsys, bag, '--arm-model', arm_model)
    options = ['--arm-model', str(arm_model), '--description', str(urdf)]
    assert main([str(bag), *options]) == DONE
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
    other = tmp_path / 'other.yaml'
    other.write_text('legs: {}')
    error = error_of(capsys, recording, '--arm-model', other)
    assert 'is this a file of identify_arm --model?' in error
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
    assert status == DONE, capsys.readouterr()
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
    assert identify.main([str(path), '--mechanism', str(GEOMETRY_FILE)]) == UNUSABLE
    assert 'waiting for the effort of every leg' in capsys.readouterr().err


def test_a_bad_geometry_is_one_line_and_status_2(
    legs: EffortBatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = record(tmp_path / 'bag', legs)
    assert identify.main([str(path), '--mechanism', str(tmp_path / 'no.yaml')]) == 2
    assert capsys.readouterr().err.count('\n') == 1
