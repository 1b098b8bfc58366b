"""Read the topics between the nodes and join them by stamp, whoever publishes them."""

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
from load_identification.nodes.transport.subscriptions import (
    LATCHED_QOS,
    QUEUE,
    STREAM_QOS,
    DrainedSubscription,
    StreamSubscription,
    decoder,
)
from load_identification.pipeline.compensation import LoadTakenOff
from load_identification.pipeline.payload_stage import Samples
from load_identification.signals.gravity import MotionOfUnknownRobot
from load_identification.signals.joint_track import BEYOND_ALL_SENSE
from load_identification.signals.sensor_health import ALIVE
from load_identification.typing_aliases import FloatArray

Sample: TypeAlias = tuple[Any, int]
"""The batch that contains a sample, and the sample's index in it."""


class StampMatcher:
    """Match samples of a number of topics by equal stamps."""

    def __init__(self, topics: int) -> None:
        self._waiting: list[dict[int, Any]] = [{} for _ in range(topics)]

    def update(self, samples: Sequence[Iterable[tuple[int, Any]]]) -> list[tuple[Any, ...]]:
        """Take in stamps and samples of each topic; return complete tuples in order of arrival."""
        for waiting, new in zip(self._waiting, samples, strict=True):
            waiting.update(new)
        first, *others = self._waiting
        complete = [stamp for stamp in first if all(stamp in other for other in others)]
        tuples = [tuple(w.pop(stamp) for w in self._waiting) for stamp in complete]
        for waiting in self._waiting:
            # A message whose partner is lost would wait forever.
            for stamp in list(waiting)[: max(0, len(waiting) - QUEUE)]:
                del waiting[stamp]
        return tuples


class SynchronizedReader:
    """Join joint states and wrenches of equal stamps.

    Wrenches are in `frame` unless that is empty; unusable messages are counted as `dropped`.
    """

    def __init__(self, node: Node, frame: str, dropped: Counter[str]) -> None:
        self._joint_states = StreamSubscription(node, JointState, 'synchronized/joint_states')
        self._wrenches = StreamSubscription(node, WrenchStamped, 'synchronized/wrench')
        self._joint_reader = JointStateReader(dropped, decoder(JointState), JointBatch)
        self._wrench_reader = WrenchReader(frame, dropped, decoder(WrenchStamped))
        self._matcher = StampMatcher(2)

    def problem(self) -> str:
        """Return a warning if there is no publisher or more than one; empty otherwise."""
        return self._wrenches.not_from_one('fusion_node')

    def silence(self) -> str:
        """Return a warning if messages have stopped; empty while they arrive."""
        return self._wrenches.silence('fusion_node')

    def read(self) -> Iterator[SynchronizedBatch]:
        """Yield the samples that are now complete."""
        states = self._joint_reader.read(self._joint_states.take(serialized=True))
        wrenches = self._wrench_reader.read(self._wrenches.take(serialized=True))
        return synchronized(self._matcher, wrenches, states)


def _samples(batches: Iterable[JointBatch | WrenchBatch]) -> Iterator[tuple[int, Sample]]:
    return ((stamp, (b, k)) for b in batches for k, stamp in enumerate(b.stamps.tolist()))


def synchronized(
    matcher: StampMatcher, wrenches: Iterable[WrenchBatch], states: Iterable[JointBatch]
) -> Iterator[SynchronizedBatch]:
    """Join wrenches and joint states of equal stamps into batches.

    Each batch has one layout and increasing stamps. Batches follow the order of the wrenches.
    Joint states are read layout by layout; a decreasing stamp marks a restarted stream.
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
"""A stamp farther ahead than this is accepted only once the next one confirms it [ns]."""

SENT = FilteredBatch.arrays()[1:6]
"""Fields of a batch that the three topics carry: the wrench, velocities and accelerations."""

GONE = 5.0
"""A node whose diagnostics are older counts as gone [s]; it publishes them once a second."""


class FilteredReader:
    """Join filtered wrench, twist and accel of equal stamps, and drop unusable samples.

    If the kinematics of a known robot are published, they are joined too.
    """

    def __init__(self, node: Node) -> None:
        self.dropped: Counter[str] = Counter()
        # Connected first, because it is published first.
        self._kinematics = KinematicsReader(node, self.dropped)
        self._inputs = [StreamSubscription(node, kind, name) for name, kind in FILTERED.items()]
        self._matcher = StampMatcher(len(self._inputs))
        self._known = StampMatcher(2)
        self._motion = MotionOfUnknownRobot()
        self._newest: int | None = None
        self._held: Filtered | None = None

    def problem(self) -> str:
        """Return a warning if there is no publisher or more than one; empty otherwise."""
        return self._inputs[0].not_from_one('filter_node')

    def silence(self) -> str:
        """Return a warning if usable messages have stopped; empty while they arrive."""
        return self._inputs[0].silence('filter_node') or self._kinematics.problem

    def read(self) -> Iterator[FilteredBatch]:
        """Yield the samples that are now complete."""
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
        """Return the complete samples, with kinematics where these are published."""
        rows = self._kinematics.read()
        if not self._kinematics.connected:
            return [(*triple, None) for triple in triples]
        both = self._known.update([((stamp_of(t[0]), t) for t in triples), rows])
        return [(*triple, known) for triple, known in both]

    def _in_order(self, samples: Iterable[Filtered]) -> Iterator[Filtered]:
        """Yield samples whose stamps increase, and those after a confirmed jump.

        A sample whose stamp is not newer, or is far ahead, is held. If the next stamp follows it,
        the stream has jumped or restarted; if not, the sample was a stray one.
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
        """Return whether both stamps are in order, and both ahead of the newest or both behind."""
        newest = self._newest or 0
        return held < stamp and (held > newest or stamp <= newest)


