"""The offset calibrated, called from outside over DDS while samples stream."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
import yaml
from ros_arm import NOTHING, RATE, SMALL, Arm, file_of
from ros_messages import OFFSET, PAYLOAD
from ros_pipeline import Pipeline


def test_calibration_finds_and_stores_the_offset_of_the_raw_wrench(arm: Arm) -> None:
    answer = arm.calibrated()
    says = answer.says
    assert says['samples'] >= RATE
    # 5 standard deviations of the mean of 125 samples.
    np.testing.assert_allclose(says['offset'][:3], OFFSET[:3], atol=5 * 0.1 / np.sqrt(RATE))
    np.testing.assert_allclose(says['offset'][3:], OFFSET[3:], atol=5 * 0.005 / np.sqrt(RATE))
    stored = yaml.safe_load(file_of(arm.group).read_text())
    np.testing.assert_allclose(stored['offset']['value'], says['offset'], rtol=1e-4)


def test_second_calibration_reports_the_drift_and_warns_of_one(arm: Arm) -> None:
    arm.calibrated()
    again = arm.call('calibrate_offset')
    assert 'warning' not in again.says
    assert np.all(np.abs(again.says['drift']) < 5.0 * np.array(again.says['drift_std']))
    arm.offset = OFFSET + np.array([0.0, 0.0, 0.8, 0.0, 0.0, 0.0])
    arm.rest(0.3)
    arm.call_in_silence('reset')
    drifted = arm.call('calibrate_offset')
    assert drifted.says['drift'][2] == pytest.approx(0.8, abs=0.1)
    # Whether the step was noticed before the reset, and so is unresolved, is a matter of 0.1 s;
    # so is how much of it came in the block in which it was.
    noticed = r'(load or offset changed: 0\.\d+ N .* calibrate again; )?'
    drift = r'fz has drifted by 0\.\d+ ± 0\.\d+ N since the last calibration'
    assert re.fullmatch(noticed + drift, drifted.says['warning'])


def test_motion_cancels_a_calibration(arm: Arm) -> None:
    arm.rest(0.3)
    pending = arm.start('calibrate_offset')
    arm.rest(0.5)
    assert pending() is None
    stream = arm.turning()
    while (answer := pending()) is None:
        arm.play(stream, 0.04)
    assert not answer.success
    assert re.fullmatch(
        rf'cancelled after \d+ of {RATE} samples: moving: joint \w+ at 0\.\d+ rad/s', answer.reason
    )


def test_a_slow_sensor_is_calibrated_with_what_comes_within_seconds(arm: Arm) -> None:
    slow = arm.at_rest(15)
    arm.play(slow, 0.5)
    pending = arm.start('calibrate_offset')
    while (answer := pending()) is None:
        arm.play(slow, 0.3)
    assert answer.success, answer.says
    # For all of them it would take RATE / 15 = 8.3 s.
    assert 10 < answer.says['samples'] < RATE
    assert f' of {RATE} samples, those of 4 s' in answer.says['warning']


def test_stale_wrench_is_refused_with_its_age(arm: Arm, live: tuple[Arm, Pipeline]) -> None:
    arm.rest(0.3)
    # Silence begins when the last sample has arrived, not when it was sent.
    live[1].settle()
    silent = time.monotonic()
    arm.group.wait_for(lambda: time.monotonic() - silent > 1.0, 'a second of silence')
    for service in ('calibrate_offset', 'check_mass', 'save_tool'):
        answer = arm.call_in_silence(service)
        assert not answer.success
        age = re.match(r'newest wrench with joint states (\d+\.\d) s old', answer.reason)
        assert age, answer.reason
        assert 0.9 < float(age[1]) < 5.0


def test_calibration_refuses_an_identified_payload_with_its_mass(
    arm: Arm, live: tuple[Arm, Pipeline]
) -> None:
    arm.calibrated()
    # That nothing is held counts until the arm moves.
    assert arm.call('reset').success
    arm.body = PAYLOAD
    arm.run()
    assert live[1].status['mass.identified'] == 'true'
    answer = arm.call('calibrate_offset')
    assert not answer.success
    assert re.match(
        r'a payload of 1\.1\d+ ± 0\.\d+ kg is identified: put it down or call save_tool',
        answer.reason,
    )


UNRESOLVED = r'load or offset changed: [\d.]+ N and [\d.]+ N·m away from what was known before; '


def test_in_doubt_no_tool_is_saved_and_no_offset_calibrated(
    arm: Arm, live: tuple[Arm, Pipeline]
) -> None:
    pipeline = live[1]
    arm.calibrated()
    arm.body = PAYLOAD
    arm.run()
    assert pipeline.status['mass.identified'] == 'true'
    # Put down, or the sensor zeroed with the payload on? At rest no sample can tell.
    arm.body = NOTHING
    arm.rest(1.0)
    tool = arm.call('save_tool').reason
    turn = 'turn the sensor against gravity, or if no joint does, move fast, then call save_tool'
    assert re.fullmatch(UNRESOLVED + turn, tool)
    refused = arm.call('calibrate_offset')
    assert re.fullmatch(
        r'a payload of 1\.1\d+ ± 0\.\d+ kg was identified before: '
        + UNRESOLVED
        + 'if nothing is held, call reset and then calibrate_offset',
        refused.reason,
    )
    # Somebody says that nothing is held.
    arm.call('reset')
    answer = arm.call('calibrate_offset')
    assert answer.success, answer.says
    np.testing.assert_allclose(answer.says['offset'][:3], OFFSET[:3], atol=5 * 0.1 / np.sqrt(RATE))
    # 1.106 kg of 9.81 m/s².
    assert re.search(r': (10|11) N', refused.reason)
    arm.rest(1.0)
    pipeline.settle()
    assert 'load or offset changed' not in pipeline.words
    arm.body = PAYLOAD
    arm.run()
    pipeline.settle()
    error = abs(pipeline.number('mass') - PAYLOAD.mass)
    assert error < 4.0 * pipeline.number('mass.std') < 0.1


def test_no_offset_is_calibrated_in_a_contact_but_after_a_reset(
    arm: Arm, live: tuple[Arm, Pipeline]
) -> None:
    """A load of 1.3 kg, put on at rest and swinging, had become an offset of 13 N."""
    pipeline = live[1]
    arm.calibrated()
    # That nothing is held was declared of another rest.
    arm.move_to(40)
    arm.rest(1.0)
    arm.body = SMALL
    stream = arm.swinging(1.5)
    arm.play(stream, 4.0)
    pipeline.settle()
    assert pipeline.status['event'].startswith('contact')
    refused = arm.call('calibrate_offset', stream)
    assert not refused.success
    assert re.fullmatch(
        r'contact: [\d.]+ N and [\d.]+ N·m away from what was known before: take away what '
        'touches; if a load swings or was put on, move the arm until it is named; if nothing but '
        'the tool is on, call reset and then calibrate_offset',
        refused.reason,
    )
    # The way out, though all is not still yet.
    assert arm.call('reset', stream).success
    assert 'contact' not in arm.call('calibrate_offset', stream).says.get('reason', '')
    arm.body = NOTHING
    arm.rest(0.3)
    assert arm.call('reset').success
    answer = arm.call('calibrate_offset')
    assert answer.success, answer.says
    np.testing.assert_allclose(answer.says['offset'][:3], OFFSET[:3], atol=5 * 0.1 / np.sqrt(RATE))
