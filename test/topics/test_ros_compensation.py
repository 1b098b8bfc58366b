"""The compensated wrench of the one process and of the node alone, over real topics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import InertiaStamped, Wrench, WrenchStamped
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters
from ros_arm import Arm
from ros_group import LATCHED, Group
from ros_messages import (
    FRAME,
    NAMESPACE,
    NS,
    OFFSET,
    PAYLOAD,
    PUMA,
    Message,
    feed,
    inertia_of,
    recording,
    stamp_of,
    stamped,
    wrench_message,
    wrench_of,
)
from ros_pipeline import Pipeline, connected

from load_identification.interface.messages import set_inertia
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.model.regressor import gravity_wrench
from load_identification.typing_aliases import FloatArray

TOPIC = f'{NAMESPACE}/wrench_compensated'
ROLES = ['fusion', 'filter', 'estimator', 'compensation']
NOISE = np.repeat([0.1, 0.005], 3)
HELD = InertialParameters.from_center_of_mass(0.7, [0.01, 0.0, 0.05], np.zeros((3, 3)))
"""What the robot's driver believes to hang there."""
PART = 20
"""Messages played at once: 80 ms of both topics."""


def inertia_message(stamp: int, body: FloatArray) -> InertiaStamped:
    """Return a body, about the origin of S, as a message."""
    message = stamped(InertiaStamped(), stamp, FRAME)
    set_inertia(message.inertia, to_message_order(body))
    return message


def push(messages: list[Message], since: int) -> None:
    """Add 5 N to the wrenches from a stamp on."""
    for message in messages:
        if message.topic == '/wrench' and message.due >= since:
            message.content.wrench.force.x += 5.0


def without_held(messages: list[Message], sign: float = 1.0) -> list[Message]:
    """Take the weight of what the driver holds off the wrenches of the whole recording."""
    weight = gravity_wrench(recording().motion.gravity, HELD.to_vector())
    wrenches = [message for message in messages if message.topic == '/wrench']
    for message, row in zip(wrenches, weight, strict=True):
        values = np.array(wrench_of(message.content)) - sign * row
        message.content.wrench = wrench_message(0, FRAME, values).wrench
    return messages


def heard(compensated: list[WrenchStamped]) -> tuple[FloatArray, FloatArray]:
    """Return stamps (n,) and wrenches (n, 6)."""
    stamps = np.array([stamp_of(message) for message in compensated])
    return stamps, np.array([wrench_of(message) for message in compensated])


def play_in_parts(group: Group, messages: list[Message], lists: list[list[WrenchStamped]]) -> None:
    """Play messages bit by bit: what a busy machine has no room for is lost.

    Lists to which wrenches are appended as they are compensated say when the next may follow. A
    part is shorter than `max_gap`: a node that is kept waiting between the two topics leaves out
    wrenches that much newer than the joint states it knows.
    """
    for first in range(0, len(messages), PART):
        part = messages[first : first + PART]
        group.play(part, speed=2.0)
        group.wait_for(
            lambda due=part[-1].due: all(each and stamp_of(each[-1]) == due for each in lists),
            'the last wrench',
        )


def test_free_motion_with_the_payload_found_leaves_noise_and_a_push_the_push() -> None:
    with Group() as group:
        group.publish_inputs()
        compensated = group.record(WrenchStamped, TOPIC)
        totals = group.record(InertiaStamped, f'{NAMESPACE}/inertia_total', LATCHED)
        live = connected(group, parameters={'compensate_inertia': True})
        assert live.status['compensation'] == 'none'
        group.play(feed(recording(), group.next_base(), last=40))
        group.wait_for(lambda: totals, 'the total')
        # Of the tool, which there is none, whatever is known of the payload by now.
        assert inertia_of(totals[0]).tolist() == [0.0] * 10
        base = live.play(recording())
        assert live.status['compensation'] == 'payload'
        np.testing.assert_allclose(inertia_of(totals[-1])[0], PAYLOAD.mass, atol=0.01)
        # It goes on where it stood, the arm carries on.
        sim = recording()
        last = int(sim.stamps[-1])
        messages = feed(sim, base + last + 8_000_000)
        pushed = base + last + 8_000_000 + 6 * NS
        push(messages, pushed)
        group.wait_for(lambda: compensated, 'wrenches compensated')
        compensated.clear()
        play_in_parts(group, messages, [compensated])
        stamps, wrenches = heard(compensated)
        # The last ones of what was played first may have come late.
        stamps, wrenches = (each[stamps >= messages[0].due] for each in (stamps, wrenches))
        assert {m.header.frame_id for m in compensated} == {FRAME}
        # All, once joint velocities are known and the node has heard of who listens.
        assert stamps[0] < pushed - 2 * NS
        sent = [m.due for m in messages if m.topic == '/wrench' and m.due >= stamps[0]]
        assert stamps.tolist() == sent
        free = wrenches[(stamps > pushed - 5 * NS) & (stamps < pushed)]
        assert (np.sqrt(np.mean(free**2, axis=0)) < 1.5 * NOISE).all()
        assert abs(wrenches[stamps >= pushed][:10, 0].mean() - 5.0) < 0.3
        # Whatever the push is taken for, the payload is taken off on.
        states = [s.value for m in live.statuses for s in m.values if s.key == 'compensation']
        assert set(states[states.index('payload') :]) <= {'payload', 'last_payload'}
        np.testing.assert_allclose(inertia_of(totals[-1])[0], PAYLOAD.mass, atol=0.01)


