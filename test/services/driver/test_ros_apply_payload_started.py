"""The payload handed over by nodes started anew, apart, without a flange or an interface."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from handover import AT_FLANGE, arm_of, loaded, right, tells
from ros_arm import SMALL, prepared, started
from ros_driver import FRANKA, FRANKA_SERVICE, UR_SERVICE, DriverArm, described, offered
from ros_group import Group
from ros_messages import PAYLOAD


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
