"""When a parameter may be called identified: mass, then centre of mass, then inertia."""

from __future__ import annotations

import numpy as np
import pytest

from load_identification.estimation.identifiability import (
    CENTER_OF_MASS,
    INERTIA,
    MASS,
    Identifiability,
    Requirements,
    judge,
    limits,
)
from load_identification.typing_aliases import FloatArray

# A block of 1.1 kg; message order.
VALUES = np.array([1.1, 0.01, 0.04, 0.05, 0.0024, 0.0002, -0.0003, 0.0021, 0.0002, 0.0016])
STD = np.array([0.002, *[1e-4] * 3, *[2e-5] * 6])
EXCITED = (0.05, 0.002)
"""Torque that inertia causes, and that is left unexplained [N m]."""

ALL = [True] * 10


def judged(
    values: FloatArray = VALUES,
    std: FloatArray = STD,
    torques: tuple[float, float] = EXCITED,
    **required: float,
) -> Identifiability:
    return judge(values, std, Requirements(**required), *torques)


def changed(vector: FloatArray, entries: dict[int, float]) -> FloatArray:
    vector = vector.copy()
    vector[list(entries)] = list(entries.values())
    return vector


def test_all_that_is_known_well_is_identified_without_a_word() -> None:
    judgement = judged()
    assert judgement.identified.tolist() == ALL
    assert judgement.reasons == ()
    assert not judgement.reversed_sign


@pytest.mark.parametrize(
    ('mass', 'std', 'expected'),
    [
        (0.1, 0.0099, True),
        (0.1, 0.0101, False),
        (5.0, 0.099, True),  # 2 % of it
        (5.0, 0.101, False),
        (0.0, 0.005, True),  # nothing on the sensor, and known to be so
        (-0.003, 0.005, True),
        (1.1, np.inf, False),
    ],
)
def test_mass_is_known_to_a_fixed_limit_or_to_a_share_of_itself(
    mass: float, std: float, expected: bool
) -> None:
    judgement = judged(changed(VALUES, {0: mass}), changed(STD, {0: std}))
    assert judgement.identified[0] == expected
    assert not judgement.reversed_sign


def test_without_the_mass_nothing_is_identified_and_one_reason_says_so() -> None:
    judgement = judged(std=changed(STD, {0: 0.5}))
    assert not judgement.identified.any()
    assert judgement.reasons == (
        'mass std 0.5 kg, 0.022 required: turn the sensor against gravity',
    )


def test_an_arm_that_keeps_the_sensor_level_must_move_faster() -> None:
    std = changed(STD, {0: 0.5})
    (reason,) = judge(VALUES, std, Requirements(), *EXCITED, level=True).reasons
    assert reason == (
        'mass std 0.5 kg, 0.022 required: move faster, no joint turns the sensor against gravity'
    )


def test_each_coordinate_of_the_centre_of_mass_is_judged_by_itself() -> None:
    judgement = judged(std=changed(STD, {2: 0.003}))
    assert judgement.identified.tolist() == [True, True, False, *[True] * 7]
    assert judgement.reasons == ('centre of mass y std 3 mm, 2 required',)
    judgement = judged(std=changed(STD, {2: 0.002004}))
    assert judgement.reasons == ('centre of mass y std 2.004 mm, 2.000 required',)


@pytest.mark.parametrize(
    ('std', 'words'),
    [
        ({0: 1e6}, 'mass unknown: turn the sensor against gravity'),
        ({0: np.inf}, 'mass unknown: turn the sensor against gravity'),
        ({1: 1100.0, 3: 0.003}, 'centre of mass x unknown; centre of mass z std 3 mm, 2 required'),
        ({1: np.inf, 2: 0.6}, 'centre of mass x, y unknown'),
        ({5: 2e3}, 'inertia xy unknown: rotate faster, about more axes'),
    ],
)
def test_what_no_body_can_be_off_by_is_called_unknown(std: dict[int, float], words: str) -> None:
    assert '; '.join(judged(std=changed(STD, std)).reasons) == words


def test_without_excitation_no_inertia_is_identified_however_small_its_deviation() -> None:
    judgement = judged(torques=(0.0009, 0.002))
    assert judgement.identified.tolist() == [True] * 4 + [False] * 6
    assert '0.001 required: 50 % of the 0.002 N·m' in judgement.reasons[0]
    assert judged(torques=(0.0011, 0.002)).identified.all()


@pytest.mark.parametrize('torques', [(np.nan, 0.002), (0.002, np.nan), (np.nan, np.nan)])
def test_excitation_that_is_not_known_is_none(torques: tuple[float, float]) -> None:
    assert not judged(torques=torques).identified[4:].any()


def test_each_entry_of_the_inertia_is_judged_by_itself() -> None:
    judgement = judged(std=changed(STD, {5: 3e-4, 9: 3e-4}))
    assert np.flatnonzero(~judgement.identified).tolist() == [5, 9]
    assert judgement.reasons[0].startswith('inertia xy, zz std up to 0.0003 kg·m²')


def test_moments_none_of_which_is_known_require_no_standard_deviation_of_zero() -> None:
    (reason,) = judged(std=changed(STD, dict.fromkeys(range(4, 10), 0.05))).reasons
    assert ' 0.05 kg·m², no moment of inertia exceeds twice its standard deviation yet: ' in reason


def test_a_moment_that_is_not_known_is_no_measure_for_the_others() -> None:
    """Turned about z alone: xx, xy, yy are anything; what is known of zz decides."""
    unknown = {4: 0.3, 5: 0.1, 7: -0.2}
    deviations = {4: 0.2, 5: 0.2, 7: 0.2}
    values = changed(VALUES, unknown)
    judgement = judged(values, changed(STD, deviations))
    assert np.flatnonzero(~judgement.identified).tolist() == [4, 5, 7]
    # Less than a tenth of a moment of 0.3, but as much as all of that of z.
    poor = judged(values, changed(STD, {**deviations, 6: 0.002, 8: 0.002, 9: 0.002}))
    assert not poor.identified[4:].any()


