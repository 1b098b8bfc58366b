"""An arm from the wrenches of a sensor under it, out of recordings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from load_identification.arm.acceleration_free import Placement
from load_identification.arm.arm import Arm
from load_identification.arm.base_parameters import (
    BaseParameters,
    find_base_parameters,
    preference,
    random_motion,
)
from load_identification.arm.base_recording import BaseRecording, RestWrenches
from load_identification.arm.base_sensor import (
    BaseEstimate,
    BaseSettings,
    base_rows,
    identify_base,
    predict_base,
)
from load_identification.arm.consistent import consistent_parameters
from load_identification.arm.friction import DriveModel
from load_identification.arm.identification import EXCITATION_TOLERANCE
from load_identification.arm.model import ArmModel
from load_identification.arm.rank_deficient import RANK_TOLERANCE
from load_identification.errors import RecordingError
from load_identification.estimation.square_root import triangle
from load_identification.nodes.conversions import read_joint_states, read_wrenches
from load_identification.signals.batches import CHANNELS, SynchronizedBatch, WrenchBatch
from load_identification.signals.synchronizer import Synchronizer
from load_identification.tools.arm_found import LINK_UNITS, Found, Prediction
from load_identification.tools.arm_methods import inverse
from load_identification.tools.offline import in_words
from load_identification.tools.recording import Chunk
from load_identification.typing_aliases import BoolArray, FloatArray

UNITS = ('N',) * 3 + ('N·m',) * 3

UNSEEN = 1e-6
"""Part of a combination that may lie outside of what is seen, where it is called told [-]."""


@dataclass(frozen=True, eq=False)
class BaseLog:
    """What the topics of a recording have, joint states at the stamps of the wrenches."""

    frame: str
    samples: SynchronizedBatch


def read_wrench_log(
    chunks: Iterable[Chunk], joints: Sequence[str], frame: str, path: Path
) -> BaseLog:
    """Read wrenches with the joint states at their stamps.

    Parameters
    ----------
    chunks : iterable of Chunk
    joints : sequence of str
        Worth waiting for.
    frame : str
        Of the sensor; empty: as the messages say.
    path : pathlib.Path
        For the error.

    Raises
    ------
    RecordingError
        If no sample could be used.
    """
    synchronizer = Synchronizer(0.0, 0.1)
    synchronizer.required = frozenset(joints)
    dropped: Counter[str] = Counter()
    parts: list[SynchronizedBatch] = []
    heard: set[str] = set()
    for chunk in chunks:
        states = list(read_joint_states(chunk.joint_states, dropped))
        heard.update(name for batch in states for name in batch.names)
        wrenches: list[WrenchBatch] = list(read_wrenches(chunk.wrenches, frame))
        batch = synchronizer.update(states, wrenches)
        if batch is not None:
            parts.append(batch)
    missing = [name for name in joints if name not in heard]
    if missing:
        raise RecordingError(
            f'the joint states of {path} lack {", ".join(missing)}; they have '
            f'{", ".join(sorted(heard)) or "no joints"}'
        )
    if not parts:
        counted = synchronizer.dropped + dropped
        raise RecordingError(
            f'no wrench of {path} could be used; dropped: {in_words(counted) or "none"}'
        )
    names, its_frame = parts[-1].names, parts[-1].frame
    alike = [part for part in parts if (part.names, part.frame) == (names, its_frame)]
    return BaseLog(
        its_frame,
        SynchronizedBatch(
            names,
            its_frame,
            np.concatenate([part.stamps for part in alike]),
            np.concatenate([part.position for part in alike]),
            np.concatenate([part.velocity for part in alike]),
            np.concatenate([part.wrench for part in alike]),
        ),
    )


def cut(recording: BaseRecording, samples: slice) -> BaseRecording:
    """Return some of the samples."""
    velocity = None if recording.velocity is None else recording.velocity[samples]
    return BaseRecording(
        recording.stamps[samples], recording.position[samples], velocity, recording.wrench[samples]
    )


@dataclass(frozen=True, eq=False)
class Part:
    """A recording, or a part of one, and its static replay, if there is one."""

    recording: BaseRecording
    rest: RestWrenches | None = None

    def cut(self, samples: slice) -> Part:
        """Return some of the samples."""
        return Part(cut(self.recording, samples), self.rest)


def identify_from_base(
    arm: Arm, fit: Sequence[Part], settings: BaseSettings, placement: Placement
) -> tuple[BaseEstimate, Found]:
    """Identify the links, and class their parameters by what a base sensor can tell.

    With static replays weight and offset are gone from both sides.

    Parameters
    ----------
    arm : Arm
    fit : sequence of Part
        All with a static replay, or none.
    settings : BaseSettings
    placement : Placement
        Of the sensor.

    Raises
    ------
    RecordingError
        If there is too little to identify from.
    """
    rests = [part.rest for part in fit if part.rest is not None]
    recordings = [part.recording for part in fit]
    estimate = identify_base(arm, recordings, settings, placement, rests or None)
    offsets = () if rests else CHANNELS
    names = (*arm.parameter_names, *(f'offset.{channel}' for channel in offsets))
    links = arm.nominal.size
    # Offsets first: what a link does to the wrench in every pose alike is theirs.
    order = np.concatenate(
        [links + np.arange(len(offsets)), preference(ArmModel(arm, DriveModel('none', 'none')))]
    )
    motion = random_motion(len(arm.joints), len(names))
    anywhere = arm.base_wrench_regressor(*motion, placement)
    if rests:
        still = np.zeros_like(motion[0])
        anywhere = anywhere - arm.base_wrench_regressor(motion[0], still, still, placement)
    structure = _with_offsets(anywhere, np.ones(len(anywhere)))[..., : len(names)]
    base = find_base_parameters(structure.reshape(-1, len(names)), names, order)
    parts = [base_rows(arm, part.recording, settings, placement, part.rest) for part in fit]
    rows = np.concatenate([_with_offsets(part.matrix, part.gain) for part in parts])
    rows = rows[..., : len(names)]
    weighted = triangle((rows / estimate.noise[:, None]).reshape(-1, len(names)))
    excitation = find_base_parameters(weighted, names, order, EXCITATION_TOLERANCE)
    nominal = np.concatenate([arm.nominal.ravel(), np.zeros(len(offsets))])
    values = base.to_base(np.append(estimate.parameters, estimate.offset)[: len(names)])
    own = estimate.covariance[: len(names), : len(names)]
    covariance = base.matrix @ own @ base.matrix.T
    told = _told(weighted, base)
    information = inverse(covariance)
    if not told.all():
        # Of what is not told the covariance has rounding errors, whose inverse is huge.
        kept = weighted[:, base.independent]
        information = kept.T @ kept
    found = Found(
        arm=arm,
        base=base,
        excitation=excitation,
        values=values,
        std=np.where(told, np.sqrt(np.maximum(np.diag(covariance), 0.0)), np.inf),
        covariance=covariance,
        nominal=nominal,
        consistent=consistent_parameters(
            base, values, information, nominal, len(arm.joints)
        ).values,
        units=(*LINK_UNITS * len(arm.joints), *UNITS[: len(offsets)]),
        singular_values=estimate.singular_values[: estimate.rank],
    )
    return estimate, found


def predicted_wrench(
    found: Found,
    estimate: BaseEstimate,
    test: Sequence[Part],
    settings: BaseSettings,
    placement: Placement,
    source: str,
) -> Prediction:
    """Predict what was not fitted, one part after the other.

    The nominal links get the offset with which they fit best: that of a sensor is nowhere in a
    description.
    """

    def predicted(by: BaseEstimate) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return seconds (n,), wrenches predicted and measured (n, 6)."""
        each = [
            predict_base(found.arm, by, part.recording, settings, placement, part.rest)
            for part in test
        ]
        seconds = [
            1e-9 * (own.stamps - part.recording.stamps[0]).astype(np.float64)
            for own, part in zip(each, test, strict=True)
        ]
        return (
            np.concatenate(seconds),
            np.concatenate([own.predicted for own in each]),
            np.concatenate([own.measured for own in each]),
        )

    def with_links(parameters: FloatArray, offset: FloatArray) -> FloatArray:
        return predicted(replace(estimate, parameters=parameters, offset=offset))[1]

    seconds, own, measured = predicted(estimate)
    links = found.arm.nominal.size
    nominal = with_links(found.nominal[:links], np.zeros(len(CHANNELS)))
    return Prediction(
        source=source,
        channels=CHANNELS,
        units=UNITS,
        seconds=seconds,
        measured=measured,
        predicted=own,
        consistent=with_links(found.consistent[:links], found.consistent[links:]),
        nominal=nominal + np.mean(measured - nominal, axis=0),
    )


def _with_offsets(matrix: FloatArray, gain: FloatArray) -> FloatArray:
    """Return rows (n, 6, 10 J + 6)."""
    return np.concatenate([matrix, gain[:, None, None] * np.eye(len(CHANNELS))], axis=2)


def _told(rows: FloatArray, base: BaseParameters) -> BoolArray:
    """Tell which combinations lie within the directions that rows (r, P) show."""
    length = np.linalg.norm(rows, axis=0)
    length[length == 0.0] = 1.0
    _, spread, axes = np.linalg.svd(rows / length, full_matrices=False)
    seen = axes[spread > RANK_TOLERANCE * spread[0]]
    wanted = base.matrix / length
    wanted = wanted / np.linalg.norm(wanted, axis=1)[:, None]
    outside = wanted - (wanted @ seen.T) @ seen
    return np.asarray(np.sum(outside**2, axis=1) < UNSEEN)
