"""What a pipeline says, heard from outside over real DDS."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import InertiaStamped
from processes import DEADLINE
from ros_group import LATCHED, RELIABLE, Group
from ros_messages import (
    FRAME,
    NAMESPACE,
    OFFSET,
    OFFSET_KEYS,
    PARAMETER_KEYS,
    TRUTH,
    Message,
    feed,
    joint_message,
    recording,
    stamp_of,
    wrench_message,
)
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from load_identification.simulation.sensors import Recording
from load_identification.typing_aliases import FloatArray

PLAYS = 3
"""Of a recording of which a busy machine may lose a piece: inputs are best effort."""

LOST = 30.0
"""An estimate that has not come for so long rests on messages that were lost [s]."""

EQUAL = 4
"""So many equal statuses in a row, 0.1 s or more apart, say that no sample is on its way."""


def state_of(status: DiagnosticStatus) -> str:
    """Return the state that a status gives."""
    return next(str(item.value) for item in status.values if item.key == 'state')


class Pipeline:
    """What the pipeline of one namespace says, heard from outside.

    Parameters
    ----------
    group : Group
    namespace : str
    """

    def __init__(self, group: Group, namespace: str = NAMESPACE) -> None:
        self.group = group
        self.namespace = namespace
        self.statuses = group.record(DiagnosticStatus, f'{namespace}/status', LATCHED)
        self.inertias = group.record(InertiaStamped, f'{namespace}/inertia', LATCHED)
        self.covariances = group.record(Float64MultiArray, f'{namespace}/covariance', LATCHED)
        group.pipelines.append(self)

    @property
    def status(self) -> dict[str, str]:
        """Keys and values of the last status; empty before the first."""
        if not self.statuses:
            return {}
        return {item.key: item.value for item in self.statuses[-1].values}

    @property
    def words(self) -> str:
        """The sentence of the last status."""
        return str(self.statuses[-1].message) if self.statuses else ''

    @property
    def flowing(self) -> DiagnosticStatus:
        """The last status heard while samples came: a second later it says `waiting`."""
        heard = (s for s in reversed(self.statuses) if state_of(s) != 'waiting')
        return next(heard, self.statuses[-1])

    @property
    def state(self) -> str:
        """The state while samples came."""
        return state_of(self.flowing)

    def number(self, key: str) -> float:
        """Return a value of the last status."""
        return float(self.status[key])

    def numbers(self, keys: Iterable[str]) -> FloatArray:
        """Return values of the last status."""
        status = self.status
        return np.array([float(status[key]) for key in keys])

    def dropped(self, reason: str) -> int:
        """Return how many samples have been dropped for a reason."""
        return int(self.status.get(f'samples.dropped.{reason}', '0'))

    @property
    def used(self) -> int:
        """How many samples have been used."""
        return int(self.status.get('samples.used', '0'))

    @property
    def counted(self) -> int:
        """How many samples have been used or dropped."""
        return sum(int(v) for key, v in self.status.items() if key.startswith('samples.'))

    @property
    def newest(self) -> int:
        """Stamp of the newest inertia [ns]; 0 before the first."""
        return stamp_of(self.inertias[-1]) if self.inertias else 0

    def play(
        self,
        recording: Recording,
        change: Callable[[list[Message]], list[Message]] = lambda messages: messages,
        speed: float = 20.0,
        others: Sequence[Pipeline] = (),
    ) -> int:
        """Play a recording from its beginning and wait until the estimate rests on all of it.

        Inputs are best effort: where a busy machine has lost the end of it, again.

        Parameters
        ----------
        recording : Recording
        change : callable
            Turns the messages into those that are published.
        speed : float
        others : sequence of Pipeline
            Hear the same, and their estimates too are waited for.

        Returns
        -------
        int
            Where its stamps begin [ns].
        """
        for deadline in (LOST, DEADLINE):
            base = self.group.next_base()
            self.group.play(change(feed(recording, base)), speed)
            try:
                for pipeline in (self, *others):
                    pipeline.wait_for_inertia(recording, base, deadline)
                break
            except AssertionError:
                if deadline == DEADLINE:
                    raise
        return base

    def connect(self, joint_states: str = '/joint_states', wrench: str = '/wrench') -> None:
        """Wait until the node has the description and hears what is published on both topics.

        Nodes in processes of their own must also hear one another.
        """

        def connected() -> bool:
            # What has no stamp is dropped and counted: it changes nothing, and shows that it came.
            names = recording().names
            joints = joint_message(0, names, [0.0] * len(names))
            force = wrench_message(0, FRAME, [0.0] * 6)
            self.group.play([Message(0, joint_states, joints), Message(0, wrench, force)])
            return (
                self.dropped('joint_states_stamp_zero') > 0
                and self.dropped('wrench_stamp_zero') > 0
                and 'robot description' not in self.words
            )

        self.group.wait_for(connected, f'{self.namespace} connected; it says {self.words!r}')
        if self.group.runs('filter'):
            used = self.used
            # Too short for the mass to be identified.
            self.group.wait_for(
                lambda: self.used > used,
                'samples used by the last of the processes',
                meanwhile=lambda: self.group.play(
                    feed(recording(), self.group.next_base(), last=40)
                ),
            )
            self.settle()

    def wait_for_inertia(
        self, recording: Recording, base: int, deadline: float = DEADLINE
    ) -> None:
        """Wait for the estimate that rests on a whole recording, just played."""
        end = base + int(recording.stamps[-1])
        # Half a window of the filter, 58 ms, an output every 20 ms, joint states up to 13 ms ago.
        self.group.wait_for(
            lambda: end - 120_000_000 < self.newest <= end,
            'an inertia from the end of the recording',
            deadline,
        )
        self.settle()

    def settle(self) -> None:
        """Wait until statuses say the same again and again: all that came has been used.

        Two are no proof: on a busy machine samples are on their way for longer than that.
        """
        count = len(self.statuses)
        self.group.wait_for(
            lambda: (
                len(self.statuses) >= count + EQUAL
                and all(s.values == self.statuses[-1].values for s in self.statuses[-EQUAL:])
            ),
            'equal statuses',
        )

    def errors(self, offset: FloatArray = OFFSET) -> FloatArray:
        """Return how far the ten parameters and six offsets are from truth, in their std."""
        truth = np.concatenate([TRUTH, offset])
        keys = (*PARAMETER_KEYS, *OFFSET_KEYS)
        std = self.numbers(f'{key}.std' for key in keys)
        errors: FloatArray = (self.numbers(keys) - truth) / std
        return errors


def connected(group: Group, parameters: Mapping[str, Any] | None = None) -> Pipeline:
    """Start the single process, and return what it says once it hears the inputs."""
    group.start(parameters=parameters)
    pipeline = Pipeline(group)
    pipeline.connect()
    return pipeline


def assert_holds(pipeline: Pipeline) -> None:
    """Check that everything is identified, and as it is in truth."""
    status = pipeline.status
    assert pipeline.state == 'identified', pipeline.words
    assert [status[f'{key}.identified'] for key in PARAMETER_KEYS] == ['true'] * 10, pipeline.words
    # Sixteen normal errors in each of a hundred plays: one beyond 5 std has a chance of 1e-3.
    assert np.abs(pipeline.errors()).max() < 5.0
    # An interval as wide as the world would hold as well; 8 s give 0.3 g and 2e-5 kg m².
    assert pipeline.number('mass.std') < 0.002
    assert pipeline.numbers(f'{key}.std' for key in PARAMETER_KEYS[4:]).max() < 1e-4


def pieces(group: Group, size: int = 50) -> Iterator[list[Message]]:
    """Return the messages of a recording in pieces, again and again, each time further back."""
    while True:
        messages = feed(recording(), group.next_base())
        for first in range(0, len(messages), size):
            yield messages[first : first + size]


def assert_refused_from_two(pipeline: Pipeline, messages: Sequence[Message]) -> None:
    """Publish joint states by two publishers in turn; see that it is said, and nothing claimed."""
    group = pipeline.group
    # What was identified before is no claim.
    assert group.call(f'{pipeline.namespace}/reset').success
    pipeline.settle()
    count = len(pipeline.inertias)
    second = group.node.create_publisher(JointState, '/joint_states', RELIABLE)
    group.wait_for(second.get_subscription_count, 'a reader of the second publisher')

    def both() -> Iterator[Message]:
        for message in messages:
            second.publish(message.content)
            yield message

    group.play(both(), speed=1.0)
    words = 'all of /joint_states dropped: two publishers at once (/outside, /outside): which is'
    said = [state_of(status) for status in pipeline.statuses if words in status.message]
    assert set(said) == {'waiting'}, pipeline.words
    assert len(pipeline.inertias) == count
    group.node.destroy_publisher(second)
