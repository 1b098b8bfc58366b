"""An arm from recordings of a force/torque sensor under it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from load_identification.arm.base_recording import BaseRecording, base_recording, sensor_placement
from load_identification.arm.base_sensor import BaseSettings
from load_identification.tools.arm_base_method import (
    BaseLog,
    cut,
    identify_from_base,
    predicted_wrench,
    read_wrench_log,
)
from load_identification.tools.arm_recording import OUTPUTS_PER_CUTOFF, watched
from load_identification.tools.arm_session import (
    FITTED_SHARE,
    Request,
    Session,
    load_all,
    moving_joints,
    nominal_arm,
    verdict,
    working,
)
from load_identification.tools.recording import RecordingReader
from load_identification.tools.static_frames import with_frame


def base_session(request: Request) -> Session:
    """Identify from the wrenches of a sensor under the arm, and predict what was not fitted."""
    transforms = []

    def read(recording: RecordingReader, description: str, path: Path) -> BaseLog:
        transforms.extend(recording.static_transforms())
        joints = request.joints or moving_joints(description)
        return read_wrench_log(watched(recording, path.name), joints, request.sensor_frame, path)

    description, logs, held = load_all(request, read)
    arm = nominal_arm(request, description, request.joints or moving_joints(description))
    frame = logs[0].frame
    placement = sensor_placement(with_frame(description, frame, transforms), frame)
    settings = BaseSettings(
        request.method,
        cutoff_frequency=request.cutoff,
        output_rate=OUTPUTS_PER_CUTOFF * request.cutoff,
    )
    fit = [base_recording(log.samples, arm, request.wrench_convention) for log in logs]
    if held is not None:
        test = base_recording(held.samples, arm, request.wrench_convention)
    else:
        fit, test = _split(fit)
    source = request.held_out.name if request.held_out else 'the last third of the data'
    with working('identifying'):
        estimate, found = identify_from_base(arm, fit, settings, placement)
        prediction = predicted_wrench(found, estimate, test, settings, placement, source)
    identified, reasons = verdict(found, prediction)
    count = sum(len(recording.stamps) for recording in fit)
    seconds = sum(1e-9 * float(r.stamps[-1] - r.stamps[0]) for r in fit)
    low_pass = f'cutoff {request.cutoff:g} Hz'
    if request.method == 'acceleration_free':
        low_pass = f'low-passes of {settings.bandwidth:g} and {settings.second_bandwidth:g} rad/s'
    return Session(
        found=found,
        prediction=prediction,
        arm_model=None,
        description=description,
        fitted=f'{count} wrenches in {seconds:.1f} s',
        method=f'{request.method}, sensor at {frame}, {low_pass}',
        identified=identified,
        warnings=tuple(reasons),
    )


def _split(recordings: Sequence[BaseRecording]) -> tuple[list[BaseRecording], BaseRecording]:
    """Split off the last third of the data, as far as the last recording has it."""
    *whole, last = recordings
    total = sum(len(recording.stamps) for recording in recordings)
    rest = min(round((1.0 - FITTED_SHARE) * total), len(last.stamps))
    count = len(last.stamps) - rest
    if count < 2:
        return list(whole), last
    return [*whole, cut(last, slice(0, count))], cut(last, slice(count, None))
