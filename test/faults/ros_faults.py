"""A fault for two seconds of a motion, over real topics, judged by stamps."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from processes import ForkedProcess
from ros_group import Group
from ros_messages import NS, PARAMETER_KEYS, TRUTH, Message, feed, recording
from ros_pipeline import Pipeline
from std_msgs.msg import String

ONE, THREE = ('load_identification',), ('fusion', 'filter', 'estimator')
IDS = ['one process', 'three']
PROCESSES = [ONE, pytest.param(THREE, marks=pytest.mark.matrix)]
"""Of a fixture `live`: in three processes only what is slow or asks for it."""

in_three_too = pytest.mark.parametrize('live', [ONE, THREE], ids=IDS, indirect=True)
"""In every run, for what another process than the one that speaks notices."""

Live = tuple[Pipeline, list[ForkedProcess]]
Three = tuple[Pipeline, dict[str, ForkedProcess]]

BEGIN, END = 3.0, 5.0
"""Of each fault [s]."""

LIMIT = 1.2
"""Within so long it is said, and after its end all is well again [s of stamps]: one second, and
what a status is late by."""

PIECE = NS // 4
"""Of stamps, played before it is waited for what the pipeline says of them [ns]."""

Edit = Callable[[Message], Message | None]
"""Returns the message that is sent in place of one, None for none."""


@dataclass
class Heard:
    """Every status of a pipeline, with the stamp that was being played when it came."""

    now: int = 0
    statuses: list[tuple[int, DiagnosticStatus]] = field(default_factory=list)

    def __call__(self, status: DiagnosticStatus) -> None:
        """Take in a status."""
        self.statuses.append((self.now, status))


@contextlib.contextmanager
def living(modules: Sequence[str], parameters: dict[str, object] | None = None) -> Iterator[Live]:
    """Start nodes; yield what they say, and their processes, which live to the end."""
    with Group() as group:
        group.publish_inputs()
        processes = [group.start(module, parameters) for module in modules]
        pipeline = Pipeline(group)
        pipeline.connect()
        yield pipeline, processes
        for process in processes:
            assert process.alive
            assert 'Traceback' not in process.output


@contextlib.contextmanager
def in_three() -> Iterator[Three]:
    """Start the three nodes; yield what they say, and by name the process of each."""
    with Group() as group:
        group.publish_inputs()
        processes = {module: group.start(module) for module in THREE}
        pipeline = Pipeline(group)
        pipeline.connect()
        yield pipeline, processes


def play(pipeline: Pipeline, heard: Heard, edit: Edit) -> int:
    """Play the motion with a fault in it; return where its stamps begin [ns].

    No faster than the pipeline speaks: a busy machine's delay is no delay of stamps.
    """
    group = pipeline.group
    base = group.next_base()

    def messages() -> Iterator[Message]:
        spoken = base
        for message in feed(recording(), base):
            if message.due >= spoken + PIECE:
                count = len(heard.statuses)
                # What it says next may have been worked out before.
                group.wait_for(lambda count=count: len(heard.statuses) >= count + 2, 'statuses')
                spoken = message.due
            # Stamps are edited, the time of sending is not.
            heard.now = message.due
            t = (message.due - base) / NS
            sent = edit(message) if BEGIN <= t < END else message
            yield sent or Message(message.due, '/silence', String())

    heard.statuses.clear()
    group.play(messages(), 1.0)
    pipeline.settle()
    return base


def worst_error(status: DiagnosticStatus) -> float:
    """Return how far off the worst of what is claimed is, in its standard deviation."""
    values = {item.key: item.value for item in status.values}
    return max(
        (
            abs(float(values[key]) - truth) / float(values[f'{key}.std'])
            for key, truth in zip(PARAMETER_KEYS, TRUTH, strict=True)
            if values[f'{key}.identified'] == 'true' and values['state'] == 'identified'
        ),
        default=0.0,
    )


def assert_passes(
    heard: Heard, base: int, words: str, record_property: Callable[[str, object], None]
) -> None:
    """Check that a fault is said in time, claims nothing wrong, and that all is well after it.

    Parameters
    ----------
    heard : Heard
    base : int
        Where the stamps began [ns].
    words : str
        Pattern of what is said; empty: nothing has to be.
    record_property : callable
        Notes the times and the error.
    """
    times = np.array([(now - base) / NS for now, _ in heard.statuses])
    said = [bool(words and re.search(words, s.message)) for _, s in heard.statuses]
    well = [s.level == b'\x00' and 'identified' in s.values[0].value for _, s in heard.statuses]
    errors = np.array([worst_error(s) for _, s in heard.statuses])
    during = (times >= BEGIN) & (times < END + 1.0)
    found = times[np.array(said) & during]
    after = times[np.array(well) & (times >= END)]
    record_property('reported after', f'{found[0] - BEGIN:.1f}' if len(found) else '–')
    record_property('recovered after', f'{after[0] - END:.1f}' if len(after) else 'never')
    record_property('worst error', f'{errors.max():.1f}')
    assert errors.max() < 4.0, [
        (round(t, 2), round(e, 1)) for t, e in zip(times, errors, strict=True) if e > 4.0
    ]
    if words:
        heard_words = {
            s.message
            for t, (_, s) in zip(times, heard.statuses, strict=True)
            if BEGIN < t < END + 1
        }
        assert len(found), heard_words
        assert found[0] < BEGIN + LIMIT
    assert len(after)
    assert after[0] < END + LIMIT
