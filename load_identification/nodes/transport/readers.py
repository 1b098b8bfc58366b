"""Reads the topics between the nodes, joined by their stamps, whoever publishes them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

from load_identification.interface.batches import (
    CHANNELS,
    FilteredBatch,
    JointBatch,
    SynchronizedBatch,
    WrenchBatch,
)
from load_identification.interface.cdr import JointStateReader, WrenchReader
from load_identification.interface.messages import (
    NS,
    Filtered,
    in_runs,
    read_filtered,
    read_inertia,
    read_wrenches,
    stamp_of,
)
from load_identification.interface.names import COMPENSATED
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.nodes.diagnostics import Report
from load_identification.nodes.transport.kinematics import KinematicsReader
from load_identification.nodes.transport.publishers import FILTERED
from load_identification.nodes.transport.stamp_matcher import StampMatcher
from load_identification.nodes.transport.subscriptions import (
    LATCHED_QOS,
    STREAM_QOS,
    DrainedSubscription,
    StreamSubscription,
    decoder,
)
from load_identification.pipeline.compensation import LoadTakenOff
from load_identification.pipeline.samples import Samples
from load_identification.signals.gravity import MotionOfUnknownRobot
from load_identification.signals.joint_track import BEYOND_ALL_SENSE
from load_identification.signals.sensor_health import ALIVE
from load_identification.typing_aliases import FloatArray

Sample: TypeAlias = tuple[Any, int]
"""The batch in which a sample came, and its place there."""


class SynchronizedReader:
    """Joins joint states and wrenches of equal stamps.

    Parameters
    ----------
    node : Node
    frame : str
        Of the wrenches; empty: the one that they name.
    dropped : collections.Counter
        Where messages that cannot be used are counted, by reason.
    """

    def __init__(self, node: Node, frame: str, dropped: Counter[str]) -> None:
        self._joint_states = StreamSubscription(node, JointState, 'synchronized/joint_states')
        self._wrenches = StreamSubscription(node, WrenchStamped, 'synchronized/wrench')
        self._joint_reader = JointStateReader(dropped, decoder(JointState))
        self._wrench_reader = WrenchReader(frame, dropped, decoder(WrenchStamped))
        self._matcher = StampMatcher(2)

    def problem(self) -> str:
        """Return in words that nobody publishes, or several at once; empty where one does."""
        return self._wrenches.not_from_one('fusion_node')

    def silence(self) -> str:
        """Return in words that nothing comes any more; empty while something does."""
        return self._wrenches.silence('fusion_node')

    def read(self) -> Iterator[SynchronizedBatch]:
        """Yield what has become complete."""
        states = self._joint_reader.read(self._joint_states.take_serialized())
        wrenches = self._wrench_reader.read(self._wrenches.take_serialized())
        return synchronized(self._matcher, wrenches, states)


def _samples(batches: Iterable[JointBatch | WrenchBatch]) -> Iterator[tuple[int, Sample]]:
    return ((stamp, (b, k)) for b in batches for k, stamp in enumerate(b.stamps.tolist()))


def synchronized(
    matcher: StampMatcher, wrenches: Iterable[WrenchBatch], states: Iterable[JointBatch]
) -> Iterator[SynchronizedBatch]:
    """Join wrenches and joint states of equal stamps into batches.

    Each is of one layout, its stamps increasing. They are in the order of the wrenches: joint
    states are read layout by layout, and a stamp that falls is a stream that starts afresh.
    """
    pairs = matcher.update([_samples(wrenches), _samples(states)])
    stamped = (
        (int(w.stamps[k]), (j.names, w.frame), ((w, k), (j, i))) for (w, k), (j, i) in pairs
    )
    for group in in_runs(stamped):
        wrench_rows, state_rows = zip(*group, strict=True)
        velocity = _rows(state_rows, 'velocity')
        yield SynchronizedBatch(
            state_rows[0][0].names,
            wrench_rows[0][0].frame,
            stamps=_rows(wrench_rows, 'stamps'),
            position=_rows(state_rows, 'position'),
            velocity=np.where(np.isfinite(velocity), velocity, np.nan),
            wrench=_rows(wrench_rows, 'wrench'),
        )


def _rows(samples: Iterable[Sample], name: str) -> Any:
    return np.array([getattr(batch, name)[k] for batch, k in samples])


JUMP = NS
"""A stamp farther ahead than this is believed only once the next one follows on it [ns]."""

SENT = FilteredBatch.arrays()[1:6]
"""What the three topics carry of a batch: the wrench, velocities and accelerations."""

GONE = 5.0
"""A node that has said nothing of itself for so long is gone [s]: it does once a second."""


class FilteredReader:
    """Joins filtered wrench, twist and accel of equal stamps, and drops what cannot be used.

    Where somebody publishes the kinematics of a known robot, with those.

    Parameters
    ----------
    node : Node
    """

    def __init__(self, node: Node) -> None:
        self.dropped: Counter[str] = Counter()
        # The first to be connected, as it is the first to be published.
        self._kinematics = KinematicsReader(node, self.dropped)
        self._inputs = [StreamSubscription(node, kind, name) for name, kind in FILTERED.items()]
        self._matcher = StampMatcher(len(self._inputs))
        self._known = StampMatcher(2)
        self._motion = MotionOfUnknownRobot()
        self._newest: int | None = None
        self._held: Filtered | None = None

    def problem(self) -> str:
        """Return in words that nobody publishes, or several at once; empty where one does."""
        return self._inputs[0].not_from_one('filter_node')

    def silence(self) -> str:
        """Return in words that nothing usable comes any more; empty while something does."""
        return self._inputs[0].silence('filter_node') or self._kinematics.problem

    def read(self) -> Iterator[FilteredBatch]:
        """Yield what has become complete."""
        new = [((stamp_of(m), m) for m in topic.take()) for topic in self._inputs]
        triples = self._matcher.update(new)
        if self._inputs[0].mixed:
            self.dropped['filtered_two_publishers'] += len(triples)
            triples = []
        used = 0
        for found in read_filtered(self._in_order(self._with_kinematics(triples))):
            batch = _sensible(found)
            known = batch.gravity_by_tilt.shape[2]
            batch = self._kinematics.fitting(batch) if known else self._motion.fill(batch)
            used += len(batch.stamps)
            if len(batch.stamps):
                yield batch
        self._kinematics.note(len(triples), used)

    def _with_kinematics(self, triples: Sequence[tuple[Any, ...]]) -> list[Filtered]:
        """Return what is complete: with kinematics where somebody publishes them."""
        rows = self._kinematics.read()
        if not self._kinematics.connected:
            return [(*triple, None) for triple in triples]
        both = self._known.update([((stamp_of(t[0]), t) for t in triples), rows])
        return [(*triple, known) for triple, known in both]

    def _in_order(self, samples: Iterable[Filtered]) -> Iterator[Filtered]:
        """Pass on samples whose stamps increase, and those after a jump that is confirmed.

        A stamp that is not newer, or far ahead, is held: if the next one follows on it, the
        stream has jumped or started afresh; if not, it was a stray one.
        """
        for sample in samples:
            stamp = stamp_of(sample[0])
            if stamp <= 0:
                self.dropped['filtered_stamp_zero'] += 1
                continue
            held, self._held = self._held, None
            if self._newest is None or self._newest < stamp <= self._newest + JUMP:
                self.dropped['filtered_stamp_stray'] += held is not None
            elif held is not None and self._follows(stamp_of(held[0]), stamp):
                yield held
            else:
                self.dropped['filtered_stamp_stray'] += held is not None
                self._held = sample
                continue
            self._newest = stamp
            yield sample

    def _follows(self, held: int, stamp: int) -> bool:
        """Tell whether both stamps are ahead of the newest, or both behind, and in order."""
        newest = self._newest or 0
        return held < stamp and (held > newest or stamp <= newest)


def _sensible(batch: FilteredBatch) -> FilteredBatch:
    """Return a batch with NaN for what nothing that moves can send."""
    sent = {name: getattr(batch, name) for name in SENT}
    changes: dict[str, Any] = {
        name: np.where(np.abs(values) < BEYOND_ALL_SENSE, values, np.nan)
        for name, values in sent.items()
    }
    return replace(batch, **changes)


class TopicUpstream:
    """Reads filtered/* and synchronized/*, and what the nodes that publish them say of themselves.

    Parameters
    ----------
    node : Node
    """

    def __init__(self, node: Node) -> None:
        self._namespace = node.get_namespace()
        self._name = node.get_fully_qualified_name().lstrip('/')
        self._filtered = FilteredReader(node)
        self._raw = SynchronizedReader(node, '', Counter())
        # On some robots hundreds a second: more than the executor is asked to serve.
        self._diagnostics = DrainedSubscription(node, DiagnosticArray, '/diagnostics', STREAM_QOS)
        self._said: dict[str, tuple[float, Report]] = {}

    def read(self) -> Iterator[Samples]:
        """Yield what has come: no filtered sample before the raw ones that it was made of."""
        for message in self._diagnostics.take():
            self._on_diagnostics(message)
        health = self.report().health
        dead = tuple(health.get(channel, ALIVE) != ALIVE for channel in CHANNELS)
        # Taken first: what comes from now on is of raw samples that may not be here yet.
        batches = list(self._filtered.read())
        for raw in self._raw.read():
            yield Samples(raw=raw, dead=dead)
        for filtered in batches:
            yield Samples(filtered=filtered)

    def problem(self) -> str:
        """Return in words that filtered/* has no publisher, or several; empty where it has one."""
        return self._filtered.problem()

    def silence(self) -> str:
        """Return which of the nodes before sends nothing any more; empty while both do."""
        return self._raw.silence() or self._filtered.silence()

    def report(self) -> Report:
        """Return what the nodes before say of themselves, and what is dropped here."""
        now = time.monotonic()
        recent = (said for heard, said in self._said.values() if now - heard < GONE)
        return sum(recent, Report(dropped=self._filtered.dropped))

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        """Keep what the fusion and the filter node of this namespace say of themselves."""
        for status in message.status:
            mine = status.hardware_id == self._namespace and status.name != self._name
            if mine and all(item.key != COMPENSATED for item in status.values):
                self._said[status.name] = time.monotonic(), Report.read(status)


class LoadReader:
    """Reads what is to be taken off a wrench: `offset`, `inertia_total` and `inertia_by_driver`.

    The last one may have no publisher: then no driver takes anything off.

    Parameters
    ----------
    node : Node
    sign : float
        From the raw wrench to what the load exerts on the sensor.
    """

    def __init__(self, node: Node, sign: float) -> None:
        self.load = LoadTakenOff()
        self._sign = sign
        self._by_driver, self._total = (
            DrainedSubscription(node, InertiaStamped, topic, LATCHED_QOS)
            for topic in ('inertia_by_driver', 'inertia_total')
        )
        self._offset = DrainedSubscription(node, WrenchStamped, 'offset', LATCHED_QOS)
        self._frames: dict[str, str] = {}
        self._driver_told = False

    def read(self) -> None:
        """Take in what has come; what no body or offset can be is left out."""
        self._driver_told = self._driver_told or bool(self._by_driver.publishers)
        for message in self._by_driver.take():
            self.load.by_driver = self._body(self._by_driver, message, self.load.by_driver)
        for message in self._total.take():
            self.load.body = self._body(self._total, message, self.load.body)
        for message in self._offset.take():
            batch = next(read_wrenches([message], ''))
            self._frames[self._offset.topic] = batch.frame
            sensible = np.abs(batch.wrench[0]) < BEYOND_ALL_SENSE
            self.load.offset = np.where(sensible, self._sign * batch.wrench[0], np.nan)

    def _body(self, topic: DrainedSubscription, message: Any, before: FloatArray) -> FloatArray:
        values = read_inertia(message.inertia)
        if not (np.abs(values) < BEYOND_ALL_SENSE).all():
            return before
        self._frames[topic.topic] = message.header.frame_id.lstrip('/')
        return InertialParameters.from_message_order(values).to_vector()

    def waiting_for(self, frame: str = '') -> str:
        """Return what has not come yet, or not in the frame of the wrenches; empty: all has."""
        by_driver = [self._by_driver] if self._driver_told else []
        needed = [each.topic for each in (self._offset, self._total, *by_driver)]
        missing = [topic for topic in needed if topic not in self._frames]
        if missing:
            return f'{", ".join(missing)}: does estimator_node run, and have wrenches and motion?'
        for topic in needed if frame else ():
            if (other := self._frames[topic]) != frame:
                return f'{topic} in {frame!r}, as the wrenches are: it is in {other!r}'
        return ''
