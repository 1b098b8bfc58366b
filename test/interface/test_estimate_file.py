"""The estimate file: as agreed, whatever was found."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import yaml
from bags import (
    START,
)

from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.recordings.identification import Identification


def example(**changes: Any) -> Identification:
    nan, inf = np.nan, np.inf
    estimate = PayloadEstimate(
        stamp=1,
        frame='ft_sensor',
        parameters=np.full(10, nan),
        offset=np.array([-1.08, -2.98, 6.78, -0.059, 0.148, -0.015]),
        covariance=np.diag([1.0] * 10 + [1e-4, 1e-4, 1e8, 1e-6, 1e-6, 1e-6]),
        values=np.array([0.2233, -0.0059, 0.0053, 0.0277, *[1e-5] * 5, nan]),
        std=np.array([0.0004, 1e-4, 1e-4, 0.1, *[3e-4] * 5, inf]),
        identified=np.array([True] * 3 + [False] * 7),
        reasons=('inertia: rotate faster',),
        warnings=(),
        reversed_sign=False,
        withheld=None,
        residual_rms=np.array([0.08, nan]),
        noise=np.array([0.1, 0.01]),
        total=np.full(10, nan),
        total_covariance=np.eye(10),
    )
    dropped = Counter({'wrench_not_finite': 12, 'joint_missing': 0})
    return replace(Identification(estimate, -1.0, START, 13000, dropped, ()), **changes)


GOLDEN = """\
frame: ft_sensor
mass: {value: 0.2233, std: 0.0004, identified: true}
center_of_mass: {value: [-0.0059, 0.0053, null], std: [0.0001, 0.0001, 0.1], \
identified: [true, true, false]}
inertia_about_center_of_mass: {value: [null, null, null, null, null, null], \
std: [0.0003, 0.0003, 0.0003, 0.0003, 0.0003, null], \
identified: [false, false, false, false, false, false]}
offset: {value: [1.08, 2.98, null, 0.059, -0.148, 0.015], \
std: [0.01, 0.01, null, 0.001, 0.001, 0.001]}
residual_rms: {force: 0.08, torque: null}
samples: {used: 13000, dropped: {wrench_not_finite: 12}}
"""


def test_estimate_file_is_as_agreed_with_null_for_what_is_not_identified() -> None:
    assert example().estimate_file() == GOLDEN


def test_estimate_file_reads_back_as_what_was_found(result: Identification) -> None:
    estimate = result.estimate
    read = yaml.safe_load(result.estimate_file())
    values = [
        read['mass']['value'],
        *read['center_of_mass']['value'],
        *read['inertia_about_center_of_mass']['value'],
    ]
    np.testing.assert_allclose(values, estimate.values, rtol=1e-8)  # nine digits
    np.testing.assert_allclose(read['offset']['std'], result.offset_std, rtol=1e-8)
    assert read['samples']['used'] == result.used


@pytest.mark.parametrize('frame', ['null', 'a: b', '[x', '0', 'Sensör'])
def test_any_name_of_a_frame_survives_the_estimate_file(frame: str) -> None:
    odd = example(estimate=replace(example().estimate, frame=frame))
    assert yaml.safe_load(odd.estimate_file())['frame'] == frame
