"""Faults in a motion: nothing wrong is claimed, and what was known is known again soon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from recording_faults import limited, seconds
from ros_messages import FRAME, PUMA, TRUTH, recording

from load_identification.interface.batches import SynchronizedBatch
from load_identification.interface.parameters import Parameters
from load_identification.pipeline import settings
from load_identification.simulation.changes.runs import filtered, pieces
from load_identification.simulation.sensors import Recording
from load_identification.typing_aliases import BoolArray

BEGIN, END = 3.0, 5.0
"""Of each fault [s]."""

Change = Callable[[Recording, BoolArray], Recording]


def noisy_joints(recording: Recording, during: BoolArray) -> Recording:
    noise = 0.005 * np.random.default_rng(3).standard_normal((during.sum(), 6))
    position = recording.position.copy()
    position[during] += noise
    return replace(recording, position=position)


def frozen_joints(recording: Recording, during: BoolArray) -> Recording:
    position = recording.position.copy()
    position[during] = position[np.argmax(during)]
    return replace(recording, position=position)


def with_velocity(recording: Recording, factor: float) -> Recording:
    """Publish velocities that are the positions' times a factor: of degrees, or none at all."""
    velocity = np.gradient(recording.position, recording.stamps * 1e-9, axis=0)
    return replace(recording, velocity=factor * velocity)


def claims(recording: Recording) -> Iterator[tuple[float, float]]:
    """Yield when the mass is identified [s], and the worst error of what is, in its std."""
    batch, delay = filtered(recording)
    estimator = settings.payload_estimator(replace(Parameters(), systematic_errors='none'))
    for piece in pieces(batch):
        estimator.update(piece)
        estimate = estimator.estimate()
        if estimate is not None and estimate.identified[0]:
            errors = np.abs(estimate.values - TRUTH) / estimate.std
            now = float(piece.stamps[-1]) * 1e-9 + delay
            yield now, float(errors[estimate.identified].max())


@pytest.mark.parametrize('change', [noisy_joints, frozen_joints])
def test_what_was_known_is_known_again_within_a_second(change: Change) -> None:
    t = seconds(recording())
    known = list(claims(change(recording(), (t >= BEGIN) & (t < END))))
    assert max(error for _, error in known) < 4.0
    assert min(now for now, _ in known if now > END) < END + 1.0


@pytest.mark.parametrize(('channel', 'share'), [(0, 0.7), (1, 0.7), (3, 0.7), (4, 0.5), (5, 0.5)])
def test_a_channel_at_its_limit_again_and_again_spoils_nothing(channel: int, share: float) -> None:
    high = float(np.quantile(recording().wrench[:, channel], share))
    known = list(claims(limited(recording(), channel, -1e3, high)))
    assert known
    assert max(error for _, error in known) < 4.0


@pytest.mark.parametrize('factor', [0.0, -1.0, np.degrees(1.0)])
def test_velocities_that_are_none_of_the_positions_are_left_out(factor: float) -> None:
    known = list(claims(with_velocity(recording(), factor)))
    assert known
    assert max(error for _, error in known) < 4.0


def test_velocities_that_are_left_out_are_named() -> None:
    stage = settings.motion_filter(Parameters())
    stage.set_description(PUMA)
    for factor, words in ((1.0, ''), (0.0, 'velocity of joint_1'), (1.0, '')):
        r = with_velocity(recording(), factor)
        batch = SynchronizedBatch(r.names, FRAME, r.stamps, r.position, r.velocity, r.wrench)
        stage.update(batch)
        assert stage.words.startswith(words)
        assert bool(stage.words) == bool(words)
