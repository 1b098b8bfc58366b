"""The report's data of an estimate and of a whole identification."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields

import numpy as np

from load_identification.errors import ParameterError
from load_identification.estimation.belief.error_budget import SOURCES
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.typing_aliases import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What the report keeps of an estimate.

    The fields are those of `PayloadEstimate`, NaN where unknown. Where causes are not known,
    `causes` are the variances of the mass alone, by `error_budget.SOURCES`, (4, 1) [kg²].
    """

    stamp: int
    parameters: FloatArray
    total: FloatArray
    offset: FloatArray
    covariance: FloatArray
    values: FloatArray
    std: FloatArray
    identified: BoolArray
    reasons: tuple[str, ...]
    causes: FloatArray = field(default_factory=lambda: np.full((len(SOURCES), 1), np.nan))

    @property
    def offset_std(self) -> FloatArray:
        """Standard deviation of the offset, (6,) [N, N m]."""
        return np.sqrt(np.diag(self.covariance)[10:])


def snapshot_of(estimate: PayloadEstimate) -> Snapshot:
    """Return the part of an estimate that the report keeps."""
    return Snapshot(**{each.name: getattr(estimate, each.name) for each in fields(Snapshot)})


def believed_parameters(values: FloatArray) -> FloatArray:
    """Return parameters about the origin from published values, (10,).

    If an entry of the inertia is not identified, a point mass is assumed; NaN without mass and
    centre of mass.

    Parameters
    ----------
    values : (10,) array
        In message order, NaN where not identified [kg, m, kg m²].
    """
    inertia = values[4:] if np.isfinite(values[4:]).all() else np.zeros(6)
    try:
        return InertialParameters.from_message_order([*values[:4], *inertia]).to_vector()
    except ParameterError:
        return np.full(10, np.nan)


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result of an identification, besides the recorded data.

    Attributes
    ----------
    source : str
        Source of the data, for the title.
    sign : float
        Converts on_sensor to the convention of the raw wrench, in which the report shows wrenches.
    required_std : (3,) array
        Largest standard deviations of an identified mass [kg], centre of mass [m], and inertia as
        a fraction of the largest moment.
    residual_rms : (2,) array
        Of force and torque [N, N m]; NaN if unknown.
    used : int
        Number of filtered samples used.
    dropped : collections.Counter
        Number of samples dropped, by reason.
    absent_channels : tuple of str
        Wrench channels without a signal.
    description : str or None
        URDF.
    cutoff : float or None
        Cutoff of the filter, if known [Hz].
    truth : (16,) array or None
        Ten parameters in message order, then six offsets of the raw wrench.
    notes : tuple of str
        Further remarks: unreliable results, and motion that would help.
    by_efforts : bool
        Whether the wrench is computed from efforts of joints.
    """

    source: str
    sign: float
    required_std: FloatArray
    residual_rms: FloatArray
    used: int
    dropped: Counter[str]
    absent_channels: tuple[str, ...] = ()
    description: str | None = None
    cutoff: float | None = None
    truth: FloatArray | None = None
    notes: tuple[str, ...] = ()
    by_efforts: bool = False
