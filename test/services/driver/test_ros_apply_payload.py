"""The payload handed to a robot's driver, over DDS, which takes off the wrench what it holds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from ros_arm import NOTHING as NO_BODY
from ros_arm import SHORT, SMALL, file_of, prepared, started
from ros_driver import (
    FRANKA,
    FRANKA_SERVICE,
    ROTATION,
    TRANSLATION,
    UR,
    UR_SERVICE,
    DriverArm,
    described,
    offered,
)
from ros_group import Group
from ros_messages import OFFSET, PAYLOAD
from ros_pipeline import Pipeline

from load_identification.model.inertial_parameters import InertialParameters

AT_FLANGE = PAYLOAD.transformed(ROTATION, TRANSLATION)


def arm_of(
    group: Group, service_type: Any, service: str, flange: str, **parameters: Any
) -> tuple[DriverArm, Pipeline]:
    """Start the nodes, and an arm whose driver takes off what it is told."""
    prepared(group)
    group.describe(described(flange))
    pipeline, _ = started(group, parameters=parameters)
    arm = DriverArm(group, service_type, service)
    arm.ready()
    return arm, pipeline


@pytest.fixture(scope='module')
def ur_type(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return the type of a UR's service, as the nodes will import it."""
    with offered(tmp_path_factory.mktemp('ur'), *UR) as service_type:
        yield service_type


@pytest.fixture(scope='module')
def live(ur_type: Any) -> Iterator[tuple[DriverArm, Pipeline]]:
    """Return an arm with a UR's driver and the process that hears it, both for many tests."""
    with Group() as group:
        yield arm_of(group, ur_type, UR_SERVICE, 'tool0', payload_driver='ur')


@pytest.fixture
def arm(live: tuple[DriverArm, Pipeline]) -> DriverArm:
    """Return the arm at rest with nothing held, and nothing held by its driver."""
    it = live[0]
    it.body, it.offset = NO_BODY, OFFSET.copy()
    it.compensates, it.refuses = True, False
    assert all(result.successful for result in it.set(payload_dry_run=False))
    it.move_to(0)
    it.rest(0.3)
    it.call_in_silence('clear_tool')
    assert it.call('clear_payload').success
    it.call_in_silence('reset')
    it.rest(0.3)
    it.told.clear()
    return it


def loaded(arm: DriverArm) -> None:
    """Hold the block until all of it is identified."""
    arm.body = PAYLOAD
    arm.call_in_silence('reset')
    arm.run()
    assert arm.group.pipelines[0].status['izz.identified'] == 'true'


def tells(values: Mapping[str, Any], body: InertialParameters) -> None:
    """Check a request against a body in the frame of the flange."""
    inertia = values.get('payload', values)
    mass = inertia['m'] if 'm' in inertia else inertia['mass']
    center = next(inertia[name] for name in ('com', 'center_of_gravity', 'center_of_mass')
                  if name in inertia)  # fmt: skip
    if isinstance(center, Mapping):
        center = [center[axis] for axis in 'xyz']
    assert mass == pytest.approx(body.mass, abs=0.01)
    np.testing.assert_allclose(center, body.center_of_mass, atol=0.003)
    if 'ixx' in inertia:
        names = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
        moments = body.inertia_about_center_of_mass[np.triu_indices(3)]
        np.testing.assert_allclose([inertia[name] for name in names], moments, atol=1e-3)
    if 'load_inertia' in inertia:
        np.testing.assert_allclose(
            inertia['load_inertia'], body.inertia_about_center_of_mass.ravel(), atol=1e-3
        )


def right(pipeline: Pipeline, body: InertialParameters = PAYLOAD) -> None:
    """Check that the mass is identified and right."""
    pipeline.settle()
    assert pipeline.status['mass.identified'] == 'true', pipeline.words
    assert abs(pipeline.number('mass') - body.mass) < 4.0 * pipeline.number('mass.std') < 0.1


