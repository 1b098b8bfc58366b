"""A published mass tells which measurement it was, and what was known then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from load_identification.estimation.belief.tool import NO_TOOL, Tool
from load_identification.estimation.payload_estimate import EstimatorSettings
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.weighing.reference import MOST_REFERENCES, Memory, Reference

SECOND = 1_000_000_000
BELIEF = PayloadEstimator(EstimatorSettings()).state[0]


def known(stamp: int, still: bool = False, tool: Tool = NO_TOOL) -> Callable[[], Reference]:
    """Return what returns a reference of a stamp [ns]."""
    return lambda: Reference(BELIEF, stamp, 0.0, tool, still)


def published(memory: Memory, seconds: float, mass: float, still: bool = False) -> None:
    """Note a mass."""
    stamp = int(seconds * SECOND)
    memory.note(mass, stamp, still, known(stamp, still))


def stamp_of(memory: Memory, mass: float) -> float | None:
    """Return when that was known which is remembered of a mass [s]."""
    found = memory.of(mass, NO_TOOL)
    return None if found is None else found.stamp / SECOND


def test_a_number_stands_for_what_was_known_then_or_before_but_never_later() -> None:
    memory = Memory()
    for k in range(1000):
        published(memory, 10.0 + 0.1 * k, 1.0 + 1e-4 * k)
    for k in range(1000):
        at, found = 10.0 + 0.1 * k, stamp_of(memory, 1.0 + 1e-4 * k)
        assert found is not None
        # It must not follow a load that changes unnoticed; nor be much older.
        assert found <= at <= found + max(1.0, 0.5 * (at - 10.0)) + 0.1
    assert stamp_of(memory, 1.00005) is None


def test_digits_of_topics_and_answers_are_enough() -> None:
    memory = Memory()
    published(memory, 10.0, 5.0268123456)
    memory.answered(5.0255987, known(20 * SECOND, still=True)())
    assert stamp_of(memory, float(f'{5.0268123456:.9g}')) == 10.0
    assert stamp_of(memory, 5.0256) == 20.0
    # A mass written on a label may be that of another body.
    assert stamp_of(memory, 5.027) is None


def test_an_estimate_at_rest_knows_more_and_is_taken_at_once() -> None:
    memory = Memory()
    published(memory, 10.0, 1.0)
    published(memory, 10.1, 1.1, still=True)
    assert stamp_of(memory, 1.1) == 10.1


def test_what_is_used_outlives_other_loads() -> None:
    memory = Memory()
    published(memory, 10.0, 1.0)
    published(memory, 10.5, 1.01)
    for k in range(3 * MOST_REFERENCES):
        memory.interrupt()
        published(memory, 20.0 + k, 2.0 + k)
        assert stamp_of(memory, 1.0) == 10.0
    assert stamp_of(memory, 2.0) is None
    assert stamp_of(memory, 2.0 + 3 * MOST_REFERENCES - 1) is not None


def test_another_tool_or_offset_is_another_measurement() -> None:
    memory = Memory()
    published(memory, 10.0, 1.0)
    other = replace(NO_TOOL, parameters=np.array([0.3, *[0.0] * 9]))
    assert memory.of(1.0, other) is None
    memory.forget()
    assert stamp_of(memory, 1.0) is None


def test_answers_leave_the_published_masses_alone() -> None:
    memory = Memory()
    published(memory, 10.0, 1.0)
    for k in range(2 * MOST_REFERENCES):
        memory.answered(2.0 + k, known(20 * SECOND, still=True)())
    assert stamp_of(memory, 1.0) == 10.0
    assert stamp_of(memory, 2.0) is None
    assert stamp_of(memory, 2.0 + 2 * MOST_REFERENCES - 1) == 20.0
