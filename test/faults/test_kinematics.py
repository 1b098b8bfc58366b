"""What `filtered/kinematics` says of another robot than moves is named and refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from processes import ForkedProcess
from ros_faults import BEGIN, END, Heard, assert_passes, play
from ros_group import LATCHED, RELIABLE, Group
from ros_messages import NAMESPACE, NS
from ros_pipeline import Pipeline
from std_msgs.msg import Float64MultiArray

from load_identification.interface.messages import kinematics_sizes
from load_identification.interface.node_table import KINEMATICS

Change = Callable[[Float64MultiArray], None]


def scaled(factor: float, first: int, last: int) -> Change:
    def change(message: Float64MultiArray) -> None:
        data = np.array(message.data)
        data[first:last] *= factor
        message.data = data.tolist()

    return change


def one_joint_less(message: Float64MultiArray) -> None:
    dims, ours = message.layout.dim, kinematics_sizes(5)
    parts = np.split(np.array(message.data), np.cumsum([dim.size for dim in dims])[:-1])
    kept = []
    for dim, part in zip(dims, parts, strict=True):
        by_joint = dim.size != ours[dim.label]
        kept.append(part.reshape(-1, 6)[:, :-1].ravel() if by_joint else part)
        dim.size = ours[dim.label]
    message.data = np.concatenate(kept).tolist()


GRAVITY = 'filtered/kinematics: gravity there contradicts'
CHANGES: dict[str, tuple[Change, str, str]] = {
    'gravity reversed': (scaled(-1.0, 2, 5), GRAVITY, 'gravity'),
    'all of it reversed': (scaled(-1.0, 2, 12), GRAVITY, 'gravity'),
    'gravity zero': (scaled(0.0, 2, 5), GRAVITY, 'gravity'),
    'all zero': (scaled(0.0, 2, 10**6), GRAVITY, 'gravity'),
    'gravity of the moon': (scaled(1.62 / 9.81, 2, 12), GRAVITY, 'gravity'),
    'one joint less': (one_joint_less, '5 joints there, 6 before', 'layout'),
}
SHORT = 'gravity reversed', 'one joint less'


class Relay:
    """Passes on what the filter knows of the robot, changed between two stamps."""

    def __init__(self, group: Group) -> None:
        self.first, self.last = 0, 0
        self.change: Change = lambda _: None
        self._publisher = group.node.create_publisher(
            Float64MultiArray, f'{NAMESPACE}/{KINEMATICS}', RELIABLE
        )
        group.node.create_subscription(
            Float64MultiArray, f'{NAMESPACE}/known', self._pass_on, RELIABLE
        )

    def _pass_on(self, message: Float64MultiArray) -> None:
        if self.first <= message.data[0] * NS + message.data[1] < self.last:
            self.change(message)
        self._publisher.publish(message)


@pytest.fixture(scope='module')
def live() -> Iterator[tuple[Pipeline, Heard, Relay, ForkedProcess]]:
    """Yield the pipeline in three processes, and what stands between filter and estimator."""
    with Group() as group:
        group.publish_inputs()
        relay = Relay(group)
        group.start('fusion')
        group.start('filter', remaps={KINEMATICS: f'{NAMESPACE}/known'})
        estimator = group.start('estimator')
        pipeline, heard = Pipeline(group), Heard()
        group.node.create_subscription(DiagnosticStatus, f'{NAMESPACE}/status', heard, LATCHED)
        pipeline.connect()
        yield pipeline, heard, relay, estimator


@pytest.mark.parametrize(
    'name', [n if n in SHORT else pytest.param(n, marks=pytest.mark.matrix) for n in CHANGES]
)
def test_kinematics_of_another_robot_are_named_and_claim_nothing_wrong(
    live: tuple[Pipeline, Heard, Relay, ForkedProcess],
    name: str,
    record_property: Callable[[str, object], None],
) -> None:
    pipeline, heard, relay, estimator = live
    change, words, reason = CHANGES[name]
    # The group's next base, see `Group.next_base`.
    base = pipeline.group.next_base() - 1000 * NS
    relay.change = change
    relay.first, relay.last = base + round(BEGIN * NS), base + round(END * NS)
    before, logged = (
        pipeline.dropped(f'filtered_kinematics_{reason}'),
        estimator.output.count(words),
    )
    assert play(pipeline, heard, lambda message: message) == base
    record_property('fault', f'kinematics: {name}')
    record_property('processes', '3')
    assert_passes(heard, base, words, record_property)
    assert pipeline.dropped(f'filtered_kinematics_{reason}') > before + 50
    pipeline.group.wait_for(lambda: estimator.output.count(words) > logged, 'the log', 5.0)
    assert estimator.output.count(words) == logged + 1
    assert pipeline.status['event'].split()[0] in ('none', 'stamps_jumped_back')