def test_two_calls_end_with_the_right_payload(
    arm: DriverArm, live: tuple[DriverArm, Pipeline]
) -> None:
    pipeline = live[1]
    loaded(arm)
    answer = arm.call('apply_payload')
    assert answer.success, answer.says
    assert answer.says['driver'] == 'ur'
    assert answer.says['called'] == UR_SERVICE
    assert answer.says['frame'] == 'tool0'
    assert answer.says['taken_off_the_wrench'] is True
    tells(answer.says['request'], AT_FLANGE)
    tells(arm.told[0], AT_FLANGE)
    arm.rest(1.0)
    pipeline.settle()
    event = pipeline.status['event']
    assert event.startswith('driver_payload_changed ')
    right(pipeline)
    arm.run()
    right(pipeline)
    again = arm.call('apply_payload')
    assert again.success, again.says
    tells(arm.told[1], AT_FLANGE)
    arm.run()
    right(pipeline)
    # The second changes nothing, and neither was a change of load.
    assert pipeline.status['event'] == event
    assert len(arm.told) == 2
    stored = yaml.safe_load(file_of(arm.group).read_text())
    assert stored['driver']['held'][0] == pytest.approx(PAYLOAD.mass, abs=0.01)
    assert stored['driver']['taken_off'] == stored['driver']['held']


def test_zero_is_sent_by_clear_payload_alone(
    arm: DriverArm, live: tuple[DriverArm, Pipeline]
) -> None:
    loaded(arm)
    assert arm.call('apply_payload').success
    arm.run()
    answer = arm.call('clear_payload')
    assert answer.success, answer.says
    assert answer.says['taken_off_the_wrench'] is True
    assert not any(digit in str(arm.told[-1]) for digit in '123456789')
    # The block is still there, and the wrench has all of it again.
    arm.run()
    right(live[1])
    arm.call_in_silence('reset')
    arm.body = NO_BODY
    arm.run()
    arm.told.clear()
    nothing = arm.call('apply_payload')
    assert re.search(r'nothing is held; to tell the driver so call clear_payload', nothing.reason)
    assert arm.told == []


def test_a_dry_run_answers_what_would_be_sent_and_sends_nothing(arm: DriverArm) -> None:
    loaded(arm)
    assert all(result.successful for result in arm.set(payload_dry_run=True))
    answer = arm.call('apply_payload')
    assert answer.success, answer.says
    assert answer.says['dry_run'] is True
    tells(answer.says['request'], AT_FLANGE)
    assert arm.call('clear_payload').success
    assert arm.told == []


def test_tool_and_payload_are_told_together(
    arm: DriverArm, live: tuple[DriverArm, Pipeline]
) -> None:
    loaded(arm)
    assert arm.call('save_tool').success
    # The tool alone, with nothing held.
    alone = arm.call('apply_payload')
    assert alone.success, alone.says
    tells(arm.told[-1], AT_FLANGE)
    arm.body = PAYLOAD + SMALL
    arm.call_in_silence('reset')
    arm.run()
    both = arm.call('apply_payload')
    assert both.success, both.says
    tells(arm.told[-1], (PAYLOAD + SMALL).transformed(ROTATION, TRANSLATION))
    arm.run()
    pipeline = live[1]
    pipeline.settle()
    assert abs(pipeline.number('mass') - SMALL.mass) < 4.0 * pipeline.number('mass.std')


def test_it_refuses_in_motion(arm: DriverArm) -> None:
    loaded(arm)
    stream = arm.in_motion()
    arm.play(stream, 1.0, speed=4.0)
    for service in ('apply_payload', 'clear_payload'):
        answer = arm.call(service, stream)
        assert re.fullmatch(r'moving: joint \w+ at [\d.]+ rad/s', answer.reason)
    assert arm.told == []


def test_it_refuses_while_a_change_is_not_resolved(arm: DriverArm) -> None:
    loaded(arm)
    arm.body = NO_BODY
    arm.rest(1.0)
    answer = arm.call('apply_payload')
    assert answer.reason.startswith('load or offset changed: ')
    assert answer.reason.endswith('turn the sensor against gravity, then call apply_payload')
    assert arm.told == []


def test_it_refuses_what_is_not_identified_and_says_why(arm: DriverArm) -> None:
    arm.body = PAYLOAD
    arm.rest(0.3)
    arm.call_in_silence('reset')
    arm.rest(1.0)
    answer = arm.call('apply_payload')
    assert answer.reason.startswith('not identified; centre of mass x, y, z unknown')
    assert arm.told == []


def test_it_refuses_what_the_arm_cannot_hold(arm: DriverArm) -> None:
    arm.body = InertialParameters.from_center_of_mass(
        60.0, [0.0, 0.0, 0.1], np.diag([0.6, 0.6, 0.6])
    )
    arm.call_in_silence('reset')
    arm.run(SHORT)
    arm.run()
    answer = arm.call('apply_payload')
    assert re.match(
        r'above what the arm can hold: \d+(\.\d+)? kg would take \d+ N·m of joint_\d '
        r'in this pose, which has [\d.]+',
        answer.reason,
    )
    assert arm.told == []


