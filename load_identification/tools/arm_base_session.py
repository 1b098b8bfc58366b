"""An arm from recordings of a force/torque sensor under it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from load_identification.arm.arm import Arm
from load_identification.arm.base_recording import (
    RestWrenches,
    base_recording,
    rest_wrenches,
    sensor_placement,
)
from load_identification.arm.base_sensor import BaseSettings
from load_identification.errors import RecordingError
from load_identification.tools.arm_base_method import (
    BaseLog,
    Part,
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
from load_identification.tools.recording import RecordingReader, open_recording
from load_identification.tools.static_frames import with_frame

SHORTEST_PIECE = 2.0
"""Of a recording, to be fitted or predicted [s]."""


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
    fit = [
        Part(base_recording(log.samples, arm, request.wrench_convention), rest)
        for log, rest in zip(logs, _replays(request, arm, frame), strict=True)
    ]
    if held is not None:
        test = [Part(base_recording(held.samples, arm, request.wrench_convention))]
    else:
        fit, test = _split(fit)
    source = request.held_out.name if request.held_out else 'the last third of the data'
    with working('identifying'):
        estimate, found = identify_from_base(arm, fit, settings, placement)
        prediction = predicted_wrench(found, estimate, test, settings, placement, source)
    identified, reasons = verdict(found, prediction)
    stamps = [part.recording.stamps for part in fit]
    seconds = sum(1e-9 * float(each[-1] - each[0]) for each in stamps)
    low_pass = f'cutoff {request.cutoff:g} Hz'
    if request.method == 'acceleration_free':
        low_pass = f'low-passes of {settings.bandwidth:g} and {settings.second_bandwidth:g} rad/s'
    return Session(
        found=found,
        prediction=prediction,
        arm_model=None,
        description=description,
        fitted=f'{sum(map(len, stamps))} wrenches in {seconds:.1f} s',
        method=f'{request.method}, sensor at {frame}, {low_pass}'
        + (', weight and offset by static replay' if request.static else ''),
        identified=identified,
        warnings=tuple(reasons),
    )


def _replays(request: Request, arm: Arm, frame: str) -> list[RestWrenches | None]:
    """Read the static replay of each recording, where they are given."""
    out: list[RestWrenches | None] = []
    for path in request.static:
        with open_recording(path, request.topics) as recording:
            chunks = watched(recording, path.name)
            log = read_wrench_log(chunks, arm.joints, frame, path)
        try:
            out.append(rest_wrenches(base_recording(log.samples, arm, request.wrench_convention)))
        except RecordingError as error:
            raise RecordingError(f'{path.name}: {error}') from error
    return out or [None] * len(request.recordings)


def _split(parts: Sequence[Part]) -> tuple[list[Part], list[Part]]:
    """Split all samples in the order of the recordings: what is fitted, and what is not.

    A piece too short for the filters to settle is in neither.
    """
    left = round(FITTED_SHARE * sum(len(part.recording.stamps) for part in parts))
    fit: list[Part] = []
    rest: list[Part] = []
    for part in parts:
        total = len(part.recording.stamps)
        count = min(left, total)
        left -= count
        stamps = part.recording.stamps
        for kept, first, last in ((fit, 0, count), (rest, count, total)):
            if last > first and 1e-9 * float(stamps[last - 1] - stamps[first]) > SHORTEST_PIECE:
                kept.append(part.cut(slice(first, last)))
    if not fit or not rest:
        raise RecordingError(
            f'two thirds to identify from and one third to predict must last {SHORTEST_PIECE:g} s '
            'each at least; record longer, or give --held-out'
        )
    return fit, rest
