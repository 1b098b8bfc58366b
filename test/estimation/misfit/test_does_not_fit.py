"""No error of the cell is named where the residuals say that something else acts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from estimates import estimated

from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.parameters import Parameters
from load_identification.model.robot import FrameMotion
from load_identification.pipeline import settings
from load_identification.simulation.cells import Conditions, Path, filtered, published, sample
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import (
    CABLE,
    FIELD_RMS,
    CellErrors,
    random_field,
)
from load_identification.simulation.sensors import load_wrench
from load_identification.typing_aliases import FloatArray

PUMA = MOUNTS['puma']
CAUSES = ('cross-talk', 'gain of', 'sensor turned', 'base tilted', 'zero of joint', 'wrench older')


def told(
    motion: str, seed: int, errors: CellErrors, pull: Callable[[Path], FloatArray] | None = None
) -> PayloadEstimate:
    """Return the estimate after 25 s with 1.5 kg, and with a pull (n, 6) besides [N, N m]."""
    drawn = MOTIONS[motion](PUMA, 25.0, np.random.default_rng([seed, 0]))
    path = sample(PUMA, drawn, 25.0, 250.0)
    load = drawn_load(np.random.default_rng([seed, 1]), 1.5)

    def exerted(frame: FrameMotion) -> FloatArray:
        return load_wrench(load, frame) + (0.0 if pull is None else pull(path))

    parameters = replace(Parameters(), gravity=PUMA.gravity)
    streams = published(path, exerted, Conditions(errors, ('smooth',)), seed)
    estimator = settings.payload_estimator(parameters)
    estimator.update(filtered(PUMA, *streams, parameters)[0])
    return estimated(estimator)


def hose(path: Path) -> FloatArray:
    """Return the wrench of a hose that pulls with 1 N rms in each direction, as the joints are."""
    rng = np.random.default_rng([603, 5])
    point = rng.uniform(-0.1, 0.1, 3)
    force = random_field(path.joints[0], CABLE, rng)[:, :3] / FIELD_RMS[0]
    return np.hstack([force, np.cross(point, force)])


def test_a_hose_is_not_called_an_error_of_the_sensor() -> None:
    """It was "cross-talk fx by fz 0.08", sixteen times the prior."""
    estimate = told('pauses', 603, CellErrors(), hose)
    assert not [words for words in estimate.warnings if words.startswith(CAUSES)]
    fits = not any(words.startswith('does not fit: residuals') for words in estimate.warnings)
    assert not (fits and estimate.identified.any())


def test_a_base_that_is_tilted_is_called_that() -> None:
    said = told('rich', 501, replace(CellErrors(), tilt=np.deg2rad(1.5))).warnings
    assert any(words.startswith('base tilted') for words in said)
    assert not any(words.startswith('does not fit') for words in said)
