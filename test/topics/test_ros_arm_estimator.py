"""An arm that weighs with its joints, over real topics: estimate, residuals, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from processes import ForkedProcess
from ros_group import Group
from ros_messages import KINDS, NAMESPACE, Message, stamped
from ros_pipeline import Pipeline, assert_refused_from_two
from sensor_msgs.msg import JointState

from load_identification.arm.arm_file import write_arm_model
from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.tree import Arm
from load_identification.interface.batches import EffortBatch
from load_identification.interface.messages import stamp_of
from load_identification.interface.names import PARAMETER_KEYS
from load_identification.model.inertial_parameters import to_message_order
from load_identification.simulation.robots import SCARA, SEVEN_JOINTS
from load_identification.simulation.weighing_arm import (
    FRAME,
    JOINTS,
    PAYLOAD,
    certain,
    exact_arm,
    run,
)

TRUTH = to_message_order(PAYLOAD.to_vector())
MASS_STD = 0.03
"""By how much the mass of the last link is uncertain [kg]."""


@pytest.fixture(scope='module')
def joints() -> EffortBatch:
    """Return 14 s of joint states under the payload."""
    return run(14.0, 3, PAYLOAD, rate=125.0).measured(1)


@pytest.fixture(scope='module')
def arm_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of the arm."""
    return written(tmp_path_factory.mktemp('arm') / 'arm.yaml', MASS_STD)


def written(path: Path, mass_std: float) -> Path:
    """Write an arm: exact, its gains too, but for a doubt about the mass of its last link."""
    arm = exact_arm()
    doubt = np.zeros_like(arm.covariance)
    doubt[60, 60] = mass_std**2
    doubt[-7:, -7:] = 1e-8 * np.eye(7)
    write_arm_model(path, replace(arm, covariance=doubt))
    return path


def messages(joints: EffortBatch, efforts: bool = True) -> list[Message]:
    out = []
    for k, stamp in enumerate(joints.stamps.tolist()):
        state = stamped(JointState(), stamp)
        state.name = ['gripper', *joints.names]
        state.position = [0.01, *joints.position[k].tolist()]
        state.effort = [0.0, *(joints.effort[k] if efforts else 0 * joints.effort[k] + np.nan)]
        out.append(Message(stamp, '/joint_states', state))
    return out


def start(
    group: Group, arm_model: Path, urdf: str = SEVEN_JOINTS.urdf, sensor_frame: str = FRAME
) -> ForkedProcess:
    publisher = group.publisher(JointState, '/joint_states')
    parameters = {'arm_model': str(arm_model), 'sensor_frame': sensor_frame}
    node = group.start('arm_estimator', parameters)
    group.wait_for(publisher.get_subscription_count, 'a reader of the joint states')
    group.describe(urdf)
    return node


def details(diagnostics: list[DiagnosticArray]) -> dict[str, str]:
    """Return keys and values of the arm node's last status, its sentence as `says`."""
    found: list[Any] = [
        status
        for array in diagnostics
        for status in array.status
        if status.name.endswith('arm_estimator_node')
    ]
    if not found:
        return {}
    return {item.key: item.value for item in found[-1].values} | {'says': found[-1].message}


def wait_for_description(group: Group, diagnostics: list[DiagnosticArray]) -> None:
    """Wait until the node uses it: what comes before is lost."""
    group.wait_for(
        lambda: 'robot description' not in details(diagnostics).get('says', 'robot description'),
        'the description to be used',
    )


Weighing = tuple[Pipeline, list[DiagnosticArray], ForkedProcess]


@pytest.fixture(scope='module')
def weighing(arm_model: Path) -> Iterator[Weighing]:
    """Return what a node with that arm says, and its process."""
    with Group() as group:
        pipeline = Pipeline(group)
        diagnostics = group.record(DiagnosticArray, '/diagnostics')
        node = start(group, arm_model)
        wait_for_description(group, diagnostics)
        yield pipeline, diagnostics, node
        assert node.alive


