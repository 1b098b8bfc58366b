"""A sensor that is dead, frozen or saturated: said in words, nothing claimed of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from processes import ForkedProcess
from recording_faults import dead, frozen, limited
from ros_arm import CALIBRATION, NOTHING, Arm
from ros_faults import IDS, PROCESSES, in_three_too, living
from ros_messages import (
    FRAME,
    NS,
    PAYLOAD,
    Message,
    feed,
    recording,
    stamp_of,
    wrench_message,
    wrench_of,
)
from ros_pipeline import Pipeline

from load_identification.interface.batches import CHANNELS


@pytest.fixture(scope='module', params=PROCESSES, ids=IDS)
def live(request: pytest.FixtureRequest) -> Iterator[tuple[Pipeline, Arm, list[ForkedProcess]]]:
    """Yield what the pipeline says, an arm that feeds it, and its processes."""
    with living(request.param, CALIBRATION) as (pipeline, processes):
        arm = Arm(pipeline.group)
        arm.ready()
        yield pipeline, arm, processes


Live = tuple[Pipeline, Arm, list[ForkedProcess]]


def stuck_from(arm: Arm) -> Iterator[Message]:
    """Stand still, with a sensor that has frozen: fresh stamps, the same six numbers."""
    values = None
    for message in arm.at_rest():
        if message.topic != '/wrench':
            yield message
            continue
        values = message.content.wrench if values is None else values
        message.content.wrench = values
        yield message


def said(pipeline: Pipeline, words: str) -> bool:
    return words in pipeline.words and pipeline.statuses[-1].level == DiagnosticStatus.WARN


def claimed(pipeline: Pipeline) -> set[str]:
    return {value for key, value in pipeline.status.items() if key.endswith('.identified')}


@in_three_too
def test_a_sensor_that_freezes_at_rest_is_named_and_nothing_more_is_published(live: Live) -> None:
    pipeline, arm, processes = live
    arm.body = PAYLOAD
    arm.run()
    pipeline.group.wait_for(
        lambda: pipeline.status['state'] == 'identified',
        'an estimate',
        meanwhile=lambda: arm.rest(0.1),
    )
    begin = arm.now
    frozen_stream = stuck_from(arm)
    pipeline.group.wait_for(
        lambda: said(pipeline, 'repeats bit for bit since'),
        'the frozen sensor',
        meanwhile=lambda: arm.play(frozen_stream, 0.1),
    )
    assert pipeline.status['state'] == 'waiting'
    assert {pipeline.status[f'health.{channel}'] for channel in CHANNELS} == {'stuck'}
    assert claimed(pipeline) == {'false'}
    # Half a second and 100 samples, and up to half a second on the way; by the stamps.
    assert max(stamp_of(m) for m in pipeline.inertias) < begin + 1.8 * NS
    count = len(pipeline.inertias)
    arm.play(frozen_stream, 1.0)
    assert len(pipeline.inertias) <= count + 1
    for service in ('calibrate_offset', 'check_mass', 'save_tool'):
        answer = arm.call(service, stream=frozen_stream)
        assert not answer.success
        assert 'repeats bit for bit' in answer.reason
    assert sum(process.output.count('repeats bit for bit') for process in processes) == 1
    # It lives again.
    pipeline.group.wait_for(
        lambda: pipeline.status['health.fx'] == 'alive' and 'true' in claimed(pipeline),
        'the sensor alive',
        meanwhile=lambda: arm.rest(0.1),
    )


@in_three_too
def test_a_channel_that_is_stuck_is_named_with_its_value_and_estimates_go_on(live: Live) -> None:
    pipeline, _, _ = live
    count, dropped = len(pipeline.statuses), pipeline.dropped('wrench_channel_stuck')
    # Another process tells of it once a second.
    base = pipeline.play(frozen(recording(), 3.0, channels=(2,)), speed=4.0)
    assert pipeline.newest > base + 7 * NS
    words = r'fz repeats −?\d+\.\d{3} N since [1-5]\.\d s: sensor'
    pipeline.group.wait_for(
        lambda: any(re.search(words, status.message) for status in pipeline.statuses[count:]),
        'the stuck channel, its value and since when',
    )
    # Five seconds at 125 Hz, but for the few that pass before it is found out.
    pipeline.group.wait_for(
        lambda: pipeline.dropped('wrench_channel_stuck') - dropped > 500, 'all of it counted'
    )
    assert pipeline.flowing.level == DiagnosticStatus.WARN
    assert pipeline.status['health.fz'] == 'stuck'
    assert pipeline.status['health.fx'] == 'alive'
    assert np.nanmax(np.abs(pipeline.errors())) < 5.0


def test_a_sensor_dead_from_the_start_claims_nothing(live: Live) -> None:
    pipeline, _, _ = live
    count = len(pipeline.inertias)
    base = pipeline.group.next_base()
    pipeline.group.play(feed(dead(recording(), 0.0), base), 20.0)
    pipeline.group.wait_for(lambda: said(pipeline, 'absent'), 'the dead sensor')
    assert pipeline.status['state'] == 'waiting'
    assert {pipeline.status[f'health.{channel}'] for channel in CHANNELS} == {'absent'}
    assert all(stamp_of(m) > base + 100 * NS for m in pipeline.inertias[count:])


def test_saturation_from_the_start_spoils_nothing(live: Live) -> None:
    pipeline, _, _ = live
    high = float(np.quantile(recording().wrench[:, 2], 0.5))
    first = int(np.argmax(recording().wrench[:, 2] > high))
    pipeline.play(limited(recording(), 2, -1e3, high), lambda m: m[2 * first :])
    assert np.nanmax(np.abs(pipeline.errors())) < 4.0


def test_a_channel_that_was_never_there_is_said_so(live: Live) -> None:
    pipeline, _, _ = live
    lacking = recording().wrench.copy()
    lacking[:, 5] = 0.0
    count = len(pipeline.statuses)
    pipeline.play(replace(recording(), wrench=lacking))
    # A second after the last sample it says that none comes, and another process tells of it once
    # a second.
    pipeline.group.wait_for(
        lambda: any('tz absent' in status.message for status in pipeline.statuses[count:]),
        'the channel that was never there',
    )
    named = [status for status in pipeline.statuses[count:] if 'tz absent' in status.message]
    assert {status.level for status in named} == {DiagnosticStatus.WARN}
    assert pipeline.status['health.tz'] == 'absent'
    assert pipeline.state == 'identified'
    assert np.abs(pipeline.errors()[:15]).max() < 5.0
    assert pipeline.status['com.z.identified'] == 'true'
    # Of its offset nothing is known.
    assert pipeline.status['offset.tz'] == pipeline.status['offset.tz.std'] == 'nan'


def test_a_coarse_sensor_repeats_itself_by_right_and_is_calibrated(live: Live) -> None:
    pipeline, arm, _ = live
    # Started afresh: of some channels nothing but one value has been seen.
    arm.body, arm.now = NOTHING, pipeline.group.next_base()
    steps = np.array([0.4, 2.0, 2.0, 0.02, 0.1, 0.02])

    def coarse() -> Iterator[Message]:
        for message in arm.at_rest():
            if message.topic == '/wrench':
                values = steps * np.round(np.array(wrench_of(message.content)) / steps)
                wrench = wrench_message(stamp_of(message.content), FRAME, values)
                yield Message(message.due, message.topic, wrench)
            else:
                yield message

    stream = coarse()
    arm.play(stream, 3.0)
    arm.call('reset', stream)
    answer = arm.call('calibrate_offset', stream)
    assert answer.success, answer.says
    pipeline.settle()
    assert {pipeline.status[f'health.{channel}'] for channel in CHANNELS} == {'alive'}
