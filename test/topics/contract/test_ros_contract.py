"""What the interface promises the outside world, asked of running nodes over real DDS.

What is expected comes from the simulation, whose wrench is Pinocchio's and whose motion is
exact; nothing of the nodes is imported.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from ros_group import LATCHED, Group
from ros_messages import (
    FRAME,
    NAMESPACE,
    NS,
    OFFSET_KEYS,
    PARAMETER_KEYS,
    feed,
    inertia_of,
    recording,
    samples_of,
    stamp_of,
    wrench_of,
)
from ros_pipeline import Pipeline, assert_holds, connected

HALF_WINDOW = 0.05810
"""Delay of the filter: half of the window that belongs to a cutoff of 20 Hz [s]."""


def test_payload_and_offset_are_found_with_the_uncertainty_they_have(live: Pipeline) -> None:
    base = live.play(recording())
    assert_holds(live)
    last = live.inertias[-1]
    assert last.header.frame_id == FRAME
    newest_sample = base + int(recording().stamps[-1])
    assert base < stamp_of(last) <= newest_sample - HALF_WINDOW * NS
    # About the centre of mass: about the origin Ixx would be 170 % larger.
    np.testing.assert_allclose(inertia_of(last), live.numbers(PARAMETER_KEYS), rtol=1e-8)


def test_status_has_every_key_as_the_interface_writes_it(live: Pipeline) -> None:
    live.play(recording())
    status = live.status
    dropped = {key for key in status if key.startswith('samples.dropped.')}
    parameters = {f'{key}{end}' for key in PARAMETER_KEYS for end in ('', '.std', '.identified')}
    offsets = {f'{key}{end}' for key in OFFSET_KEYS for end in ('', '.std')}
    health = {f'health.{key.removeprefix("offset.")}' for key in OFFSET_KEYS}
    sources = {f'mass.std.{source}' for source in ('noise', 'drift', 'calibration', 'tool')}
    total = sum(float(status[key]) ** 2 for key in sources)
    assert total == pytest.approx(float(status['mass.std']) ** 2, rel=1e-6)
    shown = {key for key in status if key.startswith('calibration.')}
    assert {
        key for key in shown if f'{key}.std' not in shown and not key.endswith('.std')
    } == set()
    assert set(status) - dropped - health - shown == {
        *('state', 'compensation', 'event', 'samples.used'),
        *sources,
        *parameters,
        *offsets,
    }
    assert {status[key] for key in health} == {'alive'}
    for key in (key for key in parameters | offsets if not key.endswith('.identified')):
        assert re.fullmatch(r'-?\d+(\.\d+)?(e-?\d+)?', status[key]), (key, status[key])
    for key in {'samples.used', *dropped}:
        assert status[key].isdecimal(), (key, status[key])
    # One output every 20 ms, less a window at the ends.
    assert live.flowing.level == DiagnosticStatus.OK
    assert live.flowing.name == f'{NAMESPACE[1:]}/estimator_node'


def test_the_sources_add_up_where_the_cell_may_have_errors_and_words_name_them() -> None:
    with Group() as group:
        group.publish_inputs()
        live = connected(group, {'systematic_errors': 'ordinary'})
        live.play(recording())
        parts = live.numbers(f'mass.std.{s}' for s in ('noise', 'drift', 'calibration', 'tool'))
        assert np.hypot.reduce(parts) == pytest.approx(live.number('mass.std'), rel=1e-6)
        # The common gain alone, half a per cent, of which no motion shows anything.
        assert parts[2] > 0.004 * live.number('mass')
        named = re.search(r'mass \S+ ± \S+ kg \((.*?)\)', live.flowing.message)
        assert named is not None, live.flowing.message
        assert named[1].startswith('sensor gain 0.0')
        halves = [float(part.rpartition(' ')[2]) for part in named[1].split(', ')]
        assert np.hypot.reduce(halves) == pytest.approx(1.96 * live.number('mass.std'), rel=0.05)


def test_covariance_is_that_of_sixteen_labelled_numbers(live: Pipeline) -> None:
    live.play(recording())
    message = live.covariances[-1]
    labels = ['m', 'm*cx', 'm*cy', 'm*cz', 'Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz', *OFFSET_KEYS]
    rows, columns = message.layout.dim
    assert [rows.size, rows.stride, columns.size, columns.stride] == [16, 256, 16, 16]
    assert rows.label.split() == columns.label.split() == labels
    covariance = np.reshape(message.data, (16, 16))
    np.testing.assert_allclose(covariance, covariance.T, rtol=1e-9)
    scale = np.sqrt(np.diag(covariance))
    assert np.linalg.eigvalsh(covariance / np.outer(scale, scale)).min() > 0.0
    np.testing.assert_allclose(scale[0], live.number('mass.std'), rtol=1e-6)
    offset_std = live.numbers(f'{key}.std' for key in OFFSET_KEYS)
    np.testing.assert_allclose(scale[10:], offset_std, rtol=1e-6)


def test_predicted_offset_and_external_add_up_to_what_is_measured(live: Pipeline) -> None:
    live.play(recording())
    names = ('wrench_predicted', 'wrench_external', 'filtered/wrench')
    topics = [(WrenchStamped, f'{NAMESPACE}/{name}') for name in names]
    with live.group.recorded(*topics) as (predicted, external, measured):
        base = live.play(recording())
        live.group.wait_for_all(predicted, external, measured, until=live.newest)
    assert {m.header.frame_id for m in predicted + external} == {FRAME}
    by_stamp = {stamp_of(m): np.array(wrench_of(m)) for m in measured}
    # Where inputs were lost and played again, the stamps of the first time are later than all.
    moving, end = base + 6 * NS, live.newest
    late = [k for k, m in enumerate(external) if moving < stamp_of(m) <= end]
    assert len(late) > 50
    for k in late:
        assert stamp_of(predicted[k]) == stamp_of(external[k])
        explained = np.array(wrench_of(predicted[k]))
        contact = np.array(wrench_of(external[k]))
        offset = by_stamp[stamp_of(external[k])] - explained - contact
        # The offset believed at that time; its random walk is 1 mN in the rest of the recording.
        assert np.abs(offset - live.numbers(OFFSET_KEYS)).max() < 0.01
        truth = recording().exact_wrench[samples_of([external[k]], base)[0]]
        # Mass and centre of mass are known to 0.1 % and 0.1 mm, the wrench is 15 N and 1 N m;
        # where the motion begins to fade, at 7 s, the acceleration has a kink.
        np.testing.assert_allclose(explained, truth, atol=0.15)
        # Noise of 0.1 N through the filter is 0.06 N.
        assert np.abs(contact).max() < 0.4


def test_what_is_not_identified_is_nan_never_a_guess(live: Pipeline) -> None:
    live.play(recording(slow=True), speed=40.0)
    message, status = inertia_of(live.inertias[-1]), live.status
    assert live.state == 'identified'
    np.testing.assert_array_equal(np.isnan(message), [False] * 4 + [True] * 6)
    assert [status[f'{key}.identified'] for key in PARAMETER_KEYS] == ['true'] * 4 + ['false'] * 6
    # What runs stands in the status with its std; it is `identified` that it is not.
    assert np.isfinite(live.numbers(PARAMETER_KEYS[4:])).all()
    assert np.isfinite(live.numbers(f'{key}.std' for key in PARAMETER_KEYS[4:])).all()
    assert np.abs(live.errors()[:4]).max() < 5.0
    assert 'rotate faster' in live.words


def test_inertia_comes_only_once_the_mass_is_identified(live: Pipeline) -> None:
    count = len(live.inertias)
    base = live.group.next_base()
    live.group.play(feed(recording(), base, last=60))
    live.group.wait_for(lambda: live.state == 'estimating', 'state estimating')
    live.settle()
    # Half a second, nearly at rest: weight and offset cannot be told apart.
    assert live.status['mass.identified'] == 'false'
    assert [stamp_of(m) for m in live.inertias[count:] if stamp_of(m) >= base] == []
    assert 'turn the sensor' in live.words


def test_reset_forgets_the_payload_and_keeps_the_offset(live: Pipeline) -> None:
    base = live.play(recording())
    offset = live.numbers(OFFSET_KEYS)
    answer = live.group.call(f'{NAMESPACE}/reset')
    assert answer.success
    assert isinstance(json.loads(answer.message), dict)
    assert '\n' not in answer.message
    live.group.wait_for(lambda: live.status['event'].startswith('reset'), 'the event')
    event = re.fullmatch(r'(\w+) (\d+\.\d+)', live.status['event'])
    assert event[1] == 'reset'
    assert base * 1e-9 < float(event[2]) < base * 1e-9 + 8.0
    assert live.status['mass.identified'] == 'false'
    # What was known of the offset is all that is known of it.
    np.testing.assert_allclose(live.numbers(OFFSET_KEYS), offset, atol=0.02)
    later = replace(recording(), stamps=recording().stamps + 8 * NS)
    live.group.play(feed(later, base))
    live.wait_for_inertia(later, base)
    assert_holds(live)


def test_late_joiner_sees_the_last_of_each_latched_topic(live: Pipeline) -> None:
    live.play(recording())
    kinds = {
        'inertia_std': InertiaStamped,
        'inertia_total': InertiaStamped,
        'inertia_by_driver': InertiaStamped,
        'offset': WrenchStamped,
    }
    with Group(joined=live.group) as late:
        heard = {
            name: late.record(kind, f'{NAMESPACE}/{name}', LATCHED) for name, kind in kinds.items()
        }
        pipeline = Pipeline(late)
        late.wait_for(
            lambda: (
                all(heard.values())
                and pipeline.statuses
                and pipeline.inertias
                and pipeline.covariances
            ),
            'the seven topics of the past',
        )
    assert pipeline.inertias[0] == live.inertias[-1]
    assert pipeline.covariances[0] == live.covariances[-1]
    std, total, driver, offset = (heard[name][-1] for name in kinds)
    assert {stamp_of(m) for m in (std, total, driver, offset)} == {stamp_of(live.inertias[-1])}
    assert {m.header.frame_id for m in (std, total, offset)} == {recording().frame}
    expected = live.numbers(f'{key}.std' for key in PARAMETER_KEYS)
    np.testing.assert_allclose(inertia_of(std), expected, rtol=1e-8)
    # There is no tool, and no driver takes anything off.
    np.testing.assert_array_equal(inertia_of(driver), np.zeros(10))
    np.testing.assert_allclose(inertia_of(total), inertia_of(live.inertias[-1]), rtol=1e-3)
    np.testing.assert_allclose(wrench_of(offset), live.numbers(OFFSET_KEYS), rtol=1e-8)


def test_reversed_sign_is_a_fault_and_never_an_inertia(live: Pipeline) -> None:
    live.play(recording())
    count = len(live.inertias)
    negated = replace(recording(), wrench=-recording().wrench)
    base = live.group.next_base()
    live.group.play(feed(negated, base))
    live.group.wait_for(lambda: live.state == 'fault', 'state fault')
    assert 'wrench sign reversed?' in live.words
    assert live.flowing.level == DiagnosticStatus.ERROR
    assert live.status['mass.identified'] == 'false'
    assert [m for m in live.inertias[count:] if stamp_of(m) >= base] == []
    live.play(recording())
    assert_holds(live)
