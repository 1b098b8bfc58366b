"""The stages of the nodes on a recording, as fast as it goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from load_identification.errors import FrameError, RecordingError
from load_identification.estimation.delay import delay_warning
from load_identification.estimation.events import Event
from load_identification.estimation.payload_estimate import UNKNOWN_STD, PayloadEstimate
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.nodes.conversions import read_joint_states, read_wrenches
from load_identification.nodes.parameters import Parameters
from load_identification.signals.batches import FilteredBatch
from load_identification.signals.motion_filter import CONVENTIONS
from load_identification.signals.quantiser import Quantiser
from load_identification.tools.recording import CHUNK, Chunk, RecordingReader
from load_identification.tools.report_recorder import Recorder
from load_identification.tools.report_snapshot import snapshot_of
from load_identification.tools.static_frames import with_frame
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Identification:
    """What came of a recording.

    Attributes
    ----------
    estimate : PayloadEstimate
    sign : float
        From on_sensor to the convention of the raw wrench, in which the offset is given.
    start : int
        Stamp of the first sample; after a jump back, of the first since [ns].
    used : int
        Filtered samples used.
    dropped : collections.Counter
        Samples dropped, by reason.
    absent_channels : tuple of str
        Wrench channels that showed nothing.
    events : tuple of Event
        What happened to the load or the sensor, as far as samples tell; the last ones.
    remarks : tuple of str
        A delay between the streams, and what motion would have helped.
    """

    estimate: PayloadEstimate
    sign: float
    start: int
    used: int
    dropped: Counter[str]
    absent_channels: tuple[str, ...]
    events: tuple[Event, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def offset(self) -> FloatArray:
        """Offset of the raw wrench, (6,) [N, N m]."""
        return self.sign * self.estimate.offset

    @property
    def offset_std(self) -> FloatArray:
        """Standard deviation of the offset, (6,) [N, N m]."""
        return np.sqrt(np.diag(self.estimate.covariance)[-6:])

    @property
    def offset_known(self) -> BoolArray:
        """Which offsets anything is known of, (6,)."""
        return self.offset_std < UNKNOWN_STD


class Pipeline:
    """The stages of the nodes, fed with chunks of a recording.

    Parameters
    ----------
    parameters : Parameters
    description : str
        URDF.
    recorder : Recorder, optional
        To be told of everything that goes through.
    transforms : sequence of geometry_msgs/TransformStamped
        On which a sensor frame may hang that is not in the description.
    """

    def __init__(
        self,
        parameters: Parameters,
        description: str,
        recorder: Recorder | None = None,
        transforms: Sequence[Any] = (),
    ) -> None:
        self._parameters = parameters
        self._description = description
        self._transforms = transforms
        self._synchronizer = parameters.synchronizer()
        self._filter = parameters.motion_filter()
        self._estimator = PayloadEstimator(parameters.estimator_settings())
        self._recorder = recorder
        self._recorded: Event | None = None
        self._quantiser = Quantiser()
        self._counted: Counter[str] = Counter()
        self._joints: set[str] = set()
        self._start = self._newest = 0
        if parameters.sensor_frame:
            self._use_frame(parameters.sensor_frame)

    def update(self, chunk: Chunk) -> None:
        """Carry the messages of a chunk through all stages."""
        joints = list(read_joint_states(chunk.joint_states, self._counted))
        wrenches = list(read_wrenches(chunk.wrenches, self._parameters.sensor_frame))
        for batch in joints:
            self._joints.update(batch.names)
        if self._filter.robot is None and wrenches:
            self._use_frame(wrenches[0].frame)
        samples = self._synchronizer.update(joints, wrenches)
        if samples is not None and samples.stamps.size and self._quantiser.learning:
            self._quantiser.update(samples.wrench)
            self._estimator.expect_steps(self._quantiser.steps)
        filtered = None if samples is None else self._filter.update(samples)
        if samples is not None and samples.stamps.size:
            self._note_time(samples.stamps)
            if self._recorder is not None:
                sign = CONVENTIONS[self._parameters.wrench_convention]
                self._recorder.add_raw(samples.stamps, sign * samples.wrench)
        if filtered is not None:
            self._estimate(filtered)

    def _note_time(self, stamps: IntArray) -> None:
        if not self._newest or stamps[0] <= self._newest:
            self._start = int(stamps[0])
        self._newest = int(stamps[-1])

    def _estimate(self, batch: FilteredBatch) -> None:
        if self._recorder is None:
            self._estimator.update(batch)
            return
        for piece in self._recorder.pieces(batch):
            self._estimator.update(piece)
            event = self._estimator.event
            if event is not None and event is not self._recorded:
                self._recorded = event
                self._recorder.add_event(event.stamp, event.kind)
            self._recorder.add_samples(piece)
            if self._recorder.wants_snapshot(self._estimator.newest):
                estimate = self._estimator.estimate()
                if estimate is not None:
                    self._recorder.add_snapshot(snapshot_of(estimate))

    def _use_frame(self, frame: str) -> None:
        if not frame:
            raise FrameError('the wrenches name no frame; set the parameter sensor_frame')
        description = with_frame(self._description, frame, self._transforms)
        self._filter.set_description(description, frame)
        if self._filter.robot is not None:
            self._synchronizer.required = frozenset(self._filter.robot.joints)

    def result(self) -> Identification:
        """Return what has been found.

        Raises
        ------
        RecordingError
            If no sample could be used.
        """
        estimate = self._estimator.estimate()
        dropped = sum(
            (s.dropped for s in (self._synchronizer, self._filter, self._estimator)),
            self._counted,
        )
        if estimate is None:
            raise RecordingError(f'no sample could be used: {self._reason(dropped)}')
        if self._recorder is not None:
            self._recorder.add_snapshot(snapshot_of(estimate))
        warning = delay_warning(self._estimator.delay, self._parameters.wrench_delay)
        return Identification(
            estimate=estimate,
            sign=CONVENTIONS[self._parameters.wrench_convention],
            start=self._start,
            used=self._estimator.used,
            dropped=dropped,
            absent_channels=self._filter.absent_channels,
            events=self._estimator.events,
            remarks=tuple(filter(None, (warning, self._estimator.advice()))),
        )

    def _reason(self, dropped: Counter[str]) -> str:
        """Return in words why there is no estimate."""
        needed = self._filter.robot.joints if self._filter.robot else ()
        missing = [name for name in needed if name not in self._joints]
        if missing:
            return (
                f'the joint states lack {", ".join(missing)}; '
                f'they have {", ".join(sorted(self._joints)) or "no joints"}'
            )
        window = f'no piece without a gap is as long as the filter, {2 * self._filter.delay:.3f} s'
        return f'dropped {in_words(dropped)}; see docs/interface.md' if dropped else window


def identify(
    recording: RecordingReader,
    parameters: Parameters,
    chunk_length: float = CHUNK,
    progress: Callable[[int], None] = lambda messages: None,
    recorder: Recorder | None = None,
    pipeline: Pipeline | None = None,
) -> Identification:
    """Identify the payload in a recording.

    Parameters
    ----------
    recording : RecordingReader
    parameters : Parameters
    chunk_length : float
        How much of the recording goes through the stages at once [s].
    progress : function of an int
        Called with the number of messages done since the last time.
    recorder : Recorder, optional
        To be told of everything that goes through.
    pipeline : Pipeline, optional
        In place of that of an arm.

    Raises
    ------
    LoadIdentificationError
        If the recording or the robot description cannot be used.
    """
    if pipeline is None:
        description = parameters.robot_description or recording.description()
        transforms = recording.static_transforms()
        pipeline = Pipeline(parameters, description, recorder, transforms)
    for chunk in recording.chunks(chunk_length):
        pipeline.update(chunk)
        progress(len(chunk))
    return pipeline.result()


def in_words(counts: Counter[str]) -> str:
    """Return counts by reason, most frequent first."""
    return ', '.join(f'{reason} {count}' for reason, count in counts.most_common() if count)
