"""The pipeline of a parallel machine on a recording: `identify_load --mechanism`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from load_identification.interface.cdr import JointStateReader
from load_identification.interface.parameters import Parameters
from load_identification.pipeline.effort_front import behind_legs, hexapod_filter
from load_identification.pipeline.samples import Samples
from load_identification.recordings.identification import Identifier
from load_identification.recordings.reader import JOINT_STATE, Chunk, RecordingReader


class LegIdentifier(Identifier):
    """Leg states through the hexapod's filter, in place of synchronizer and motion filter.

    Parameters
    ----------
    recording : RecordingReader
    parameters : Parameters
    mechanism : pathlib.Path
        Geometry file.

    Raises
    ------
    GeometryError
        If the file cannot be used.
    """

    def __init__(
        self, recording: RecordingReader, parameters: Parameters, mechanism: Path
    ) -> None:
        self._filter = hexapod_filter(mechanism, parameters)
        super().__init__(behind_legs(parameters, self._filter.friction is not None))
        self._reader = JointStateReader(self._counted, recording.decoder(JOINT_STATE))

    def update(self, chunk: Chunk) -> None:
        """Carry the messages of a chunk through all stages."""
        for batch in self._reader.read_efforts(chunk.joint_states):
            self._joints.update(batch.names)
            filtered = self._filter.update(batch)
            if filtered is not None:
                self._note_time(filtered.stamps)
            self._payload.update(Samples(filtered=filtered))

    @property
    def dropped(self) -> Counter[str]:
        """Samples that the front has dropped, by reason."""
        return self._filter.dropped

    @property
    def needed(self) -> Sequence[str]:
        """Joints without which nothing can be identified."""
        return self._filter.mechanism.geometry.legs

    def lacking(self, dropped: Counter[str]) -> str:
        """Return why no sample could be used, though all legs are there."""
        return f'waiting for {self._filter.waiting_for}'