def test_the_payload_is_weighed_by_the_joints(weighing: Weighing, joints: EffortBatch) -> None:
    pipeline, diagnostics, node = weighing
    group = pipeline.group
    filtered = [group.record(kind, f'{NAMESPACE}/filtered/{name}') for name, kind in KINDS.items()]
    predicted = group.record(JointState, f'{NAMESPACE}/effort_predicted')
    residual = group.record(JointState, f'{NAMESPACE}/effort_residual')
    # Without efforts nothing can be weighed, which is said.
    mute = replace(joints, stamps=joints.stamps - 50_000_000_000)
    group.play(messages(mute, efforts=False)[:200])
    group.wait_for(
        lambda: details(diagnostics).get('samples.dropped.effort_missing') == '200',
        'missing efforts to be counted',
    )
    group.play(messages(joints), speed=5.0)
    end = int(joints.stamps[-1])
    group.wait_for(lambda: pipeline.newest > end - 120_000_000, 'an estimate of the last samples')
    assert pipeline.state == 'identified', pipeline.words
    values = pipeline.numbers(PARAMETER_KEYS[:4])
    std = pipeline.numbers(f'{key}.std' for key in PARAMETER_KEYS[:4])
    # One run: four standard deviations; that of the mass contains the doubt about the arm.
    assert (np.abs(values - TRUTH[:4]) < 4.0 * std).all(), (values, std)
    assert MASS_STD < std[0] < 1.1 * MASS_STD
    assert abs(values[0] - TRUTH[0]) < 0.01

    group.wait_for_all(residual, predicted, *filtered, until=end - 120_000_000)
    stamps = [[stamp_of(m) for m in topic] for topic in filtered]
    assert stamps[0] == stamps[1] == stamps[2]
    assert len(stamps[0]) > 600
    assert filtered[0][-1].header.frame_id == FRAME
    assert [stamp_of(m) for m in residual] == [stamp_of(m) for m in predicted] == stamps[0]
    assert list(residual[0].name) == list(JOINTS)
    index = np.searchsorted(joints.stamps, stamps[0])
    total = np.array([m.effort for m in residual]) + np.array([m.effort for m in predicted])
    # Filtered against raw, noise of 0.1 N m and friction that jumps.
    assert np.sqrt(np.mean((total - joints.effort[index]) ** 2)) < 0.5
    group.wait_for(lambda: details(diagnostics).get('residual_rms.left_1') != 'nan', 'residuals')
    assert details(diagnostics)['never_told'] == ''
    assert 'unknown parameter' not in node.output


def test_what_is_known_stands_in_status_before_it_is_identified(
    group: Group, joints: EffortBatch, tmp_path: Path
) -> None:
    pipeline = Pipeline(group)
    # Beyond the ± 0.2 kg that count as identified behind joints.
    node = start(group, written(tmp_path / 'arm.yaml', 0.15))
    group.wait_for(lambda: 'using the robot description' in node.output, 'the description used')
    group.play(messages(joints.select(slice(0, 1000))), speed=5.0)
    group.wait_for(lambda: pipeline.used > 300, 'samples to be used')
    assert pipeline.state == 'estimating', pipeline.words
    assert not pipeline.inertias
    values = pipeline.numbers(PARAMETER_KEYS[:4])
    std = pipeline.numbers(f'{key}.std' for key in PARAMETER_KEYS[:4])
    assert (np.abs(values - TRUTH[:4]) < 4.0 * std).all(), (values, std)
    assert 0.15 < std[0] < 0.3
    assert pipeline.status['mass.identified'] == 'false'


def test_joints_that_two_publishers_send_weigh_nothing(
    weighing: Weighing, joints: EffortBatch
) -> None:
    pipeline, diagnostics, _ = weighing
    assert_refused_from_two(pipeline, messages(joints)[:500])
    assert int(details(diagnostics)['samples.dropped.joint_state_two_publishers']) > 100


def test_a_sensor_frame_that_the_description_lacks_is_looked_for(
    group: Group, arm_model: Path
) -> None:
    diagnostics = group.record(DiagnosticArray, '/diagnostics')
    start(group, arm_model, sensor_frame='flange_sensor')
    words = "for 'flange_sensor' on /tf_static"
    group.wait_for(lambda: words in details(diagnostics).get('says', ''), words)


def test_an_arm_whose_joints_do_not_show_a_wrench_is_refused_in_words(
    group: Group, tmp_path: Path
) -> None:
    arm = Arm(SCARA.urdf, joints=SCARA.joints)
    rigid = certain(arm, DriveModel('none', 'none'), np.zeros((len(arm.joints), 0)), 0.1)
    write_arm_model(tmp_path / 'arm.yaml', rigid)
    diagnostics = group.record(DiagnosticArray, '/diagnostics')
    node = start(group, tmp_path / 'arm.yaml', SCARA.urdf, SCARA.sensor_frame)
    group.wait_for(lambda: 'a usable' in details(diagnostics).get('says', ''), 'the reason')
    assert 'show 5 of the 6 components of a wrench' in details(diagnostics)['says']
    assert node.alive


def test_without_a_model_the_node_says_what_it_needs(group: Group, tmp_path: Path) -> None:
    nothing = group.start('arm_estimator')
    missing = group.start('arm_estimator', {'arm_model': str(tmp_path / 'none.yaml')})
    assert nothing.wait() == 2
    assert "parameter arm_model is ''; it must name a file" in nothing.output
    assert missing.wait() == 2
    assert 'cannot be read' in missing.output
    assert 'Traceback' not in nothing.output + missing.output