def test_parameters_tell_what_is_taken_off_and_cannot_be_set() -> None:
    node = f'{NAMESPACE}/estimator_node'
    names = [f'compensation.{name}' for name in ('mass', 'center_of_mass', 'offset')]
    with Group() as group:
        group.publish_inputs()
        live = connected(group)

        def told() -> list[list[float]]:
            response = group.call(f'{node}/get_parameters', GetParameters, names=names)
            mass, *others = response.values
            return [[mass.double_value], *(list(v.double_array_value) for v in others)]

        mass, center, offset = told()
        assert (mass, center) == ([0.0], [0.0] * 3)
        assert np.isnan(offset).all()
        live.play(recording())
        group.wait_for(lambda: told()[0][0] > 0.0, 'the mass')
        mass, center, offset = told()
        np.testing.assert_allclose(mass, PAYLOAD.mass, atol=0.01)
        np.testing.assert_allclose(center, PAYLOAD.center_of_mass, atol=0.002)
        np.testing.assert_allclose(offset, OFFSET, atol=0.1)
        value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=7.0)
        (result,) = group.call(
            f'{node}/set_parameters',
            SetParameters,
            parameters=[Parameter(name=names[0], value=value)],
        ).results
        assert (result.successful, 'set by the node alone' in result.reason) == (False, True)
        assert told()[0] != [7.0]


def said(diagnostics: list[DiagnosticArray]) -> str:
    """Return what the node alone has said last."""
    statuses = [s for m in diagnostics for s in m.status if s.name.endswith('compensation_node')]
    return str(statuses[-1].message) if statuses else ''


def not_compensated(diagnostics: list[DiagnosticArray]) -> int:
    """Return how many wrenches have been left out by the node alone, or the one process."""
    key = 'samples.dropped.not_compensated'
    values = (v for m in diagnostics for s in m.status for v in s.values if v.key == key)
    return max((int(v.value) for v in values), default=0)


def test_alone_it_waits_for_what_to_take_off_and_takes_it_off() -> None:
    sim = recording()
    with Group() as group:
        group.publish_inputs()
        group.start('compensation', {'compensate_inertia': True, 'wrench_convention': 'on_sensor'})
        diagnostics = group.record(DiagnosticArray, '/diagnostics')

        def feed_some() -> None:
            group.play(feed(sim, group.next_base(), last=40))

        def publish(name: str, message: Any) -> None:
            group.publisher(type(message), f'{NAMESPACE}/{name}', LATCHED).publish(message)

        with group.recorded((WrenchStamped, TOPIC)) as (compensated,):
            missing = f'waiting for {NAMESPACE}/offset, {NAMESPACE}/inertia_total'
            group.wait_for(lambda: missing in said(diagnostics), missing, meanwhile=feed_some)
            publish('inertia_total', inertia_message(1, PAYLOAD.to_vector()))
            missing = f'waiting for {NAMESPACE}/offset:'
            group.wait_for(lambda: missing in said(diagnostics), missing, meanwhile=feed_some)
            assert compensated == []
            publish('offset', wrench_message(1, FRAME, OFFSET))
            group.wait_for(
                lambda: compensated and np.isfinite(wrench_of(compensated[-1])).all(),
                'wrenches',
                meanwhile=feed_some,
            )
            base = group.next_base()
            messages = feed(sim, base)
            pushed = base + 6 * NS
            push(messages, pushed)
            compensated.clear()
            group.play(messages, speed=4.0)
            group.wait_for(
                lambda: compensated and stamp_of(compensated[-1]) == messages[-1].due,
                'the last wrench',
            )
            group.wait_for(lambda: said(diagnostics) != missing, 'that it runs')
        stamps, wrenches = heard(compensated)
        mine = (stamps >= base) & (stamps <= messages[-1].due)
        stamps, wrenches = stamps[mine], wrenches[mine]
        assert stamps[0] < base + NS
        np.testing.assert_array_equal(stamps, base + sim.stamps[-len(stamps) :])
        free = wrenches[stamps < pushed]
        assert (np.sqrt(np.mean(free**2, axis=0)) < 1.5 * NOISE).all()
        after = wrenches[stamps >= pushed]
        assert abs(after[:10, 0].mean() - 5.0) < 0.3
        assert abs(after[0, 0] - 5.0) < 5.0 * NOISE[0]