def test_it_refuses_an_estimate_of_long_ago(arm: DriverArm) -> None:
    loaded(arm)
    silent = arm.group.node.get_clock().now().nanoseconds

    def seconds() -> float:
        return 1e-9 * (arm.group.node.get_clock().now().nanoseconds - silent)

    arm.group.wait_for(lambda: seconds() > 6.0, 'six seconds of silence')
    # Nor is it known then whether the arm stands still.
    for service in ('apply_payload', 'clear_payload'):
        answer = arm.call_in_silence(service)
        assert re.match(r'wrench \d+\.\d s old', answer.reason)
    assert arm.told == []


def load_of_driver(arm: DriverArm) -> float:
    """Return the mass that is stored as held by the driver [kg]."""
    return float(yaml.safe_load(file_of(arm.group).read_text())['driver']['held'][0])


def unchanged(arm: DriverArm, pipeline: Pipeline) -> None:
    """Check that the stream has noticed nothing."""
    event = pipeline.status['event']
    arm.run()
    right(pipeline)
    assert pipeline.status['event'] == event


def test_a_driver_that_says_no_is_passed_on(
    arm: DriverArm, live: tuple[DriverArm, Pipeline]
) -> None:
    loaded(arm)
    arm.refuses = True
    answer = arm.call('apply_payload')
    assert not answer.success
    assert answer.reason.startswith('the driver refuses: ')
    unchanged(arm, live[1])


def test_a_driver_that_is_not_there_is_named(
    arm: DriverArm, live: tuple[DriverArm, Pipeline]
) -> None:
    loaded(arm)
    arm.withdraw()
    try:
        answer = arm.call('apply_payload')
        assert answer.reason.startswith(f'nobody offers {UR_SERVICE}: is the driver running')
        unchanged(arm, live[1])
    finally:
        arm.offer()


def test_of_two_calls_that_wait_for_a_driver_one_alone_is_sent(arm: DriverArm) -> None:
    loaded(arm)
    arm.withdraw()
    # Each begun in a tick of its own, and before the driver is there.
    pending = [arm.start('apply_payload'), arm.start('clear_payload')]
    arm.rest(0.3)
    arm.offer()
    stream = arm.at_rest()
    while not all(answer() for answer in pending):
        arm.play(stream, 0.02)
    assert len(arm.told) < 2


def test_a_driver_that_keeps_silent_is_given_up_and_heard_later(
    arm: DriverArm, live: tuple[DriverArm, Pipeline]
) -> None:
    pipeline = live[1]
    loaded(arm)
    with arm.silent() as answer_late:
        answer = arm.call('apply_payload')
        assert answer.reason.startswith(f'{UR_SERVICE} has not answered within')
        unchanged(arm, pipeline)
        # It has taken it after all, and says so now.
        arm.held = PAYLOAD.to_vector()
        answer_late()
        # What it took off before it said so may be looked into, and is no change.
        arm.group.wait_for(
            lambda: load_of_driver(arm) == pytest.approx(PAYLOAD.mass, abs=0.01),
            'the late answer',
            meanwhile=lambda: arm.rest(0.1),
        )
    arm.run()
    right(pipeline)


def test_a_driver_that_takes_nothing_off_the_wrench_is_found_out(
    arm: DriverArm, live: tuple[DriverArm, Pipeline]
) -> None:
    loaded(arm)
    arm.compensates = False
    answer = arm.call('apply_payload')
    assert answer.success, answer.says
    assert answer.says['taken_off_the_wrench'] is False
    arm.run()
    right(live[1])
    cleared = arm.call('clear_payload')
    assert cleared.success, cleared.says
    assert cleared.says['taken_off_the_wrench'] is False
    arm.rest(0.2)
    live[1].settle()
    assert not live[1].status['event'].startswith('driver_payload_changed')


