"""Run the pipeline on a recording, as fast as possible."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from load_identification.errors import FrameError, RecordingError
from load_identification.estimation.events import MOST_EVENTS, EventKind
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.interface.cdr import JointStateReader, WrenchReader
from load_identification.interface.messages import NS
from load_identification.interface.names import in_words
from load_identification.interface.parameters import Parameters
from load_identification.model.frames import with_frame
from load_identification.pipeline import settings
from load_identification.pipeline.payload_stage import Observer, PayloadStage, WristFront
from load_identification.recordings.reader import JOINT_STATE, WRENCH, Chunk, RecordingReader
from load_identification.recordings.result import EarlierLoad, Identification
from load_identification.typing_aliases import IntArray

LOOK_NS = NS
"""Time between looks at the estimate, for that of a load that changes later [ns]."""

AFRESH = (EventKind.STAMPS_JUMPED_BACK, EventKind.SENSOR_FRAME_CHANGED)
"""Events after which stamps or axes are not those of the loads before."""


class Identifier(ABC):
    """A front and the payload stage, fed with chunks of a recording.

    Parameters
    ----------
    observer : Observer, optional
        Receives everything that passes.
    """

    by_efforts = False

    def __init__(self, parameters: Parameters, observer: Observer | None = None) -> None:
        self._parameters = parameters
        self._observer = observer
        self._payload = PayloadStage(parameters, observer)
        self._counted: Counter[str] = Counter()
        self._joints: set[str] = set()
        self._needed: Sequence[str] = ()
        """Joints required for identification, once known."""
        self._start = self._newest = 0
        self._earlier: deque[EarlierLoad] = deque(maxlen=MOST_EVENTS)
        self._identified: PayloadEstimate | None = None
        self._looked = self._seen = 0
        """Stamp of the newest sample at the last look [ns]; number of the last event seen."""

    @abstractmethod
    def update(self, chunk: Chunk) -> None:
        """Process the messages of a chunk through all stages."""

    @property
    @abstractmethod
    def dropped(self) -> Counter[str]:
        """Samples dropped by the front, by reason."""

    @abstractmethod
    def lacking(self, dropped: Counter[str]) -> str:
        """Return why no sample was usable although all joints are present."""

    @property
    def absent_channels(self) -> tuple[str, ...]:
        """Wrench channels without a signal."""
        return ()

    @property
    def warning(self) -> str:
        """Problems that do not stop the front, in words; empty: none."""
        return ''

    def _note_time(self, stamps: IntArray) -> None:
        if not self._newest or stamps[0] <= self._newest:
            self._start = int(stamps[0])
        self._newest = int(stamps[-1])

    def look(self) -> None:
        """Keep the last estimate of a load that has changed."""
        estimator = self._payload.estimator
        for event in estimator.events.since(self._seen):
            self._seen = event.number
            if event.kind in AFRESH:
                self._earlier.clear()
                self._identified = None
            elif event.kind.changes_load and self._identified is not None:
                self._earlier.append(EarlierLoad(event.stamp, self._identified))
                self._identified = None
        if not 0 <= estimator.newest - self._looked < LOOK_NS:
            self._looked, estimate = estimator.newest, estimator.estimate()
            if estimate is not None and estimate.identified[0]:
                self._identified = estimate

    def result(self) -> Identification:
        """Return the result.

        Raises RecordingError if no sample was usable.
        """
        estimator = self._payload.estimator
        estimate = estimator.estimate()
        dropped = self._counted + self.dropped + estimator.dropped
        if estimate is None:
            raise RecordingError(f'no sample could be used: {self._reason(dropped)}')
        if self._observer is not None:
            self._observer.add_estimate(estimate)
        words = self.warning, self._payload.units.words(estimate), estimator.delay_words
        remarks = *words, estimator.advice(self._payload.axes())
        return Identification(
            estimate=estimate,
            start=self._start,
            used=estimator.usable.count,
            dropped=dropped,
            absent_channels=self.absent_channels,
            events=estimator.events.since(0),
            earlier=tuple(self._earlier),
            remarks=tuple(filter(None, remarks)),
            parameters=self._parameters,
            by_efforts=self.by_efforts,
        )

    def _reason(self, dropped: Counter[str]) -> str:
        """Return in words why there is no estimate."""
        of_states = Counter({k: n for k, n in dropped.items() if k.startswith('joint_state_')})
        if of_states and not self._joints:
            return f'no joint state is usable: {in_words(of_states)}; see docs/interface.md'
        missing = [name for name in self._needed if name not in self._joints]
        if missing:
            return (
                f'the joint states lack {", ".join(missing)}; '
                f'they have {", ".join(sorted(self._joints)) or "no joints"}'
            )
        return self.lacking(dropped)


class WristIdentifier(Identifier):
    """Identify from an arm with a wrist sensor."""

    def __init__(
        self, recording: RecordingReader, parameters: Parameters, observer: Observer | None = None
    ) -> None:
        super().__init__(parameters, observer)
        self._description = parameters.robot_description or recording.description()
        # They may attach a sensor frame that is not in the description.
        self._transforms: Sequence[Any] = recording.static_transforms()
        self._front = WristFront(
            settings.synchronizer(parameters), settings.motion_filter(parameters)
        )
        self._joint_reader = JointStateReader(
            self._counted, recording.decoder(JOINT_STATE), JointBatch
        )
        self._wrench_reader = WrenchReader(
            parameters.sensor_frame, self._counted, recording.decoder(WRENCH)
        )
        self._stamps: dict[str, tuple[int, int]] = {}
        """First and last stamp of joint states and of wrenches [ns]."""
        if parameters.sensor_frame:
            self._use_frame(parameters.sensor_frame)

    def update(self, chunk: Chunk) -> None:
        joints = list(self._joint_reader.read(chunk.joint_states))
        wrenches = list(self._wrench_reader.read(chunk.wrenches))
        for batch in joints:
            self._joints.update(batch.names)
        self._note_stamps('joint states', joints)
        self._note_stamps('wrenches', wrenches)
        if self._front.motion_filter.robot is None and wrenches:
            self._use_frame(wrenches[0].frame)
        samples = self._front.update(joints, wrenches)
        if samples.raw is not None and samples.raw.stamps.size:
            self._note_time(samples.raw.stamps)
        self._payload.update(samples)

    def _note_stamps(self, stream: str, batches: Sequence[JointBatch | WrenchBatch]) -> None:
        for batch in batches:
            # Zero: none was filled in.
            stamps = batch.stamps[batch.stamps > 0]
            if stamps.size:
                first, last = self._stamps.get(stream, (int(stamps[0]), 0))
                self._stamps[stream] = min(first, int(stamps.min())), max(last, int(stamps.max()))

    @property
    def _apart(self) -> str:
        """Stamps of joint states and wrenches in words, if they have no time in common."""
        if len(self._stamps) < 2:
            return ''
        between = max(begin for begin, _ in self._stamps.values())
        gap = between - min(end for _, end in self._stamps.values())
        if gap <= 0:
            return ''
        said = ', '.join(
            f'{stream} have stamps from {begin / NS:.3f} to {end / NS:.3f}'
            for stream, (begin, end) in self._stamps.items()
        )
        return (
            f'{said}, {gap / NS:.3f} s apart: clocks of two hosts, or one recorded after the '
            'other? synchronise the clocks (chrony, PTP), record both together'
        )

    def _use_frame(self, frame: str) -> None:
        if not frame:
            raise FrameError('the wrenches name no frame; give --sensor-frame LINK')
        description = with_frame(self._description, frame, self._transforms)
        motion_filter = self._front.motion_filter
        motion_filter.set_description(description, frame)
        if motion_filter.robot is not None:
            self._front.synchronizer.follow(motion_filter.robot.limits_by_joint)
            self._needed = motion_filter.robot.joints

    @property
    def dropped(self) -> Counter[str]:
        return self._front.dropped

    @property
    def absent_channels(self) -> tuple[str, ...]:
        return self._front.motion_filter.absent_channels

    @property
    def warning(self) -> str:
        stage = self._front.motion_filter
        earlier = '' if stage.implausible else stage.limits.last
        two = self._front.synchronizer.sources.last
        wrong = self._front.synchronizer.joints.wrong_velocities
        often = self._front.synchronizer.often_dropped
        return '; '.join(filter(None, (two, wrong, often, stage.words, earlier)))

    def result(self) -> Identification:
        """Return the result; raise RecordingError if most positions are beyond all limits too."""
        stage = self._front.motion_filter
        refused = stage.dropped['joint_position_implausible']
        if refused > stage.taken / 2:
            raise RecordingError(
                f'{refused} of {stage.taken} samples are no joint positions: {stage.limits.last}'
            )
        return super().result()

    def lacking(self, dropped: Counter[str]) -> str:
        if self._apart:
            return f'dropped {in_words(dropped)}; {self._apart}' if dropped else self._apart
        synchronizer, health = self._front.synchronizer, self._front.motion_filter.health
        dead = health.words if all(health.dead) else ''
        if dropped:
            why = synchronizer.sources.last or self._front.motion_filter.limits.last or dead
            # Where some samples were complete, nothing has stopped all.
            why = why or self._front.motion_filter.bunched
            why = why or ('' if synchronizer.given else synchronizer.why_nothing(dropped))
            return f'dropped {in_words(dropped)}; {why or "see docs/interface.md"}'
        window = 2 * self._front.motion_filter.differentiator.delay
        return dead or f'no piece without a gap is as long as the filter, {window:.3f} s'


def identify(
    recording: RecordingReader,
    parameters: Parameters,
    progress: Callable[[int], None] = lambda messages: None,
    observer: Observer | None = None,
    mechanism: Path | None = None,
    arm_model: Path | None = None,
) -> Identification:
    """Identify the payload in a recording.

    Parameters
    ----------
    progress : function of an int
        Called with the number of messages processed since its last call.
    observer : Observer, optional
        Receives everything that passes.
    mechanism : pathlib.Path, optional
        Geometry file of a parallel machine, instead of an arm with a wrist sensor.
    arm_model : pathlib.Path, optional
        File of an identified arm that weighs with its joints.

    Raises LoadIdentificationError if the recording or the robot description cannot be used.
    """
    identifier: Identifier
    if mechanism is None and arm_model is None:
        identifier = WristIdentifier(recording, parameters, observer)
    else:
        # Imported here because an arm with a wrist sensor does not need it.
        from load_identification.recordings import effort_identifier as efforts

        if mechanism is not None:
            identifier = efforts.leg_identifier(recording, parameters, mechanism)
        elif arm_model is not None:
            identifier = efforts.joint_identifier(recording, parameters, arm_model, observer)
    for chunk in recording.chunks():
        identifier.update(chunk)
        identifier.look()
        progress(len(chunk))
    return identifier.result()
