"""To and from tf2: the payload's frame, and a sensor frame that hangs on a link by /tf_static.

What needs tf2_ros runs where that is installed; it is not on the package index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pinocchio
import pytest
from geometry_msgs.msg import TransformStamped, WrenchStamped
from rclpy.node import Node
from ros_group import LATCHED, Group
from ros_messages import FRAME, PUMA, inertia_of, recording, stamp_of, uneven_recording, vector
from ros_pipeline import Pipeline, assert_holds, pieces
from sensor_msgs.msg import JointState

from load_identification.errors import FrameError
from load_identification.interface.parameters import Parameters
from load_identification.model.frames import link_names, with_fixed_link
from load_identification.model.robot import Robot
from load_identification.nodes.transport import description as transforms
from load_identification.signals.motion_filter import DescribedRobot
from load_identification.typing_aliases import FloatArray

needs_tf2 = pytest.mark.skipif(not transforms.INSTALLED, reason='tf2_ros is not installed')

SENSOR = re.compile(
    r'<link name="ft_sensor">.*?</link>|<joint name="ft_sensor_joint".*?</joint>', re.S
)
BARE = SENSOR.sub('', PUMA)
"""The arm without its sensor, which sits 86.25 mm above link_6."""

HEIGHT = 0.08625


def test_a_link_added_moves_as_one_of_the_description_does() -> None:
    rng = np.random.default_rng(0)
    turn = pinocchio.exp3(rng.normal(size=3))
    placed = (
        '<joint name="added_joint" type="fixed"><parent link="link_6"/><child link="a&amp;b"/>'
    )
    roll, pitch, yaw = pinocchio.rpy.matrixToRpy(turn)
    placed += f'<origin xyz="0.1 -0.2 0.3" rpy="{roll} {pitch} {yaw}"/></joint>'
    written = PUMA.replace('</robot>', f'<link name="a&amp;b"/>{placed}</robot>')
    added = with_fixed_link(PUMA, 'link_6', 'a&b', turn, [0.1, -0.2, 0.3])

    assert link_names(added) == (*link_names(PUMA), 'a&b')
    sample = [rng.normal(size=(20, 6)) for _ in range(3)]
    expected, found = (Robot(urdf, 'a&b').motion(*sample) for urdf in (written, added))
    for name in ('angular_velocity', 'angular_acceleration', 'linear_acceleration'):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-9)


def test_a_link_is_added_where_the_description_lacks_it() -> None:
    with pytest.raises(FrameError):
        Robot(BARE, FRAME)
    added = with_fixed_link(BARE, 'link_6', FRAME, np.eye(3), [0.0, 0.0, HEIGHT])
    sample = [np.random.default_rng(1).normal(size=(20, 6)) for _ in range(3)]
    expected, found = (Robot(urdf, FRAME).motion(*sample) for urdf in (PUMA, added))
    np.testing.assert_allclose(found.linear_acceleration, expected.linear_acceleration, atol=1e-9)


@pytest.fixture
def group() -> Iterator[Group]:
    """Yield a graph in which the inputs are published."""
    with Group() as group:
        group.publisher(JointState, '/joint_states')
        group.publisher(WrenchStamped, '/wrench')
        yield group


def transform(parent: str, child: str, rotation: FloatArray, z: float) -> TransformStamped:
    """Return a transform along z."""
    message = TransformStamped(child_frame_id=child)
    message.header.frame_id = parent
    message.transform.translation.z = z
    q = pinocchio.Quaternion(rotation)
    orientation = message.transform.rotation
    orientation.x, orientation.y, orientation.z, orientation.w = q.coeffs().tolist()
    return message


def wait_for_words(group: Group, pipeline: Pipeline, words: str) -> None:
    """Feed the node until its status says these words."""
    feeding = pieces(group)

    def said() -> bool:
        group.play(next(feeding))
        return words in pipeline.words

    group.wait_for(said, f'the words {words!r}')


def test_a_frame_that_was_awaited_is_not_named_once_the_wrenches_have_theirs_again(
    group: Group,
) -> None:
    node = Node('reader', context=group.node.context)
    robot = DescribedRobot((0.0, 0.0, -9.80665))
    reader = transforms.DescriptionReader(node, robot, Parameters(robot_description=PUMA))
    robot.for_frame('xyz')
    reader.look_for_frame()
    assert "or for 'xyz' on /tf_static" in reader.waiting_for
    robot.for_frame(FRAME)
    reader.look_for_frame()
    robot.waiting_for = 'a joint'
    assert reader.waiting_for == 'a joint'
    node.destroy_node()


def test_without_tf2_one_line_says_so(group: Group) -> None:
    if transforms.INSTALLED:
        pytest.skip('tf2_ros is installed')
    group.describe()
    process = group.start()
    Pipeline(group).connect()
    assert process.output.count('tf2_ros') == 1


@pytest.mark.parametrize('named', [True, False], ids=['parameter', 'frame_id'])
def test_a_frame_that_is_nowhere_is_waited_for_by_name(group: Group, named: bool) -> None:
    group.describe(BARE)
    group.start(parameters={'sensor_frame': FRAME} if named else {})
    pipeline = Pipeline(group)
    wait_for_words(group, pipeline, f"for '{FRAME}' on /tf_static")
    assert pipeline.status['state'] == 'waiting'
    words = f'wrench frame {FRAME!r} is not a link: set sensor_frame to the link'
    assert re.search(f'waiting for a usable [^:]*: {words}', pipeline.words), pipeline.words


@pytest.mark.parametrize('by', ['parameter', 'topic'])
def test_a_compensated_frame_that_hangs_on_tf_static_as_the_sensor_is_awaited(
    group: Group, by: str
) -> None:
    parameters = {'compensated_frame': FRAME}
    if by == 'parameter':
        parameters['robot_description'] = BARE
    else:
        group.describe(BARE)
    process = group.start(parameters=parameters)
    pipeline = Pipeline(group)
    wait_for_words(group, pipeline, f"for '{FRAME}' on /tf_static")
    assert 'compensated_frame' not in ''.join(each.message for each in pipeline.statuses)
    assert 'compensated_frame' not in process.output


@needs_tf2
@pytest.mark.parametrize('named', [True, False], ids=['parameter', 'frame_id'])
def test_a_sensor_that_hangs_on_a_link_by_tf_static_is_found(group: Group, named: bool) -> None:
    from tf2_msgs.msg import TFMessage

    group.describe(BARE)
    process = group.start(parameters={'sensor_frame': FRAME} if named else {})
    pipeline = Pipeline(group)
    wait_for_words(group, pipeline, f"for '{FRAME}' on /tf_static")
    # By way of a frame that is no link either, from two publishers, with others between.
    quarter = pinocchio.utils.rotate('z', np.pi / 2)
    first = group.publisher(TFMessage, '/tf_static', LATCHED)
    first.publish(TFMessage(transforms=[transform('link_6', 'adapter', quarter, 0.05)]))
    second = group.node.create_publisher(TFMessage, '/tf_static', LATCHED)
    others = transform('elsewhere', 'camera', np.eye(3), 1.0)
    second.publish(
        TFMessage(transforms=[others, transform('adapter', FRAME, quarter.T, HEIGHT - 0.05)])
    )
    feeding = pieces(group)

    def found() -> bool:
        group.play(next(feeding))
        return 'found on /tf_static' in process.output

    group.wait_for(found, 'the sensor frame')
    pipeline.play(recording())
    assert_holds(pipeline)


@needs_tf2
def test_a_sensor_that_is_hung_elsewhere_is_followed(group: Group) -> None:
    from tf2_msgs.msg import TFMessage

    group.describe(BARE)
    process = group.start()
    pipeline = Pipeline(group)
    publisher = group.publisher(TFMessage, '/tf_static', LATCHED)
    feeding = pieces(group)

    def found(times: int) -> bool:
        group.play(next(feeding))
        return process.output.count('found on /tf_static') == times

    wrong = transform('link_6', FRAME, pinocchio.utils.rotate('x', 1.0), 0.3)
    publisher.publish(TFMessage(transforms=[wrong]))
    group.wait_for(lambda: found(1), 'the sensor frame')
    right = transform('link_6', FRAME, np.eye(3), HEIGHT)
    publisher.publish(TFMessage(transforms=[right]))
    group.wait_for(lambda: found(2), 'the sensor frame where it has been moved to')
    # What says nothing new disturbs nothing.
    publisher.publish(TFMessage(transforms=[transform('elsewhere', 'camera', np.eye(3), 1.0)]))
    pipeline.play(recording())
    assert_holds(pipeline)
    assert found(2)


@needs_tf2
def test_a_frame_that_moves_holds_no_sensor(group: Group) -> None:
    from tf2_msgs.msg import TFMessage

    group.describe(BARE)
    group.start()
    pipeline = Pipeline(group)
    publisher = group.publisher(TFMessage, '/tf')
    wait_for_words(group, pipeline, f"for '{FRAME}' on /tf_static")
    publisher.publish(TFMessage(transforms=[transform('link_6', FRAME, np.eye(3), HEIGHT)]))
    heard = len(pipeline.statuses)
    feeding = pieces(group)
    group.wait_for(
        lambda: group.play(next(feeding)) or len(pipeline.statuses) > heard + 10, 'ten statuses'
    )
    assert f"for '{FRAME}' on /tf_static" in pipeline.words


class Frames:
    """What came on /tf, by stamp."""

    def __init__(self, group: Group) -> None:
        from tf2_msgs.msg import TFMessage

        self.messages: list[Any] = group.record(TFMessage, '/tf')

    @property
    def transforms(self) -> list[TransformStamped]:
        """All transforms, in order."""
        return [t for message in self.messages for t in message.transforms]


@needs_tf2
def test_payload_frame_is_centre_and_principal_axes_of_the_published_inertia(group: Group) -> None:
    group.describe()
    group.start()
    pipeline, frames = Pipeline(group), Frames(group)
    pipeline.connect()
    pipeline.play(uneven_recording(), speed=4.0)
    group.wait_for(
        lambda: frames.transforms and stamp_of(frames.transforms[-1]) == pipeline.newest,
        'the frame of the last inertia',
    )
    inertias = {stamp_of(message): inertia_of(message) for message in pipeline.inertias}
    assert len(frames.transforms) > 10
    previous = None
    for frame in frames.transforms:
        assert (frame.header.frame_id, frame.child_frame_id) == (FRAME, 'payload')
        values = inertias[stamp_of(frame)]  # stamped as the inertia is
        assert np.isfinite(values).all()
        np.testing.assert_allclose(vector(frame.transform.translation), values[1:4], atol=1e-12)
        q = frame.transform.rotation
        axes = pinocchio.Quaternion(q.w, q.x, q.y, q.z).matrix()
        matrix = np.zeros((3, 3))
        matrix[np.triu_indices(3)] = values[4:]
        matrix.T[np.triu_indices(3)] = values[4:]
        diagonal = axes.T @ matrix @ axes
        moments = np.linalg.eigvalsh(matrix)[::-1]
        std = pipeline.numbers(f'i{k}{k}.std' for k in 'xyz').max()
        if frame is frames.transforms[-1]:
            assert np.diff(-moments).min() > 10.0 * std  # distinct, by far
        np.testing.assert_allclose(diagonal, np.diag(moments), atol=1e-9 * moments[0])
        if previous is not None:
            # No flip: that would be 180 degrees. The first ones are unsure by some degrees.
            assert np.linalg.norm(pinocchio.log3(previous.T @ axes)) < 0.7
        previous = axes


@needs_tf2
def test_two_arms_send_two_frames(group: Group) -> None:
    group.describe()
    group.start_raw('load_identification', ['-r', '__ns:=/left/load_identification'])
    pipeline, frames = Pipeline(group, '/left/load_identification'), Frames(group)
    pipeline.connect()
    pipeline.play(recording())
    group.wait_for(lambda: frames.transforms, 'a frame')
    assert frames.transforms[-1].child_frame_id == 'left/payload'