@pytest.mark.parametrize('nodes', [['load_identification'], ROLES], ids=['one', 'four'])
def test_a_frame_that_a_description_lacks_is_said_on_status_and_blamed_for_nothing(
    nodes: list[str],
) -> None:
    with Group() as group:
        group.publish_inputs()
        diagnostics = group.record(DiagnosticArray, '/diagnostics')
        live = Pipeline(group)
        for node in nodes:
            wrong = node in ('compensation', 'load_identification')
            given = {'robot_description': PUMA} if node == 'load_identification' else {}
            group.start(node, {'compensated_frame': 'palm', **given} if wrong else {})
        words = "compensated_frame: 'palm' is no link of the robot description"

        def dead() -> list[Message]:
            messages = feed(recording(), group.next_base(), last=40)
            for message in messages:
                if message.topic == '/wrench':
                    message.content.wrench = Wrench()
            return messages

        group.wait_for(
            lambda: words in said(diagnostics) and words in live.words,
            words,
            meanwhile=lambda: group.play(dead()),
        )
        assert live.statuses[-1].level == DiagnosticStatus.WARN
        assert live.status['state'] == 'waiting'
        arm = Arm(group)
        arm.ready()

        def refusal() -> str:
            group.play(dead())
            return arm.call_in_silence('calibrate_offset').reason

        reasons: list[str] = []
        # In four processes the other causes end one after the other.
        group.wait_for(
            lambda: reasons[-1:] and reasons[-1].startswith('no channel of the wrench is alive: '),
            'no channel of the wrench is alive',
            meanwhile=lambda: reasons.append(refusal()),
        )
        assert not any('compensated_frame' in reason for reason in reasons)


def test_alone_beside_the_estimator_it_is_that_of_the_one_process() -> None:
    """By the convention that the tests above do not have."""
    sim, ours = recording(), {'wrench_convention': 'on_load'}
    held = {
        'driver_payload_mass': HELD.mass,
        'driver_payload_center_of_mass': HELD.center_of_mass.tolist(),
    }

    def changed(messages: list[Message]) -> list[Message]:
        for message in without_held(messages):
            if message.topic == '/wrench':
                values = -np.array(wrench_of(message.content))
                message.content.wrench = wrench_message(0, FRAME, values).wrench
        return messages

    with Group() as group:
        group.publish_inputs()
        one, four = (Pipeline(group, f'/{name}{NAMESPACE}') for name in ('one', 'four'))
        diagnostics = group.record(DiagnosticArray, '/diagnostics')
        lists = [
            group.record(WrenchStamped, f'{p.namespace}/wrench_compensated') for p in (one, four)
        ]
        group.start(parameters=ours | held, remaps={'__ns': one.namespace})
        for node in ROLES:
            parameters = {'estimator': ours | held, 'fusion': {}}.get(node, ours)
            group.start(node, parameters, {'__ns': four.namespace})
        for pipeline in (one, four):
            pipeline.connect()
        # A node that hears of the robot only now has none of what came before to publish.
        group.wait_for(
            lambda: all(lists),
            'wrenches compensated by both',
            meanwhile=lambda: group.play(changed(feed(sim, group.next_base()))),
        )
        base = one.play(sim, changed, others=[four])
        assert [p.status['compensation'] for p in (one, four)] == ['payload'] * 2
        later = base + int(sim.stamps[-1]) + 8_000_000
        again = changed(feed(sim, later))
        for each in lists:
            each.clear()
        play_in_parts(group, again, lists)
        # What the node alone has waited for is no sample lost to the estimate.
        group.wait_for(lambda: not_compensated(diagnostics) > 0, 'a count of wrenches left out')
        assert four.dropped('not_compensated') == 0
        (stamps, of_one), (stamps_alone, alone) = (heard(each) for each in lists)
        common, first, second = np.intersect1d(stamps, stamps_alone, return_indices=True)
        # Of what was played before, some may have been on its way still.
        settled = (common >= later + NS) & (common <= again[-1].due)
        sent = later + sim.stamps[sim.stamps >= NS]
        np.testing.assert_array_equal(common[settled], sent)
        inertial = sim.exact_wrench - gravity_wrench(sim.motion.gravity, PAYLOAD.to_vector())
        free = alone[second][settled] + inertial[sim.stamps >= NS]
        assert (np.sqrt(np.mean(free**2, axis=0)) < 1.5 * NOISE).all()
        # What is known of the load grows while the two take it off at other instants, and they
        # cut the stream into other batches.
        difference = (alone[second] - of_one[first])[settled]
        assert (np.sqrt(np.mean(difference**2, axis=0)) < 0.05 * NOISE).all()
