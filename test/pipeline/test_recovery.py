"""Faults in a motion: nothing wrong is claimed, and what was known is known again soon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from recording_faults import limited, seconds
from ros_messages import FRAME, PUMA, TRUTH, recording

from load_identification.interface.batches import SynchronizedBatch
from load_identification.interface.parameters import Parameters
from load_identification.pipeline import settings
from load_identification.signals.motion_filter import REPEATS
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


def repeating(recording: Recording, during: BoolArray, parts: int) -> Recording:
    """Publish old values again, three of ten, of the wrench or of each channel by itself."""
    wrench = recording.wrench.copy()
    again = during[:, None] & (np.random.default_rng(3).random((len(wrench), parts)) < 0.3)
    for k in np.flatnonzero(during):
        wrench[k] = np.where(again[k], wrench[k - 1], wrench[k])
    return replace(recording, wrench=wrench)


def old_wrenches(recording: Recording, during: BoolArray) -> Recording:
    return repeating(recording, during, 1)


def old_values(recording: Recording, during: BoolArray) -> Recording:
    return repeating(recording, during, 6)


def spikes(seed: int) -> Change:
    """Return a change by which one channel, in three of ten wrenches, shows 50 N or 50 N m."""

    def change(recording: Recording, during: BoolArray) -> Recording:
        rng, wrench = np.random.default_rng(seed), recording.wrench.copy()
        for k in np.flatnonzero(during):
            if rng.random() < 0.3:
                wrench[k, rng.integers(6)] = 50.0 * rng.choice([-1, 1])
        return replace(recording, wrench=wrench)

    return change


def filled(parts: int, value: float) -> Change:
    """Return a change by which the wrench, or each channel, has a value three of ten times.

    In bursts of a few samples.
    """

    def change(recording: Recording, during: BoolArray) -> Recording:
        fallen = np.random.default_rng(4).random((len(during), parts)) < 0.12
        fallen[2:] |= fallen[1:-1] | fallen[:-2]
        return replace(
            recording, wrench=np.where(during[:, None] & fallen, value, recording.wrench)
        )

    return change


def dying(recording: Recording, during: BoolArray) -> Recording:
    """Let a force go to another value within 1.5 s, and stay there."""
    alive = np.clip(1.0 - (seconds(recording) - BEGIN) / 1.5, 0.0, 1.0)
    wrench = recording.wrench.copy()
    wrench[during, 2] = (alive * wrench[:, 2] - 2.5 * (1.0 - alive))[during]
    return replace(recording, wrench=wrench)


def with_velocity(recording: Recording, factor: float) -> Recording:
    """Publish velocities that are the positions' times a factor: of degrees, or none at all."""
    velocity = np.gradient(recording.position, recording.stamps * 1e-9, axis=0)
    return replace(recording, velocity=factor * velocity)


class Known(NamedTuple):
    """When the mass is identified [s], the worst error of what is [std], and any warnings."""

    now: float
    error: float
    warnings: tuple[str, ...]


def claims(recording: Recording) -> Iterator[Known]:
    """Yield what is known while the mass is identified."""
    batch, delay = filtered(recording)
    estimator = settings.payload_estimator(replace(Parameters(), systematic_errors='none'))
    for piece in pieces(batch):
        estimator.update(piece)
        estimate = estimator.estimate()
        if estimate is not None and estimate.identified[0]:
            errors = np.abs(estimate.values - TRUTH) / estimate.std
            now = float(piece.stamps[-1]) * 1e-9 + delay
            yield Known(now, float(errors[estimate.identified].max()), estimate.warnings)


CHANGES = [noisy_joints, frozen_joints, old_wrenches, old_values, dying, spikes(2)]
CHANGES += [filled(1, 0.0), filled(6, 0.0), filled(1, 999.0)]
MORE = [spikes(3), filled(1, -1.0), filled(6, -1.0), filled(6, 999.0)]


@pytest.mark.parametrize(
    'change', [*CHANGES, *(pytest.param(each, marks=pytest.mark.seeds) for each in MORE)]
)
def test_what_was_known_is_known_again_within_a_second(change: Change) -> None:
    t = seconds(recording())
    faulty = change(recording(), (t >= BEGIN) & (t < END))
    known = list(claims(faulty))
    assert max(each.error for each in known) < 4.0
    assert min(each.now for each in known if each.now > END and not each.warnings) < END + 1.0


@pytest.mark.parametrize(('channel', 'share'), [(0, 0.7), (3, 0.7), (5, 0.5)])
def test_a_channel_at_its_limit_again_and_again_spoils_nothing(channel: int, share: float) -> None:
    high = float(np.quantile(recording().wrench[:, channel], share))
    known = list(claims(limited(recording(), channel, -1e3, high)))
    assert known
    assert max(each.error for each in known) < 4.0


