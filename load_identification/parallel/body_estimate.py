"""An estimated body with its covariance; the load as the difference of two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.estimation.payload_estimate import PayloadEstimate, in_message_order
from load_identification.model.inertial_parameters import InertialParameters, message_jacobian
from load_identification.typing_aliases import FloatArray

PARAMETERS = 10


@dataclass(frozen=True, eq=False)
class BodyEstimate:
    """Inertial parameters of a body and how much they may be believed.

    Attributes
    ----------
    parameters : (10,) array
        phi: m, first moment, inertia about P [kg, kg m, kg m²].
    covariance : (10, 10) array
        Of phi.
    """

    parameters: FloatArray
    covariance: FloatArray

    @classmethod
    def of(cls, estimate: PayloadEstimate) -> BodyEstimate:
        """Return the body that the one-step estimator has found."""
        covariance = estimate.covariance[:PARAMETERS, :PARAMETERS]
        return cls(estimate.parameters, covariance)

    def __sub__(self, platform: BodyEstimate) -> BodyEstimate:
        """Return the load: platform and load together, less the platform alone.

        Inertias about one point P subtract; `values` refers what is left to its own centre of
        mass by the parallel-axis theorem, the last step of Schulte and Gerland. The two runs are
        independent, so covariances add.
        """
        return BodyEstimate(
            self.parameters - platform.parameters, self.covariance + platform.covariance
        )

    @property
    def body(self) -> InertialParameters:
        """The body without its uncertainty."""
        return InertialParameters.from_vector(self.parameters)

    @property
    def values(self) -> FloatArray:
        """m, centre of mass, inertia about it, (10,) [kg, m, kg m²]; NaN without a mass."""
        return in_message_order(self.parameters, self.covariance)[0]

    @property
    def std(self) -> FloatArray:
        """Standard deviations of `values`, (10,)."""
        return in_message_order(self.parameters, self.covariance)[1]

    def principal_moments(self) -> tuple[FloatArray, FloatArray]:
        """Return the principal moments, largest first, and their standard deviations (3,).

        To first order a moment changes with the inertia as aᵀ dI a, a being its axis.

        Raises
        ------
        ParameterError
            Where the mass is not positive.
        """
        principal = self.body.principal()
        jacobian = message_jacobian(self.parameters)[4:]
        covariance = jacobian @ self.covariance @ jacobian.T
        x, y, z = principal.axes
        along = np.column_stack([x * x, 2 * x * y, 2 * x * z, y * y, 2 * y * z, z * z])
        return principal.moments, np.sqrt(np.einsum('ij,jk,ik->i', along, covariance, along))
