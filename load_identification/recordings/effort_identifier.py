"""The pipeline without a wrench on a recording: `identify_load --mechanism` and `--arm-model`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from load_identification.arm.arm_file import read_arm_model
from load_identification.arm.payload.effort_filter import EffortFilter
from load_identification.interface.batches import EffortBatch
from load_identification.interface.cdr import JointStateReader
from load_identification.interface.parameters import Parameters
from load_identification.model.frames import with_frame
from load_identification.parallel.leg_filter import HexapodFilter
from load_identification.pipeline.effort_front import (
    behind_joints,
    behind_legs,
    effort_filter,
    hexapod_filter,
    joint_samples,
)
from load_identification.pipeline.payload_stage import Observer, Samples
from load_identification.recordings.identification import Identifier
from load_identification.recordings.reader import JOINT_STATE, Chunk, RecordingReader


class EffortIdentifier(Identifier):
    """Identify from joint or leg states with efforts, without a wrist sensor.

    Parameters
    ----------
    front : callable
        Converts joint states to samples by the stage.
    joints : sequence of str
        Joints that must be in the recording.
    """

    by_efforts = True

    def __init__(
        self,
        recording: RecordingReader,
        parameters: Parameters,
        stage: EffortFilter | HexapodFilter,
        front: Callable[[EffortBatch], Samples],
        joints: Sequence[str],
        observer: Observer | None = None,
    ) -> None:
        super().__init__(parameters, observer)
        self._stage, self._front, self._needed = stage, front, joints
        self._reader = JointStateReader(self._counted, recording.decoder(JOINT_STATE), EffortBatch)

    def update(self, chunk: Chunk) -> None:
        for batch in self._reader.read(chunk.joint_states):
            self._joints.update(batch.names)
            samples = self._front(batch)
            if samples.filtered is not None:
                self._note_time(samples.filtered.stamps)
            self._payload.update(samples)

    @property
    def dropped(self) -> Counter[str]:
        return self._stage.dropped

    @property
    def warning(self) -> str:
        return self._stage.wrong_velocities

    def lacking(self, dropped: Counter[str]) -> str:
        return self._stage.bunched or f'waiting for {self._stage.waiting_for}'


def leg_identifier(
    recording: RecordingReader, parameters: Parameters, mechanism: Path
) -> EffortIdentifier:
    """Return the pipeline of a parallel machine.

    Raises GeometryError if the geometry file `mechanism` cannot be used.
    """
    stage = hexapod_filter(mechanism, parameters)
    return EffortIdentifier(
        recording,
        behind_legs(parameters, stage.friction is not None),
        stage,
        lambda batch: Samples(filtered=stage.update(batch)),
        stage.mechanism.geometry.legs,
    )


def joint_identifier(
    recording: RecordingReader,
    parameters: Parameters,
    arm_model: Path,
    observer: Observer | None = None,
) -> EffortIdentifier:
    """Return the pipeline of an arm that weighs with its joints.

    Raises LoadIdentificationError if the arm model, or the robot description with it, cannot be
    used.
    """
    arm = read_arm_model(arm_model)
    stage = effort_filter(arm, parameters)
    description = parameters.robot_description or recording.description()
    if parameters.sensor_frame:
        transforms = recording.static_transforms()
        description = with_frame(description, parameters.sensor_frame, transforms)
    stage.set_description(description, parameters.sensor_frame)
    return EffortIdentifier(
        recording,
        behind_joints(parameters, arm),
        stage,
        partial(joint_samples, stage),
        arm.joints,
        observer,
    )
