"""What the report knows of an estimate, and of an identification as a whole."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields

import numpy as np

from load_identification.errors import ParameterError
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.typing_aliases import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Snapshot:
    """An estimate and its time.

    Attributes
    ----------
    stamp : int
        [ns]
    parameters : (10,) array
        Of the payload, about the origin of S; NaN where unknown [kg, kg m, kg m²].
    total : (10,) array
        Of all that hangs on the sensor, a stored tool included, for predictions.
    offset : (6,) array
        Of the wrench that the load exerts on the sensor [N, N m].
    covariance : (16, 16) array
        Of both; NaN where unknown.
    values, std, identified : (10,) arrays
        In message order.
    reasons : tuple of str
        Why something is not identified.
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

    @property
    def offset_std(self) -> FloatArray:
        """Standard deviation of the offset, (6,) [N, N m]."""
        return np.sqrt(np.diag(self.covariance)[10:])


def snapshot_of(estimate: PayloadEstimate) -> Snapshot:
    """Return what the report keeps of an estimate."""
    return Snapshot(**{field.name: getattr(estimate, field.name) for field in fields(Snapshot)})


def believed_parameters(values: FloatArray) -> FloatArray:
    """Return parameters about the origin from published values, (10,).

    An inertia of which an entry is not identified counts as that of a point mass, which is what
    is believed then; NaN without mass and centre of mass.

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
    """What came of an identification besides what was recorded.

    Attributes
    ----------
    source : str
        What was identified from, for the title.
    sign : float
        From on_sensor to the convention of the raw wrench, in which the report shows wrenches.
    required_std : (3,) array
        Largest standard deviation of an identified mass [kg], centre of mass [m], and inertia as
        a fraction of the largest moment.
    residual_rms : (2,) array
        Force and torque [N, N m]; NaN where unknown.
    used : int
        Filtered samples used.
    dropped : collections.Counter
        Samples dropped, by reason.
    absent_channels : tuple of str
        Wrench channels that showed nothing.
    description : str or None
        URDF.
    cutoff : float or None
        Of the filter, where known [Hz].
    truth : (16,) array or None
        Ten parameters in message order, six offsets of the raw wrench.
    notes : tuple of str
        What else is to be said: what is unreliable, what motion would help.
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
