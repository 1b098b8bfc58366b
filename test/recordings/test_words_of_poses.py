"""What the estimator advises those whose driver publishes, in the words for a file of poses."""

from __future__ import annotations

import numpy as np
import pytest

from load_identification.estimation.identifiability import FASTER, REVERSED
from load_identification.estimation.misfit import words
from load_identification.estimation.payload_estimate import DOUBT
from load_identification.recordings.static_identification import ADVICE, in_poses

TURN = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])

SAID = (
    words.world(np.eye(3), 0.01),
    words.world(TURN, 0.01),
    words.channels(TURN, np.eye(3)),
    words.dead(['fx']),
    words.TOO_FAR.format(30.0),
    words.units(1000.0, 0.01),
    words.JOINT_REVERSED.format('joint_2'),
    words.JOINTS_EXCHANGED.format('joint_2', 'joint_3'),
    words.SUSPECTED.format('units of torque and force'),
    words.PUZZLE,
    words.PUZZLE_WITHOUT_ROOT,
    words.WEIGHTLESS,
    words.gravity(np.array([0.0, 0.0, -9.81]), np.array([0.0, 0.6, -0.8]), False, 0.01),
    words.rotated(TURN, 0.01),
    DOUBT,
    REVERSED,
    FASTER,
)
"""Everything that names a cause or a doubt."""


@pytest.mark.parametrize('place', range(len(ADVICE)))
def test_each_phrase_is_said_and_is_put_otherwise(place: int) -> None:
    """A phrase that is worded anew in the estimator would pass unnoticed to the file's reader."""
    phrase, meant = ADVICE[place]
    # Longer phrases come first and take theirs away.
    rest = list(SAID)
    for earlier in ADVICE[:place]:
        rest = [each.replace(*earlier) for each in rest]
    met = [each for each in rest if phrase in each]
    assert met
    assert all(phrase not in each.replace(phrase, meant) for each in met)


@pytest.mark.parametrize('said', SAID)
def test_nobody_with_a_file_is_told_of_publishing_services_or_moving(said: str) -> None:
    told = in_poses(said)
    assert not any(word in told for word in ('publish', 'reset', 'moving'))