def test_a_joint_that_repeats_its_position_while_it_has_a_velocity_is_named() -> None:
    stage = settings.motion_filter(Parameters())
    stage.set_description(PUMA)
    r = with_velocity(recording(), 1.0)
    held = (seconds(r) >= BEGIN) & (seconds(r) < END)
    position = np.where(
        held[:, None] & (np.arange(6) == 4), r.position[np.argmax(held)], r.position
    )
    for first, last, words in ((0.0, BEGIN, ''), (BEGIN, 4.0, 'joint_5'), (END, 8.0, '')):
        which = (seconds(r) >= first) & (seconds(r) < last)
        batch = SynchronizedBatch(r.names, FRAME, r.stamps, position, r.velocity, r.wrench)
        stage.update(batch.select(which))
        assert stage.words == (words and REPEATS.format(words))
    # One that stands still by right, as where it is locked, has no velocity either.
    stage.reset()
    position[:, 4], r.velocity[:, 4] = position[0, 4], 0.0
    batch = SynchronizedBatch(r.names, FRAME, r.stamps, position, r.velocity, r.wrench)
    stage.update(batch)
    assert not stage.words


@pytest.mark.parametrize('joint', [0, 3, 5])
def test_a_joint_that_repeats_its_position_is_named_under_noise_of_its_velocity(
    joint: int,
) -> None:
    stage = settings.motion_filter(Parameters())
    stage.set_description(PUMA)
    r = recording(velocity_noise=0.05)
    position = r.position.copy()
    held = (seconds(r) >= BEGIN) & (seconds(r) < END)
    position[held, joint] = position[np.argmax(held), joint]
    batch = SynchronizedBatch(r.names, FRAME, r.stamps, position, r.velocity, r.wrench)
    named = []
    for k in range(0, len(held), 5):
        stage.update(batch.select(slice(k, k + 5)))
        if stage.words == REPEATS.format(f'joint_{joint + 1}'):
            named.append(float(seconds(r)[min(k + 4, len(held) - 1)]))
    assert BEGIN < named[0] < BEGIN + 1.0
    assert named[-1] < END + 1.0


@pytest.mark.parametrize('parts', [1, 6])
def test_old_values_under_fresh_stamps_are_named_and_left_out(parts: int) -> None:
    stage = settings.motion_filter(Parameters())
    stage.set_description(PUMA)
    t = seconds(recording())
    r = repeating(recording(), (t >= BEGIN) & (t < END), parts)
    batch = SynchronizedBatch(r.names, FRAME, r.stamps, r.position, r.velocity, r.wrench)
    for first, last, words in ((0.0, BEGIN, ''), (BEGIN, 4.0, 'old values'), (4.0, END + 0.7, '')):
        stage.update(batch.select((t >= first) & (t < last)))
        assert words in stage.words
        assert bool(stage.words) == bool(words)
    again = np.sum((np.diff(r.wrench, axis=0) == 0.0).any(axis=1))
    assert 0.8 * again < stage.dropped['wrench_repeated'] <= again


@pytest.mark.parametrize(
    ('value', 'parts', 'share'),
    [
        *((0.0, 1, 0.3), (0.0, 6, 0.1), (-1.0, 6, 0.05), (2.5, 1, 0.3)),
        *(
            pytest.param(*more, marks=pytest.mark.seeds)
            for more in ((0.0, 1, 0.05), (-1.0, 1, 0.1), (2.5, 6, 0.1))
        ),
    ],
)
def test_values_filled_in_spoil_nothing_from_the_start_either(
    value: float, parts: int, share: float
) -> None:
    r = recording()
    fallen = np.random.default_rng(5).random((len(r.stamps), parts)) < share
    known = list(claims(replace(r, wrench=np.where(fallen, value, r.wrench))))
    assert known[-1].now > 7.5
    assert max(each.error for each in known) < 4.0


@pytest.mark.parametrize(('value', 'name'), [(0.0, 'zero'), (-1.0, '−1'), (999.0, '999')])
def test_values_filled_in_are_named_and_left_out(value: float, name: str) -> None:
    """All from far away; of others all but the first two: only that they return tells."""
    stage = settings.motion_filter(Parameters())
    stage.set_description(PUMA)
    t = seconds(recording())
    during = (t >= BEGIN) & (t < END)
    fallen = during & (np.random.default_rng(4).random(len(t)) < 0.3)
    r = recording()
    wrench = r.wrench.copy()
    wrench[fallen, 2] = value
    batch = SynchronizedBatch(r.names, FRAME, r.stamps, r.position, r.velocity, wrench)
    for first, last, words in (
        (0.0, BEGIN, ''),
        (BEGIN, BEGIN + 0.5, f'fz fall to {name} now and then'),
        (BEGIN + 0.5, END + 0.5, ''),
    ):
        stage.update(batch.select((t >= first) & (t < last)))
        assert words in stage.words
        assert bool(stage.words) == bool(words)
    left_out = stage.dropped['wrench_filled'] + stage.dropped['wrench_spike']
    assert 0 <= fallen.sum() - left_out <= (2 if value == -1.0 else 0)
