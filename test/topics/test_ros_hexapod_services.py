"""What a load weighs that comes upon a hexapod, by the services of the estimator behind it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from exact_hexapod import exact_legs
from hexapod_legs import (
    BODY,
    LOAD,
    ON_BODY,
    SLOWING_NS,
    details,
    holds,
    leg_states,
    messages,
    start,
    written,
)
from ros_group import RELIABLE, Group
from ros_messages import NAMESPACE, NS, Message
from ros_pipeline import Pipeline
from std_srvs.srv import Trigger
from visualization_msgs.msg import Marker, MarkerArray

from load_identification.interface.batches import EffortBatch
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.parallel.mechanism import Mechanism
from load_identification.simulation.hexapod import GEOMETRY, GEOMETRY_FILE, PLATFORM


def test_a_load_is_what_comes_upon_the_platform_that_was_saved_as_the_tool(group: Group) -> None:
    pipeline = Pipeline(group)
    markers = group.record(MarkerArray, f'{NAMESPACE}/markers', RELIABLE)
    diagnostics = group.record(DiagnosticArray, '/diagnostics')
    start(group)
    # Less noise than usual: 16 s are to do for what takes a minute.
    alone = leg_states(PLATFORM, noise=0.3)
    loaded = leg_states(BODY, begin=20.0, seed=2, noise=0.3)

    def play(legs: EffortBatch, last: int | None = None) -> None:
        group.play(messages(legs, 0, last), speed=6.0)
        end = int(legs.stamps[:last][-1])
        group.wait_for(lambda: pipeline.newest > end - SLOWING_NS, 'the last samples used')

    play(alone)
    saved, tool = answer(group, 'save_tool', at_rest(PLATFORM, alone, 2.0))
    assert saved, tool
    assert tool['mass'] == pytest.approx(PLATFORM.mass, abs=4.0 * tool['mass_std'])
    assert answer(group, 'reset')[0]
    play(loaded)
    assert holds(pipeline, LOAD), pipeline.status
    shown = {m.ns: m for array in markers for m in array.markers if m.action == Marker.ADD}
    assert {'center_of_mass', 'box', 'mass'} <= set(shown)
    assert shown['box'].header.frame_id == 'platform'
    center = shown['center_of_mass'].pose.position
    found = pipeline.numbers(ON_BODY[1:4])
    # The marker may be a tenth of a second older than the status.
    np.testing.assert_allclose([center.x, center.y, center.z], found, atol=2e-3)
    # The recursive two steps, of all that rode on the legs since the hexapod node began.
    group.wait_for(lambda: 'two_step.mass' in details(diagnostics), 'the estimate in two steps')
    # At rest nobody knows the friction, so nothing can be weighed; but it is said.
    checked, mass = answer(group, 'check_mass', at_rest(BODY, loaded, 3.0))
    assert not checked
    assert mass['reason'] == 'the wrench is unknown at rest: no channel is live'
    assert answer(group, 'clear_tool')[0]
    group.wait_for(lambda: pipeline.number('mass') > 25.0, 'platform and load together')
    assert holds(pipeline, BODY), pipeline.status


def answer(
    group: Group, service: str, meanwhile: list[Message] | None = None
) -> tuple[bool, dict[str, Any]]:
    """Call a service of the estimator, in the middle of some messages, and return its verdict."""
    client = group.node.create_client(Trigger, f'{NAMESPACE}/{service}')
    group.wait_for(client.service_is_ready, service)
    feed = meanwhile or []
    quarter = len(feed) // 4
    group.play(feed[:quarter], speed=1.0)
    future = client.call_async(Trigger.Request())
    group.play(feed[quarter : 2 * quarter], speed=1.0)
    # Again where a busy machine has kept this process from streaming meanwhile, as `Arm.call`,
    # or has not come to the end of the motion yet.
    if future.done() and re.search(r' s old|moving: ', future.result().message):
        future = client.call_async(Trigger.Request())
    group.play(feed[2 * quarter :], speed=1.0)
    group.wait_for(future.done, f'answer of {service}')
    group.node.destroy_client(client)
    return future.result().success, json.loads(future.result().message)


def at_rest(body: InertialParameters, after: EffortBatch, duration: float) -> list[Message]:
    """Return messages of legs that stand still at home under a body, after some others."""
    count = int(250 * duration)
    stamps = after.stamps[-1] + 4_000_000 * np.arange(1, count + 1)
    home = exact_legs(Mechanism(GEOMETRY), body, duration=4.0, rate=250.0)
    position, effort = (np.repeat(x[:1], count, axis=0) for x in (home.position, home.effort))
    effort += 0.3 * np.random.default_rng(8).standard_normal((count, 6))
    return messages(EffortBatch(after.names, stamps, position, np.zeros((count, 6)), effort))


def test_legs_without_friction_are_calibrated_and_weighed_at_rest(
    group: Group, tmp_path: Path
) -> None:
    document = yaml.safe_load(GEOMETRY_FILE.read_text(encoding='utf-8'))
    del document['friction']
    pipeline = Pipeline(group)
    start(
        group,
        written(tmp_path, document),
        {'calibration_samples': 200, 'expected_mass': LOAD.mass, 'mass_tolerance': 1.0},
    )
    alone = exact_legs(Mechanism(GEOMETRY), PLATFORM, duration=8.0, rate=250.0)
    noise = np.random.default_rng(9).standard_normal(alone.effort.shape)
    alone = replace(alone, effort=alone.effort + 0.3 * noise)
    group.play(messages(alone), speed=4.0)
    group.wait_for(lambda: pipeline.newest > alone.stamps[-1] - 120_000_000, 'the last samples')
    saved, tool = answer(group, 'save_tool', at_rest(PLATFORM, alone, 2.0))
    assert saved, tool
    rested = replace(alone, stamps=alone.stamps + 3 * NS)
    calibrated, offset = answer(group, 'calibrate_offset', at_rest(PLATFORM, rested, 3.0))
    assert calibrated, offset
    # Nothing is added to the forces; the platform's weight is known to some hundredths of a kg.
    np.testing.assert_allclose(offset['offset'][:3], 0.0, atol=1.5)
    loaded = exact_legs(Mechanism(GEOMETRY), BODY, duration=8.0, rate=250.0)
    noise = np.random.default_rng(10).standard_normal(loaded.effort.shape)
    loaded = replace(loaded, stamps=loaded.stamps + 20 * NS, effort=loaded.effort + 0.3 * noise)
    group.play(messages(loaded), speed=4.0)
    checked, mass = answer(group, 'check_mass', at_rest(BODY, loaded, 4.0))
    assert checked, mass
    assert mass['mass'] == pytest.approx(LOAD.mass, abs=0.2)
