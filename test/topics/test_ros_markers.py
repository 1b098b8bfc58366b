"""The markers, asked of a running node over real DDS: what they are drawn like is what is known.

Every number expected comes from the messages `inertia` and `status`, or from the simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio
import pytest
from rclpy.duration import Duration
from ros_group import RELIABLE, Group
from ros_messages import (
    FRAME,
    NAMESPACE,
    PUMA,
    RATE,
    UNEVEN,
    Message,
    feed,
    inertia_of,
    recording,
    stamp_of,
    uneven_recording,
    vector,
)
from ros_pipeline import Pipeline
from visualization_msgs.msg import Marker, MarkerArray

from load_identification.model.robot import Robot
from load_identification.motion.joint_path import JointPath, Move
from load_identification.nodes.rviz import NEWTONS_PER_METRE, ORANGE
from load_identification.simulation.sensors import Recording, SensorModel, simulate
from load_identification.typing_aliases import FloatArray

KINDS = {
    ('center_of_mass', 0): Marker.SPHERE,
    ('center_of_mass_95', 0): Marker.SPHERE,
    ('box', 0): Marker.CUBE,
    ('principal_axes_95', 0): Marker.TRIANGLE_LIST,
    ('principal_axes_95', 1): Marker.TRIANGLE_LIST,
    ('principal_axes_95', 2): Marker.TRIANGLE_LIST,
    ('mass', 0): Marker.TEXT_VIEW_FACING,
    ('external_force', 0): Marker.ARROW,
}


TRIES = 5


class Shown:
    """What RViz would hold of the markers: those added, less those deleted."""

    def __init__(self, group: Group) -> None:
        self.messages: list[MarkerArray] = []
        self.markers: dict[tuple[str, int], Marker] = {}
        self.deleted: set[tuple[str, int]] = set()
        group.node.create_subscription(
            MarkerArray, f'{NAMESPACE}/markers', self._on_markers, RELIABLE
        )

    def _on_markers(self, message: MarkerArray) -> None:
        self.messages.append(message)
        for marker in message.markers:
            key = (marker.ns, marker.id)
            if marker.action == Marker.ADD:
                self.markers[key] = marker
            else:
                assert marker.action == Marker.DELETE
                del self.markers[key]
                self.deleted.add(key)

    def __getitem__(self, ns: str) -> Marker:
        return self.markers[ns, 0]

    @property
    def stamp(self) -> int:
        """Of the markers last added [ns]."""
        return max((stamp_of(marker) for marker in self.markers.values()), default=0)


@pytest.fixture(scope='module')
def shown(fed: Group, live: Pipeline) -> Shown:
    """Return what is shown."""
    shown = Shown(fed)
    fed.wait_for(
        lambda: fed.node.count_publishers(f'{NAMESPACE}/markers'), 'a publisher of markers'
    )
    return shown


def play(
    live: Pipeline,
    shown: Shown,
    played: Recording,
    change: Callable[[list[Message]], list[Message]] = lambda messages: messages,
    speed: float = 20.0,
) -> int:
    """Play a recording until the markers are those of its last inertia; return where it began.

    Again where a busy machine has let a second pass meanwhile, in which all are deleted.
    """
    for _ in range(TRIES):
        base = live.play(played, change, speed)
        live.group.wait_for(
            lambda: shown.stamp == live.newest or not shown.markers, 'markers of the last inertia'
        )
        if shown.markers:
            return base
    raise AssertionError(f'no markers at the end of {TRIES} plays')


def rotation_of(pose: Any) -> FloatArray:
    """Return the rotation matrix of a pose."""
    q = pose.orientation
    rotation: FloatArray = pinocchio.Quaternion(q.w, q.x, q.y, q.z).matrix()
    return rotation


def color_of(marker: Marker) -> tuple[float, float, float]:
    """Return red, green and blue."""
    return marker.color.r, marker.color.g, marker.color.b


def is_grey(marker: Marker) -> bool:
    """Tell whether a marker has no hue."""
    return len(set(color_of(marker))) == 1


def published_inertia(live: Pipeline) -> tuple[float, FloatArray, FloatArray]:
    """Return mass, centre of mass and inertia about it of the last message."""
    values = inertia_of(live.inertias[-1])
    matrix = np.zeros((3, 3))
    matrix[np.triu_indices(3)] = values[4:]
    matrix.T[np.triu_indices(3)] = values[4:]
    return float(values[0]), values[1:4], matrix


def test_markers_live_for_a_while_in_the_sensor_frame_as_the_published_inertia_is(
    live: Pipeline, shown: Shown
) -> None:
    play(live, shown, uneven_recording())
    assert len(shown.markers) >= 7
    for key, marker in shown.markers.items():
        assert marker.type == KINDS[key]
        assert marker.header.frame_id == FRAME
        assert marker.frame_locked
        # Longer than a publication takes by far, and no more than a few seconds.
        assert 1e9 <= Duration.from_msg(marker.lifetime).nanoseconds <= 5e9
        assert 0.0 < marker.color.a <= 1.0
    for message in shown.messages:
        keys = [(marker.ns, marker.id) for marker in message.markers]
        assert len(set(keys)) == len(keys)
    mass, center, inertia = published_inertia(live)
    for ns in ('center_of_mass', 'center_of_mass_95', 'box'):
        # Messages carry all of a double.
        np.testing.assert_allclose(vector(shown[ns].pose.position), center, atol=1e-12)
    # Oracle: Pinocchio's inertia of a uniform cuboid.
    box, turn = shown['box'], rotation_of(shown['box'].pose)
    about_its_axes = pinocchio.Inertia.FromBox(mass, *vector(box.scale)).inertia
    np.testing.assert_allclose(
        turn @ about_its_axes @ turn.T, inertia, atol=1e-9 * np.abs(inertia).max()
    )
    for k in range(3):
        cone = shown.markers['principal_axes_95', k]
        np.testing.assert_allclose(rotation_of(cone.pose)[:, 0], turn[:, k], atol=1e-9)
        points = np.array([vector(p) for p in cone.points]) * vector(cone.scale)
        assert len(points) % 3 == 0
        # From the centre out of the box, and known to some degrees after eight seconds.
        assert points[:, 0].max() > 0.5 * np.linalg.norm(vector(shown['box'].scale))
        assert np.abs(points[:, 1:]).max() < 0.2 * points[:, 0].max()


def test_ellipsoid_has_the_size_that_the_status_says(live: Pipeline, shown: Shown) -> None:
    # A second of motion: the ellipsoid is larger than the millimetre that is drawn at least.
    play(live, shown, recording(noise=10.0, duration=5.0))
    std = live.numbers(f'com.{axis}.std' for axis in 'xyz')
    ellipsoid = shown['center_of_mass_95']
    turn, semi_axes = rotation_of(ellipsoid.pose), np.array(vector(ellipsoid.scale)) / 2.0
    # Its extent along each axis of the sensor is 2.795 standard deviations of that coordinate.
    extent = np.sqrt((turn * semi_axes) ** 2 @ np.ones(3))
    assert semi_axes.min() > 0.0005
    np.testing.assert_allclose(extent, 2.7955 * std, rtol=1e-3)


def test_no_cone_for_axes_that_mean_nothing(live: Pipeline, shown: Shown) -> None:
    play(live, shown, recording(duration=10.0))  # of the block, 2 x 2 x 6 in
    cones = {number for ns, number in shown.markers if ns == 'principal_axes_95'}
    assert cones == {2}


def test_text_says_mass_and_interval_and_stands_above_the_load(
    live: Pipeline, shown: Shown
) -> None:
    played = recording(noise=10.0, duration=5.0)
    base = play(live, shown, played)
    text = shown['mass']
    value, sign, half, unit = text.text.split()
    assert (sign, unit) == ('±', 'kg')
    # Rounded to the first digit of the interval of 95 %, which no other number then has.
    std, last = live.number('mass.std'), 10.0 ** -len(half.partition('.')[2])
    assert std < 1.96 * std - last
    assert float(half) == pytest.approx(1.96 * std, abs=0.501 * last)
    assert float(value) == pytest.approx(live.number('mass'), abs=0.501 * last)
    # Up, as an accelerometer at rest would say; the gravity in the sensor frame is the truth.
    at = int(np.argmin(np.abs(played.stamps - (stamp_of(text) - base))))
    up = -played.motion.gravity[at] / 9.80665
    lifted = np.subtract(vector(text.pose.position), vector(shown['box'].pose.position))
    assert lifted @ up > 0.999 * np.linalg.norm(lifted)
    # The letters too, above the corners of the box and the cones that stick out of it.
    points = [vector(point) for point in shown.markers['principal_axes_95', 2].points]
    length = np.max(points) * np.max(vector(shown.markers['principal_axes_95', 2].scale))
    corner = 0.5 * np.linalg.norm(vector(shown['box'].scale))
    assert lifted @ up - text.scale.z / 2.0 > max(length, corner)


def test_grey_until_identified(live: Pipeline, shown: Shown) -> None:
    heard = len(shown.messages)

    def texts() -> list[Marker]:
        return [m for message in shown.messages[heard:] for m in message.markers if m.ns == 'mass']

    # The mass is known after half a second.
    played, base, few = uneven_recording(), live.group.next_base(), 40
    live.group.play(feed(played, base, last=few))
    live.group.wait_for(lambda: any(is_grey(text) for text in texts()), 'a grey text')
    live.group.play(feed(played, base, few))
    live.wait_for_inertia(played, base)
    live.group.wait_for(lambda: shown.stamp == live.newest, 'markers of the last inertia')
    assert [is_grey(text) for text in texts()] == ['not identified' in m.text for m in texts()]
    assert not any(is_grey(marker) for marker in shown.markers.values())
    # By mass and slow motion, nothing is known of the inertia: no box then. Slow until it brakes.
    slow = recording(slow=True)
    play(live, shown, replace(slow, stamps=slow.stamps[: round(18.5 * RATE)]))
    assert live.status['ixx.identified'] == 'false'
    assert ('box', 0) not in shown.markers
    assert not is_grey(shown['mass'])


def test_reset_deletes_what_is_known_no_longer(live: Pipeline, shown: Shown) -> None:
    played = uneven_recording()
    end = played.exact[0][-1]
    standing = JointPath((Move(end, end, 1.0),))
    at_rest = simulate(Robot(PUMA, FRAME), standing, UNEVEN, SensorModel(), RATE, 0)
    play(live, shown, played)
    shown.deleted.clear()
    assert live.group.call(f'{NAMESPACE}/reset').success
    # It goes on at rest, where weight tells mass and two coordinates of its centre.
    base = live.newest + 200_000_000
    live.group.play(feed(at_rest, base))
    live.group.wait_for(lambda: set(shown.markers) == {('mass', 0)}, 'only the text')
    assert {('box', 0), ('center_of_mass', 0), ('center_of_mass_95', 0)} <= shown.deleted


def test_nothing_is_left_when_the_stream_stops(live: Pipeline, shown: Shown) -> None:
    play(live, shown, uneven_recording())
    keys = set(shown.markers)
    shown.deleted.clear()
    live.group.wait_for(lambda: not shown.markers, 'all markers deleted')
    assert shown.deleted == keys
    # Once: a status later nothing more has come.
    count = len(shown.messages)
    live.settle()
    assert len(shown.messages) == count


def test_external_force_is_an_arrow_of_the_scale_stated(live: Pipeline, shown: Shown) -> None:
    push = np.array([12.0, -8.0, 5.0])

    def pushed(messages: list[Message]) -> list[Message]:
        for message in messages:
            if message.topic == '/wrench' and message.due > messages[-1].due - 1_000_000_000:
                force = message.content.wrench.force
                force.x, force.y, force.z = np.add(vector(force), push)
        return messages

    play(live, shown, uneven_recording())
    assert ('external_force', 0) not in shown.markers
    wanted = {('external_force', 0), ('box', 0)}

    def drawn(since: int) -> bool:
        return (
            wanted <= shown.markers.keys()
            and color_of(shown['box']) == pytest.approx(ORANGE)
            and stamp_of(shown['external_force']) >= since
        )

    for _ in range(TRIES):
        # For 1 s: it is not known yet whether the load has changed. Slowly: a busy machine that
        # loses samples of it knows another body than that of the play before.
        base = live.group.next_base()
        messages = pushed(feed(uneven_recording(), base))
        live.group.play(messages, 5.0)
        # In the second half of it, past the delay of the filter and the rise of the force. Again
        # where a busy machine has let a second pass meanwhile, in which all are deleted.
        late = messages[-1].due - 500_000_000
        live.group.wait_for(
            lambda since=late: drawn(since) or not shown.markers,
            'an arrow beside the body of before',
        )
        if shown.markers:
            break
    assert drawn(late), f'none at the end of {TRIES} plays'
    start, tip = (np.array(vector(p)) for p in shown['external_force'].points)
    np.testing.assert_array_equal(start, np.zeros(3))
    np.testing.assert_allclose(NEWTONS_PER_METRE * tip, push, atol=2.0)
    # The body of before, in a colour of its own and in words, but the force is what it is.
    boxes = [m for message in shown.messages for m in message.markers if m.ns == 'box']
    before = [m for m in boxes if m.action == Marker.ADD and color_of(m) != pytest.approx(ORANGE)]
    assert stamp_of(before[-1]) > base
    assert (shown['box'].pose, shown['box'].scale) == (before[-1].pose, before[-1].scale)
    lifted = np.subtract(vector(shown['mass'].pose.position), vector(shown['box'].pose.position))
    assert np.linalg.norm(lifted) > 0.5 * np.linalg.norm(vector(shown['box'].scale))
    for ns in ('box', 'center_of_mass', 'mass'):
        assert color_of(shown[ns]) == pytest.approx(ORANGE)
    assert 'not resolved' in shown['mass'].text
    assert color_of(shown['external_force']) != pytest.approx(ORANGE)
    assert not is_grey(shown['external_force'])


def test_a_fault_is_red(live: Pipeline, shown: Shown) -> None:
    def reversed_sign(messages: list[Message]) -> list[Message]:
        for message in messages:
            if message.topic == '/wrench':
                for v in (message.content.wrench.force, message.content.wrench.torque):
                    v.x, v.y, v.z = (-x for x in vector(v))
        return messages

    base = live.group.next_base()
    live.group.play(reversed_sign(feed(recording(), base)))
    live.group.wait_for(lambda: live.state == 'fault', 'a fault')
    live.group.wait_for(lambda: 'reversed' in shown['mass'].text, 'words of the fault')
    red, green, blue = color_of(shown['mass'])
    assert red > 2.0 * max(green, blue)
    assert set(shown.markers) == {('mass', 0)}
