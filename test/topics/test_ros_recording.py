"""A recording of a real arm: what is known of its load, offline and played over real topics."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import yaml
from rich.console import Console
from ros_group import Group
from ros_messages import NS, Message
from ros_pipeline import PLAYS, Pipeline

from load_identification.commands.recorded_load import print_report
from load_identification.estimation.events import EventKind
from load_identification.interface.parameters import Parameters
from load_identification.recordings.identification import WristIdentifier
from load_identification.recordings.reader import Chunk, Topics, open_recording
from load_identification.recordings.result import Identification

SPEED = 20.0

PLAYED = 120
"""So many chunks of half a second are played over topics."""


@dataclass(frozen=True)
class Offline:
    """What is played, what is identified from that, and what from all that is read."""

    played: list[Chunk]
    first: Identification
    whole: Identification


def messages(chunks: Iterable[Chunk]) -> Iterator[Message]:
    """Return joint states and wrenches, as bytes, in the order of their stamps."""
    for chunk in chunks:
        streams = {'/joint_states': chunk.joint_states, '/wrench': chunk.wrenches}
        all_of_it = [(topic, raw) for topic, stream in streams.items() for raw in stream]
        # Behind four bytes that tell of the encoding.
        due = [struct.unpack_from('<iI', raw, 4) for _, raw in all_of_it]
        for (sec, nanosec), (topic, raw) in sorted(zip(due, all_of_it, strict=True)):
            yield Message(sec * NS + nanosec, topic, raw)


@pytest.fixture(scope='module')
def recorded(shared_data: Path) -> Path:
    """Return the folder of the recording, 18 minutes of slow motion."""
    return shared_data / 'yumi_gravity'


@pytest.fixture(scope='module')
def offline(recorded: Path) -> Offline:
    """Identify what is played, then go on."""
    with open_recording(recorded / 'bag', Topics()) as reader:
        identifier, chunks = WristIdentifier(reader, Parameters()), reader.chunks()
        played = list(islice(chunks, PLAYED))
        for chunk in played:
            identifier.update(chunk)
        first = deepcopy(identifier).result()
        for chunk in chunks:
            identifier.update(chunk)
        return Offline(played, first, identifier.result())


def test_offline_it_gives_the_known_load_and_offset(offline: Offline) -> None:
    estimate, said = yaml.safe_load(offline.whole.estimate_file()), io.StringIO()
    print_report(Console(file=said, width=200), offline.whole)
    words = ' '.join(said.getvalue().split())
    # As a batch least squares on the same recording finds them; the mass as its author says.
    assert estimate['frame'] == 'ft_sensor'
    assert estimate['mass']['value'] == pytest.approx(0.2205, rel=0.025)
    com = np.array(estimate['center_of_mass']['value'])
    # The intervals of its coordinates are ± 2.5 mm.
    assert np.linalg.norm(com - [-5.9e-3, 5.3e-3, 27.7e-3]) < 2.5e-3
    offset = np.array(estimate['offset']['value'])
    np.testing.assert_allclose(offset[:3], [-1.08, -2.98, 6.78], atol=0.1)
    np.testing.assert_allclose(offset[3:], [-0.059, 0.148, -0.015], atol=0.01)
    # The log kept no sample of any acceleration.
    assert estimate['inertia_about_center_of_mass']['value'] == [None] * 6
    assert estimate['inertia_about_center_of_mass']['identified'] == [False] * 6
    assert 'the sensor cannot see it' in words
    # One load throughout: what gears and cables do now and then is no other one.
    assert 'load changed' not in words.replace('load or offset changed', '')
    assert 1.96 * estimate['mass']['std'] < 0.04 * 0.2205
    assert abs(estimate['mass']['value'] - 0.2205) < 1.96 * estimate['mass']['std']


def test_vibration_soon_after_the_beginning_is_no_other_load(recorded: Path) -> None:
    left, taken = 3333, 0
    with open_recording(recorded / 'bag', Topics()) as reader:
        identifier, chunks = WristIdentifier(reader, Parameters()), reader.chunks()
        while taken <= 2000:
            chunk = next(chunks)
            left, skipped = max(0, left - len(chunk.wrenches)), left
            identifier.update(Chunk(chunk.joint_states[skipped:], chunk.wrenches[skipped:]))
            taken += len(chunk.wrenches[skipped:])
        found = identifier.result()
    assert abs(found.estimate.values[0] - 0.2205) < 1.96 * found.estimate.std[0]
    noticed = EventKind.NONE, EventKind.CHANGE_DETECTED, EventKind.CONTACT
    assert {event.kind for event in found.events} <= {*noticed, EventKind.UNCHANGED}


def test_played_at_twenty_times_its_speed_it_gives_the_mass_it_gives_offline(
    recorded: Path, offline: Offline
) -> None:
    expected = offline.first
    for _ in range(PLAYS):
        with Group() as group:
            urdf = (recorded / 'yumi_left.urdf').read_text(encoding='utf-8')
            group.publish_inputs(text=urdf)
            group.start(parameters={'systematic_errors': 'ordinary'})
            pipeline = Pipeline(group)
            pipeline.connect()
            group.play(messages(offline.played), SPEED)
            pipeline.settle()
            live = pipeline.number('mass')
            inertia = [pipeline.status[f'{i}.identified'] for i in ('ixx', 'iyy', 'izz')]
        if pipeline.used == expected.used:
            break
    assert pipeline.used == expected.used > 1000, pipeline.status
    # Nothing but lost messages makes a difference.
    assert live == pytest.approx(expected.estimate.values[0], rel=1e-6)
    assert inertia == ['false'] * 3
