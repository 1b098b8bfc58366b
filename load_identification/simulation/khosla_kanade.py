"""The two arms of Khosla and Kanade 1987, from the Denavit-Hartenberg parameters in the report.

The true parameters are those of its tables 2 and 3, which were made up for simulation. The figure
with the lengths of the CMU DD Arm II is lost; the lengths here are made up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from load_identification.arm.dynamics.base_parameters import (
    BaseParameters,
    find_base_parameters,
    preference,
    random_motion,
)
from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.rows import ArmModel, JointMotion
from load_identification.arm.dynamics.tree import PARAMETERS, Arm
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.simulation.robots import joint
from load_identification.typing_aliases import FloatArray

NO_DRIVES = DriveModel(coulomb='none', viscous='none')


@dataclass(frozen=True)
class Row:
    """Denavit-Hartenberg parameters of one joint: alpha [rad], a, d [m]."""

    prismatic: bool
    alpha: float
    a: float
    d: float


@dataclass(frozen=True)
class PaperArm:
    """An arm of the paper."""

    rows: tuple[Row, ...]
    """Its joints."""
    true: dict[str, float]
    """Values of the paper's tables, about its frames at the far end of each link; all other
    parameters are zero."""
    initial: dict[str, float]
    """The paper's nominal values."""
    considered: tuple[str, ...] | None = None
    """The parameters that the paper uses, None for all."""

    @property
    def names(self) -> tuple[str, ...]:
        """Parameters such as `3.Izz`: link, then parameter about the paper's frame."""
        return tuple(f'{k}.{p}' for k in range(1, len(self.rows) + 1) for p in PARAMETERS)

    def model(self) -> ArmModel:
        """Return the arm without drives, with gravity along -z of its root."""
        return ArmModel(Arm(urdf(self.rows)), NO_DRIVES)

    def vector(self, values: dict[str, float]) -> FloatArray:
        """Return values in the order of `names`, zero for missing ones."""
        return np.array([values.get(name, 0.0) for name in self.names])

    def from_paper_frames(self) -> FloatArray:
        """Return the matrix that converts parameters from the paper's frames to the arm's."""
        return np.asarray(scipy.linalg.block_diag(*(_carried(row) for row in self.rows)))

    def base(self) -> BaseParameters:
        """Return the base parameters among those considered, about the paper's frames."""
        model, names = self.model(), self.considered or self.names
        columns = [self.names.index(name) for name in names]
        order = [columns.index(i) for i in preference(model) if i in columns]
        rows = model.regressor(*random_motion(len(self.rows), 300)) @ self.from_paper_frames()
        return find_base_parameters(rows[:, :, columns].reshape(-1, len(names)), names, order)


def urdf(rows: tuple[Row, ...]) -> str:
    """Return a description whose link frames lie on the joints, as URDF requires."""
    parts, before = '', Row(False, 0.0, 0.0, 0.0)
    for k, row in enumerate(rows, start=1):
        # Fixed part of the joint before: without d if that joint is prismatic.
        d = 0.0 if before.prismatic else before.d
        kind, links = 'prismatic' if row.prismatic else 'revolute', (f'link_{k - 1}', f'link_{k}')
        place = f'{before.a!r} 0 {d!r}', f'{before.alpha!r} 0 0'
        limit = 'lower="-3" upper="3" effort="100" velocity="10"'
        parts += joint(f'joint_{k}', kind, *links, *place, limit=limit, body='')
        before = row
    return f'<robot name="paper"><link name="link_0"/>{parts}</robot>'


def _carried(row: Row) -> FloatArray:
    """Return the matrix (10, 10) from the paper's frame of a link to the frame on its joint."""
    c, s = np.cos(row.alpha), np.sin(row.alpha)
    rotation = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
    translation = (row.a, 0.0, 0.0 if row.prismatic else row.d)
    columns = [
        InertialParameters.from_vector(unit).transformed(rotation, translation).to_vector()
        for unit in np.eye(10)
    ]
    return np.array(columns).T


def nearest(base: BaseParameters, values: FloatArray, near: FloatArray) -> FloatArray:
    """Return the parameters (P,) with given combinations (b,) that are nearest to others (P,)."""
    return np.asarray(near + np.linalg.pinv(base.matrix) @ (values - base.to_base(near)))


def paper_motion(joints: int) -> JointMotion:
    """Return the paper's motion: a sine from rest to 90 degrees, 25 samples at 20 ms.

    The paper does not say how the joints' motions differ; here each joint takes a little longer.
    """
    times = 0.02 * np.arange(25)[:, None]
    rate = np.pi / np.linspace(0.5, 0.8, joints)
    half = 0.25 * np.pi
    return (
        half * (1.0 - np.cos(rate * times)),
        half * rate * np.sin(rate * times),
        half * rate**2 * np.cos(rate * times),
    )


CYLINDRICAL = PaperArm(
    rows=(Row(False, 0.0, 0.0, 0.0), Row(True, -0.5 * np.pi, 0.0, 0.0), Row(True, 0.0, 0.0, 0.0)),
    # The paper gives the sum of the three inertias, 2.5; its distribution is made up.
    true={'3.mcz': 1.25, '3.m': 2.5, '2.m': 5.0, '1.Izz': 1.0, '2.Iyy': 0.7, '3.Iyy': 0.8},
    initial={'3.mcz': 0.27, '3.m': 0.9, '2.m': 2.1, '1.Izz': 2.0},
    # Diagonal inertias, and one coordinate of each centre of mass, section 2.4.
    considered=tuple(
        f'{k}.{p}'
        for k, first in ((1, 'mcz'), (2, 'mcy'), (3, 'mcz'))
        for p in ('m', first, 'Ixx', 'Iyy', 'Izz')
    ),
)

CMU_DD_ARM_II = PaperArm(
    rows=(
        Row(False, 0.0, 0.4, 0.0),
        Row(False, 0.5 * np.pi, 0.3, 0.0),
        Row(False, -0.5 * np.pi, 0.0, 0.25),
    ),
    true={
        **{'3.Ixz': 0.1, '3.Iyz': 0.15, '3.Iyy': 0.2, '3.Ixy': 0.15, '3.Izz': 0.3, '3.Ixx': 0.2},
        **{'3.mcx': 0.49, '3.mcz': 0.7, '3.mcy': 0.525, '3.m': 3.5},
        **{'2.Iyy': 0.5, '2.mcx': 1.1, '2.mcz': 0.55, '2.m': 5.5},
        **{'1.Izz': 1.3, '1.mcx': 2.7, '1.m': 13.5},
    },
    initial={
        **{'3.Izz': 0.1, '3.Ixx': 0.05, '3.mcy': 0.2, '3.m': 2.0},
        **{'2.Iyy': 0.3, '2.mcx': 0.4, '2.m': 4.0, '1.Izz': 1.0, '1.m': 10.0},
    },
)