def test_what_the_driver_holds_survives_a_restart(ur_type: Any) -> None:
    with Group() as group:
        arm, _ = arm_of(group, ur_type, UR_SERVICE, 'tool0', payload_driver='ur')
        loaded(arm)
        assert arm.call('apply_payload').success
        arm.rest(0.5)
        process = group._processes[0]
        process.close()
        group.pipelines.clear()
        other = {'payload_driver': 'ur', 'driver_payload_mass': 0.4}
        pipeline, (process,) = started(group, parameters=other)
        assert 'driver_payload_mass 0.4 kg does not count: the driver was told' in process.output
        arm.ready()
        arm.begin = arm.now
        arm.run()
        right(pipeline)
        answer = arm.call('apply_payload')
        assert answer.success, answer.says
        tells(arm.told[-1], AT_FLANGE)


def test_three_processes_hand_it_over_too(ur_type: Any) -> None:
    with Group() as group:
        prepared(group)
        group.describe(described('tool0'))
        pipeline, _ = started(
            group, 'fusion', 'filter', 'estimator', parameters={'payload_driver': 'ur'}
        )
        arm = DriverArm(group, ur_type, UR_SERVICE)
        arm.ready()
        loaded(arm)
        answer = arm.call('apply_payload')
        assert answer.success, answer.says
        tells(arm.told[-1], AT_FLANGE)
        arm.run()
        right(pipeline)
        assert pipeline.status['event'].startswith('driver_payload_changed')


def test_without_the_flange_it_says_so(ur_type: Any) -> None:
    with Group() as group:
        arm, _ = arm_of(group, ur_type, UR_SERVICE, 'mount', payload_driver='ur')
        loaded(arm)
        refused = arm.call('apply_payload')
        assert re.match('the robot description has no link tool0', refused.reason)
        assert arm.told == []


def test_franka_is_told_of_the_payload_besides_its_tool(tmp_path: Path) -> None:
    with offered(tmp_path, *FRANKA) as service_type, Group() as group:
        arm, pipeline = arm_of(
            group, service_type, FRANKA_SERVICE, 'fr3_link8', payload_driver='franka'
        )
        loaded(arm)
        assert arm.call('save_tool').success
        arm.body = PAYLOAD + SMALL
        arm.call_in_silence('reset')
        # So that a light load's inertia may be handed over too.
        arm.run()
        arm.run()
        answer = arm.call('apply_payload')
        if not answer.success:
            assert answer.reason.startswith('not identified; inertia')
        arm.body = PAYLOAD
        arm.call_in_silence('clear_tool')
        loaded(arm)
        arm.refuses = True
        refused = arm.call('apply_payload')
        assert refused.reason.startswith('the driver refuses: ')
        arm.refuses = False
        answer = arm.call('apply_payload')
        assert answer.success, answer.says
        assert answer.says['frame'] == 'fr3_link8'
        tells(arm.told[-1], AT_FLANGE)
        arm.run()
        right(pipeline)


@pytest.mark.parametrize(('driver', 'package'), [('ur', 'ur_msgs'), ('franka', 'franka_msgs')])
def test_an_interface_that_is_missing_is_named(
    group: Group, driver: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Hides what may be installed.
    (tmp_path / package).mkdir()
    (tmp_path / package / '__init__.py').write_text("raise ImportError('not there')")
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    process = group.start('load_identification', {'payload_driver': driver})
    assert process.wait() == 2
    said = process.output
    assert re.search(
        rf"parameter payload_driver is '{driver}', which needs {package}/srv/\w+: not there\. "
        r"Install it \(apt install ros-.*\), or set payload_driver to 'none'",
        said,
    ), said


UNBUILT = """
from rosidl_generator_py.import_type_support_impl import UnsupportedTypeSupport

class Meta(type):
    _TYPE_SUPPORT = None

    @classmethod
    def __import_type_support__(cls):
        raise UnsupportedTypeSupport('ur_msgs')

class SetPayload(metaclass=Meta):
    class Request:
        get_fields_and_field_types = staticmethod(
            lambda: {'mass': 'float', 'center_of_gravity': 'geometry_msgs/Vector3'}
        )
"""
"""The module of an interface whose libraries are those of another Python."""


def test_an_interface_of_another_python_is_named(
    group: Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'ur_msgs').mkdir()
    (tmp_path / 'ur_msgs' / '__init__.py').touch()
    (tmp_path / 'ur_msgs' / 'srv.py').write_text(UNBUILT)
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    process = group.start('load_identification', {'payload_driver': 'ur'})
    assert process.wait() == 2
    assert (
        "parameter payload_driver is 'ur', whose ur_msgs/srv/SetPayload cannot be used: "
        "Could not import 'rosidl_typesupport_c' for package 'ur_msgs'"
    ) in process.output