def _sensible(batch: FilteredBatch) -> FilteredBatch:
    """Return a batch with NaN for values that are physically impossible."""
    changes: dict[str, Any] = {name: getattr(batch, name) for name in SENT}
    for name, values in changes.items():
        changes[name] = np.where(np.abs(values) < BEYOND_ALL_SENSE, values, np.nan)
    return replace(batch, **changes)


class TopicUpstream:
    """Read filtered/* and synchronized/*, and the diagnostics of the nodes that publish them."""

    def __init__(self, node: Node) -> None:
        self._namespace = node.get_namespace()
        self._name = node.get_fully_qualified_name().lstrip('/')
        self._filtered = FilteredReader(node)
        self._raw = SynchronizedReader(node, '', Counter())
        # Some robots publish hundreds a second: more than the executor serves here.
        self._diagnostics = DrainedSubscription(node, DiagnosticArray, '/diagnostics', STREAM_QOS)
        self._said: dict[str, tuple[float, Report]] = {}

    def read(self) -> Iterator[Samples]:
        """Yield new samples; a filtered sample never precedes the raw samples it was made from."""
        now = time.monotonic()
        for status in (each for array in self._diagnostics.take() for each in array.status):
            # Those of this namespace's fusion and filter node; of compensation the warning.
            mine = status.hardware_id == self._namespace and status.name != self._name
            if mine:
                report = Report.read(status)
                if any(item.key == COMPENSATED for item in status.values):
                    report = Report(aside=report.warning)
                self._said[status.name] = now, report
        health = self.report().health
        dead = tuple(health.get(channel, ALIVE) != ALIVE for channel in CHANNELS)
        # Taken first: raw samples of later filtered ones may not have arrived yet.
        batches = list(self._filtered.read())
        for raw in self._raw.read():
            yield Samples(raw=raw, dead=dead)
        for filtered in batches:
            yield Samples(filtered=filtered)

    def problem(self) -> str:
        """Return a warning if filtered/* has no publisher or several; empty if it has one."""
        return self._filtered.problem()

    def silence(self) -> str:
        """Return which upstream node has stopped sending; empty while both send."""
        return self._raw.silence() or self._filtered.silence()

    def report(self) -> Report:
        """Return the upstream nodes' diagnostics, and the counts of samples dropped here."""
        now = time.monotonic()
        recent = (said for heard, said in self._said.values() if now - heard < GONE)
        return sum(recent, Report(dropped=self._filtered.dropped))


class LoadReader:
    """Read what is to be subtracted from a wrench, from the load topics.

    They are `offset`, `inertia_total` and `inertia_by_driver`. If the last one has no publisher,
    no driver subtracts anything. `sign` converts between raw and on_sensor wrenches.
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
        """Process new messages; physically impossible bodies and offsets are ignored."""
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
        """Return which topics are missing, or not in the frame of the wrenches; empty: none."""
        by_driver = [self._by_driver] if self._driver_told else []
        needed = [each.topic for each in (self._offset, self._total, *by_driver)]
        missing = [topic for topic in needed if topic not in self._frames]
        if missing:
            return f'{", ".join(missing)}: does estimator_node run, and have wrenches and motion?'
        for topic in needed if frame else ():
            if (other := self._frames[topic]) != frame:
                return f'{topic} in {frame!r}, as the wrenches are: it is in {other!r}'
        return ''
