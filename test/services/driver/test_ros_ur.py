"""A UR, simulated from joint trajectory to payload: moved, told what it holds, moved again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from processes import DEADLINE, Program
from rclpy.context import Context
from ros_driver import UR, UR_SERVICE, body_of, described, offered, read
from ros_group import RELIABLE, Group
from ros_messages import FRAME, NAMESPACE, PAYLOAD
from ros_watched_arm import TRIES, WatchedArm

from load_identification.interface.program import DONE
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.payload_export import takes_inertia
from load_identification.model.regressor import gravity_wrench
from load_identification.model.robot import FrameMotion
from load_identification.nodes.client.answers import Answer, RefusedError
from load_identification.nodes.client.planner import LoadIdentification
from load_identification.typing_aliases import FloatArray

WRENCH = '/wrench', '/force_torque_sensor_broadcaster/wrench'
TRAJECTORIES = '/scaled_joint_trajectory_controller/joint_trajectory'


class UrArm(WatchedArm):
    """An arm whose driver names its wrench as no link, and takes off it what it was told.

    Parameters
    ----------
    context : Context
    service_type : type
    """

    def __init__(self, context: Context, service_type: Any) -> None:
        super().__init__(context, described('tool0'), TRAJECTORIES, [':='.join(WRENCH)])
        # The TCP set on the controller stands where the description has the sensor.
        self._frame = 'tool0_controller'
        self.held: list[FloatArray] = []
        """The bodies it was told of, (10,) about the origin of S."""
        self.events: list[str] = []
        """Those that `status` has told, each once in a row."""
        self.node.create_service(service_type, UR_SERVICE, self._hold)
        self.node.create_subscription(
            DiagnosticStatus, f'{NAMESPACE}/status', self._hear, RELIABLE
        )

    def _hold(self, request: Any, response: Any) -> Any:
        self.held.append(body_of(read(request)))
        response.success = True
        return response

    def _hear(self, status: DiagnosticStatus) -> None:
        (event,) = (item.value.split()[0] for item in status.values if item.key == 'event')
        if event not in self.events[-1:]:
            self.events.append(event)

    def load(self, motion: FrameMotion) -> FloatArray:
        held = self.held[-1] if self.held else np.zeros(10)
        return super().load(motion) - gravity_wrench(motion.gravity, held)


def identified(group: Group, *need: str) -> None:
    """Have the arm moved until what is needed is identified."""
    remapped = ('--ros-args', '-r', ':='.join(WRENCH))
    wanted = ('--need', *need, '--topic', TRAJECTORIES)
    arguments = ('--execute', '--yes', *wanted, *remapped)
    for _ in range(TRIES):
        run = Program(group, 'guided.identify_payload', *arguments)
        status, output = run.wait(), run.output
        # A busy machine lets an arm fall silent, which is stopped.
        if 'Stopped: no ' not in output:
            break
    assert status == DONE, output


def applied(hand: LoadIdentification) -> Answer:
    """Hand the payload over, once the pipeline has seen the arm stop: it looks back in time."""
    end = time.monotonic() + DEADLINE
    while True:
        try:
            return hand.apply_payload()
        except RefusedError as why:
            if not str(why).startswith(('moving', 'at rest for')) or time.monotonic() > end:
                raise
            time.sleep(0.05)


def test_two_calls_after_two_motions_end_with_the_right_payload(tmp_path: Path) -> None:
    with offered(tmp_path, *UR) as service_type, Group() as group:
        inertia = takes_inertia(service_type.Request.get_fields_and_field_types())
        need = ('mass', 'com', 'inertia') if inertia else ('mass', 'com')
        parameters = {'sensor_frame': FRAME, 'payload_driver': 'ur'}
        group.start(parameters=parameters, remaps=dict([WRENCH]))
        with (
            UrArm(group.node.context, service_type) as arm,
            LoadIdentification(group.node, NAMESPACE) as hand,
        ):
            group.wait_for(lambda: not arm.unheard, 'the pipeline')
            for _ in range(2):
                identified(group, *need)
                answer = applied(hand)
                assert answer.numbers['taken_off_the_wrench'] is True
            body = hand.payload()
        first, second = (InertialParameters.from_vector(held) for held in arm.held)
        for told in (first, second):
            assert abs(told.mass - PAYLOAD.mass) < 4.0 * body.mass_std < 0.02
            np.testing.assert_allclose(told.center_of_mass, PAYLOAD.center_of_mass, atol=3e-3)
        # The wrench has stepped once, which was no change of the load.
        assert arm.events == ['none', 'reset', 'driver_payload_changed', 'reset']
