"""The stages of a parallel machine on a recording: `identify_load --mechanism`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from load_identification.nodes.leg_states import (
    FORCE_NOISE,
    TORQUE_NOISE,
    hexapod_filter,
    read_leg_states,
)
from load_identification.nodes.parameters import Parameters
from load_identification.tools.offline import Identification, Pipeline
from load_identification.tools.recording import Chunk


class HexapodPipeline(Pipeline):
    """Leg states through the hexapod's stage in place of synchronizer and filter.

    Parameters
    ----------
    parameters : Parameters
    mechanism : pathlib.Path
        Geometry file.

    Raises
    ------
    GeometryError
        If the file cannot be used.
    """

    def __init__(self, parameters: Parameters, mechanism: Path) -> None:
        self._stage = hexapod_filter(mechanism, parameters)
        # The wrench is made here, as what the load exerts on the sensor; out of six legs with
        # friction it is noisier than a wrist sensor's.
        parameters = replace(parameters, wrench_convention='on_sensor', sensor_frame='')
        if self._stage.friction is not None:
            parameters = replace(
                parameters,
                force_noise=max(parameters.force_noise, FORCE_NOISE),
                torque_noise=max(parameters.torque_noise, TORQUE_NOISE),
            )
        super().__init__(parameters, '')

    def update(self, chunk: Chunk) -> None:
        """Carry the messages of a chunk through all stages."""
        for batch in read_leg_states(chunk.joint_states, self._counted):
            self._joints.update(batch.names)
            filtered = self._stage.update(batch)
            if filtered is not None:
                self._note_time(filtered.stamps)
                self._estimate(filtered)

    def result(self) -> Identification:
        """Return what has been found.

        Raises
        ------
        RecordingError
            If no sample could be used.
        """
        self._counted += self._stage.dropped
        self._stage.dropped.clear()
        return super().result()

    def _reason(self, dropped: Counter[str]) -> str:
        """Return in words why there is no estimate."""
        legs = self._stage.mechanism.geometry.legs
        missing = [name for name in legs if name not in self._joints]
        if missing:
            return (
                f'the joint states lack {", ".join(missing)}; '
                f'they have {", ".join(sorted(self._joints)) or "no joints"}'
            )
        return f'waiting for {self._stage.waiting_for}'