def test_moments_that_no_load_of_that_mass_has_are_no_measure_of_each_other() -> None:
    """In a second of motion 1.1 kg had 4, 4 and 1.3 kg·m², and the last one was identified."""
    far = {4: 4.0, 7: 4.0, 9: 1.3}
    judgement = judged(changed(VALUES, far), changed(STD, dict.fromkeys(range(4, 10), 0.12)))
    assert judgement.identified.tolist() == [True] * 4 + [False] * 6
    assert 'inertia xx, xy, xz, yy, yz, zz std up to 0.12 kg·m²' in judgement.reasons[0]
    # A rod of 3 m has a moment larger than that, but is known well.
    long = {4: 0.83, 7: 0.83}
    assert judged(changed(VALUES, long), changed(STD, {4: 0.02, 7: 0.02})).identified.all()


def test_a_mass_that_is_clearly_negative_is_a_reversed_sign() -> None:
    values = changed(np.full(10, np.nan), {0: -1.1})
    judgement = judged(values, changed(np.full(10, np.inf), {0: 0.002}))
    assert judgement.reversed_sign
    assert not judgement.identified.any()
    assert judgement.reasons == (
        'mass -1.100 ± 0.004 kg is negative: wrench sign reversed? '
        'See parameter wrench_convention; or gravity: swift motion all round names that',
    )


@pytest.mark.parametrize(('mass', 'std'), [(-0.015, 0.001), (-0.1, 0.05), (-1.1, 0.5)])
def test_a_mass_that_is_negative_by_chance_is_none(mass: float, std: float) -> None:
    values = changed(np.full(10, np.nan), {0: mass})
    judgement = judged(values, changed(np.full(10, np.inf), {0: std}))
    assert not judgement.reversed_sign
    assert not judgement.identified[1:].any()


def test_requirements_are_those_asked_for() -> None:
    strict = judged(mass=0.001, center_of_mass=5e-5, inertia=1e-3)
    assert strict.identified.tolist() == [True] + [False] * 9
    assert len(strict.reasons) == 4
    assert not judged(excitation=30.0).identified[4:].any()


@pytest.mark.parametrize(
    ('entries', 'torques', 'stage'),
    [
        ({}, EXCITED, ''),
        ({0: 0.5, 1: 0.5, 4: 1.0}, EXCITED, MASS),
        ({2: 0.01, 4: 1.0}, EXCITED, CENTER_OF_MASS),
        ({4: 1.0}, EXCITED, INERTIA),
        ({}, (1e-4, 0.002), INERTIA),
    ],
)
def test_the_first_stage_that_is_not_complete_is_named(
    entries: dict[int, float], torques: tuple[float, float], stage: str
) -> None:
    assert judged(std=changed(STD, entries), torques=torques).lacking == stage


def test_where_motion_is_no_help_nothing_is_lacking() -> None:
    nothing_held = judged(changed(VALUES, {0: 0.001}), changed(STD, {0: 0.001}))
    assert nothing_held.lacking == ''
    assert 'nothing is held' in nothing_held.reasons[0]
    negative = judged(changed(np.full(10, np.nan), {0: -1.1}), changed(STD, {0: 0.002}))
    assert (negative.lacking, negative.reversed_sign) == ('', True)


def test_limits_are_those_judged_by() -> None:
    allowed = limits(VALUES, STD, Requirements())
    for place in range(10):
        just, beyond = changed(STD, {place: 0.999 * allowed[place]}), 1.001 * allowed[place]
        # The largest moment surely reached depends on its own deviation.
        if place != 4:
            assert judged(std=just).identified[place]
            assert not judged(std=changed(STD, {place: beyond})).identified[place]


def test_with_no_moment_known_the_limit_is_that_of_a_cube_of_aluminium() -> None:
    unknown = changed(STD, dict.fromkeys(range(4, 10), 1.0))
    side = (1.1 / 2700.0) ** (1 / 3)
    limit = limits(VALUES, unknown, Requirements(inertia=0.1))
    np.testing.assert_allclose(limit[4:], 0.1 * 1.1 * side**2 / 6.0, rtol=1e-12)
    assert not judged(std=unknown).identified[4:].any()


def test_torque_of_the_inertia_is_told_with_what_is_required() -> None:
    judgement = judge(VALUES, STD, Requirements(), 0.0001, 0.0024, rate=0.4)
    assert judgement.reasons == (
        'inertia: its torque in the fastest motion so far (up to 0.4 rad/s) is 0.0001 N·m rms, '
        '0.0012 required: 50 % of the 0.0024 N·m unexplained there',
    )


def test_no_figures_are_told_of_a_motion_that_was_none() -> None:
    judgement = judge(VALUES, STD, Requirements(), 2e-12, 0.0014, rate=6e-13)
    assert judgement.reasons == (
        'inertia unknown: no rotation measured so far: rotate fast, about more axes',
    )


def test_a_doubt_of_the_inertia_is_said_where_it_decides() -> None:
    """In slow motion frames were to be checked, though no inertia could be known yet."""
    unknown = changed(STD, dict.fromkeys(range(4, 10), 1.0))
    for std, words in ((STD, 'doubtful'), (unknown, 'rotate faster, about more axes')):
        judgement = judge(VALUES, std, Requirements(), *EXCITED, doubt='doubtful')
        assert not judgement.identified[4:].any()
        assert judgement.lacking == ''
        assert len(judgement.reasons) == 1
        assert judgement.reasons[0].endswith(words)
