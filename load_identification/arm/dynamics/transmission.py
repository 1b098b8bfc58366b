"""Motors that move several joints together, as those of a differential wrist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from load_identification.errors import ParameterError
from load_identification.interface.files import FileError, field, read_yaml, vector
from load_identification.typing_aliases import FloatArray

EFFORTS = ('motors', 'joints')

WORST_CONDITION = 1e6
"""Of a matrix that can be inverted [-]."""


@dataclass(frozen=True, eq=False)
class Transmission:
    """What turns joints into motors: ``q_motor = matrix q``, ``tau = matrix^T tau_motor``.

    Of joints that it does not name the motors are the joints.

    Attributes
    ----------
    joints : tuple of str
        The m joints; the k-th motor goes by the name of the k-th.
    matrix : (m, m) array
        Turns of each motor, in rows, per turn of each joint: behind the gears 1, -1 or the like.
    efforts : str
        What the efforts of joint states are of, one of `EFFORTS`.

    Raises
    ------
    ParameterError
        For a matrix that is not square or has no inverse.
    """

    joints: tuple[str, ...]
    matrix: FloatArray
    efforts: str

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

        Raises
        ------
        ParameterError
            Where the arm lacks one of the transmission's.
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
        # One that is missing is missing of its own wrist alone.
        out[:, places] = efforts[:, places] @ np.linalg.inv(self.matrix)
        return out

    @property
    def fields(self) -> dict[str, Any]:
        """What a file has of it."""
        return {
            'joints': list(self.joints),
            'matrix': self.matrix.tolist(),
            'efforts': self.efforts,
        }


def transmission_of(fields: Any) -> Transmission:
    """Return what the fields of a file say.

    Raises
    ------
    ParameterError
        For one that is missing or unusable.
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

    Raises
    ------
    ParameterError
        If it cannot be read or used.
    """
    try:
        return transmission_of(read_yaml(path))
    except (FileError, ParameterError) as error:
        raise ParameterError(f'--transmission {path}: {error}') from error
