"""Describe motors that move several joints together, as in a differential wrist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from load_identification.errors import ParameterError
from load_identification.interface.files import field, named, read_yaml, vector
from load_identification.typing_aliases import FloatArray

EFFORTS = ('motors', 'joints')

WORST_CONDITION = 1e6
"""Largest condition number of a matrix that counts as invertible [-]."""


@dataclass(frozen=True, eq=False)
class Transmission:
    """The map from joints to motors: ``q_motor = matrix q``, ``tau = matrix^T tau_motor``.

    For joints that it does not name, the motors are the joints.

    Raises ParameterError if the matrix is not square or is singular.
    """

    joints: tuple[str, ...]
    """Names of the m joints; the k-th motor has the name of the k-th joint."""
    matrix: FloatArray
    """Turns of each motor (rows) per turn of each joint, behind the gears, (m, m): 1, -1 or
    similar."""
    efforts: str
    """Owners of the efforts in the joint states, one of `EFFORTS`."""

    def __post_init__(self) -> None:
        m = len(self.joints)
        if m < 2 or len(set(self.joints)) < m:
            raise ParameterError(
                f'transmission.joints are {", ".join(self.joints)}; it takes two or more'
            )
        if np.shape(self.matrix) != (m, m) or not np.linalg.cond(self.matrix) < WORST_CONDITION:
            raise ParameterError(
                f'transmission.matrix must have {m} rows of {m} numbers, a motor each, and an '
                'inverse'
            )
        if self.efforts not in EFFORTS:
            raise ParameterError(
                f'transmission.efforts is {self.efforts!r}; it must be {" or ".join(EFFORTS)}'
            )

    def over(self, joints: Sequence[str]) -> FloatArray:
        """Return the matrix (J, J) of all joints of an arm.

        Raises ParameterError if the arm lacks a joint of the transmission.
        """
        missing = [name for name in self.joints if name not in joints]
        if missing:
            raise ParameterError(
                f'transmission.joints has {", ".join(missing)}; those of the arm are '
                f'{", ".join(joints)}'
            )
        places = [joints.index(name) for name in self.joints]
        out = np.eye(len(joints))
        out[np.ix_(places, places)] = self.matrix
        return out

    def motor_efforts(self, efforts: FloatArray, joints: Sequence[str]) -> FloatArray:
        """Return the efforts (n, J) of the motors from those of joint states."""
        if self.efforts == 'motors':
            return efforts
        places = [joints.index(name) for name in self.joints]
        out = efforts.copy()
        # A missing effort affects only its own wrist.
        out[:, places] = efforts[:, places] @ np.linalg.inv(self.matrix)
        return out

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of the transmission in a file."""
        return {**vars(self), 'joints': list(self.joints), 'matrix': self.matrix.tolist()}


def transmission_of(fields: Any) -> Transmission:
    """Return the transmission described by the fields of a file.

    Raises ParameterError if a field is missing or invalid.
    """
    where = 'transmission.'
    joints, rows = field(fields, 'joints', where), field(fields, 'matrix', where)
    if not isinstance(joints, list) or not isinstance(rows, list) or len(rows) != len(joints):
        raise ParameterError(
            f'{where}joints must be a list, and {where}matrix have a row for each'
        )
    matrix = [vector(row, f'{where}matrix[{k}]', len(joints)) for k, row in enumerate(rows)]
    efforts = str(field(fields, 'efforts', where))
    return Transmission(tuple(map(str, joints)), np.array(matrix), efforts)


def read_transmission(path: Path) -> Transmission:
    """Read the file of `identify_arm --transmission`.

    Raises ParameterError if the file cannot be read or is invalid.
    """
    with named(f'--transmission {path}'):
        return transmission_of(read_yaml(path))
