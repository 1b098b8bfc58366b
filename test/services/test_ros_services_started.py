"""The services of pipelines started in ways of their own: fast, restarted, in three processes."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from ros_arm import SMALL, Arm, file_of, prepared, started
from ros_group import RELIABLE, Group
from ros_messages import NAMESPACE, NS, OFFSET, PAYLOAD, Message, stamp_of


def test_before_the_first_sample_and_without_an_offset_it_says_what_is_missing() -> None:
    with Group() as group:
        prepared(group)
        started(group, parameters={'expected_mass': 1.1})
        arm = Arm(group)
        arm.ready()
        for service in ('calibrate_offset', 'check_mass', 'save_tool'):
            early = arm.call_in_silence(service)
            assert early.reason.startswith('no wrench with joint states yet')
        arm.rest(0.3)
        check = arm.call('check_mass')
        assert check.says['verdict'] == 'inconclusive'
        assert check.reason.startswith('the offset is not known: call calibrate_offset')
        # Without an offset, turning weighs.
        arm.body = PAYLOAD
        arm.call('reset')
        for sample in (50, 150, 250):
            arm.move_to(sample)
            # A second makes a pose; twice that where a busy machine loses samples.
            arm.rest(2.0, speed=2.0)
        arm.move_to(300)
        arm.rest(0.2)
        turned = arm.call('check_mass').says
        assert turned['poses'] > 1
        assert abs(turned['mass'] - PAYLOAD.mass) < 4.0 * turned['mass_std']
        assert turned['mass_std'] < 0.02


def test_at_1_khz_the_stream_goes_on_while_a_mass_is_checked() -> None:
    with Group() as group:
        prepared(group)
        started(group, parameters={'calibration_samples': 1000})
        arm = Arm(group)
        arm.ready()

        def stream() -> Iterator[Message]:
            return arm.at_rest(1000)

        arm.play(stream(), 0.5)
        arm.answers('reset', stream=stream())
        calibration = arm.call('calibrate_offset', stream())
        assert calibration.success, calibration.says
        arm.body = PAYLOAD
        arm.play(stream(), 0.3)
        stamps: list[int] = []
        group.node.create_subscription(
            WrenchStamped,
            f'{NAMESPACE}/wrench_predicted',
            lambda message: stamps.append(stamp_of(message)),
            RELIABLE,
        )
        arm.play(stream(), 0.5)
        stamps.clear()
        for _ in range(3):
            check = arm.call('check_mass', stream())
            assert 'mass' in check.says, check.says
            assert abs(check.says['mass'] - PAYLOAD.mass) < 5.0 * check.says['mass_std']
        # 50 a second, each half a second that a check lasts; none is left out.
        assert len(stamps) > 60
        assert np.diff(stamps).max() <= 0.02 * NS


def test_offset_and_tool_survive_a_restart_and_a_damaged_file_is_said_so() -> None:
    with Group() as group:
        prepared(group)
        pipeline, (process,) = started(group)
        arm = Arm(group)
        arm.ready()
        arm.calibrated()
        arm.body = PAYLOAD
        arm.rest(0.2)
        arm.call('reset')
        arm.run()
        assert arm.call('save_tool').success
        process.send(signal.SIGTERM)
        assert process.wait() == 0
        pipeline, (process,) = started(group)
        arm.ready()
        arm.body = PAYLOAD + SMALL
        arm.move_to(100)
        arm.rest(0.4)
        # Offset and tool known from before: one pose at rest tells the mass.
        says = arm.call('check_mass').says
        assert abs(says['mass'] - SMALL.mass) < 4.0 * says['mass_std']
        assert says['mass_std'] < 0.01
        process.send(signal.SIGTERM)
        assert process.wait() == 0
        file_of(group).write_text('offset: [1')
        pipeline, (process,) = started(group)
        arm.rest(0.4)
        group.wait_for(
            lambda: pipeline.state == 'estimating' and 'not calibrated' in pipeline.words,
            'the status to say so',
        )
        # While samples come nothing else is to be warned of.
        assert pipeline.flowing.level == DiagnosticStatus.WARN, pipeline.words
        assert 'moved to load_identification.yaml.damaged-1' in pipeline.words
        assert 'load_identification.yaml cannot be used' in process.output
        assert not file_of(group).exists()


def test_a_catalogue_that_cannot_be_used_ends_the_node(group: Group, tmp_path: Path) -> None:
    path = tmp_path / 'catalogue.yaml'
    path.write_text('objects: []')
    bad = group.start('estimator', {'catalogue': str(path)})
    assert bad.wait() == 2
    assert f'catalogue {path}: it must hold a list' in bad.output


def test_three_processes_and_the_other_sign_do_the_same() -> None:
    with Group() as group:
        prepared(group)
        pipeline, processes = started(
            group, 'fusion', 'filter', 'estimator', parameters={'wrench_convention': 'on_load'}
        )
        arm = Arm(group, sign=-1.0)
        arm.ready()
        # The estimator alone is not told which joints carry the sensor; it learns.
        arm.fidgeting = True
        group.wait_for(
            lambda: pipeline.used,
            'the estimator to hear the filter',
            meanwhile=lambda: arm.rest(0.2),
        )
        arm.rest(1.5)
        arm.call('clear_tool')
        calibration = arm.calibrated()
        np.testing.assert_allclose(calibration.says['offset'][:3], -OFFSET[:3], atol=0.05)
        arm.body = PAYLOAD
        arm.rest(0.3)
        says = arm.call('check_mass').says
        assert abs(says['mass'] - PAYLOAD.mass) < 4.0 * says['mass_std']
        stream = arm.in_motion()
        arm.play(stream, 1.0)
        assert re.match(r'moving: joint', arm.call('calibrate_offset', stream).reason)
        assert all(process.alive for process in processes)
        assert pipeline.statuses
