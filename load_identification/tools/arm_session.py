"""From recordings of an arm to what they say of it, and a test on data that were not fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from rich.console import Console

from load_identification.arm.arm import Arm
from load_identification.arm.arm_file import IdentifiedArm
from load_identification.errors import DescriptionError, RecordingError
from load_identification.model.robot import parse_description
from load_identification.tools.arm_description import read_description
from load_identification.tools.arm_found import Found, Prediction
from load_identification.tools.recording import RecordingReader, Topics, open_recording

FITTED_SHARE = 2.0 / 3.0
"""Of the data, where there is no held-out recording: what comes first."""

MOST_NAMED = 6
"""Parameters in a warning."""

MOST_UNBUILDABLE = 1.6
"""How many times the error of the estimate links that could be built may leave [-]. Of a real arm
they leave 1.0 to 1.3 times as much, and with the sign of its efforts reversed 1.9 to 2.6 times."""

EXACT = 1e-3
"""An error of the estimate below this share says nothing against buildable links [-]."""


@dataclass(frozen=True)
class Request:
    """What the command line asks for.

    Attributes
    ----------
    recordings : tuple of pathlib.Path
    static : tuple of pathlib.Path
        Of each of them the motion replayed slowly, on a sensor under the arm; or none.
    description, nominal, held_out, plan : pathlib.Path or None
    method : str
    joints : tuple of str
        Those that move; empty for all that are recorded.
    gravity : tuple of float
        [m/s^2].
    cutoff : float
        [Hz].
    rotor_inertia : bool
    sensor_frame, wrench_convention : str
        Of a sensor under the arm.
    topics : Topics
        That of the wrench is empty where joint efforts are the measurement.
    """

    recordings: tuple[Path, ...]
    static: tuple[Path, ...]
    description: Path | None
    nominal: Path | None
    held_out: Path | None
    plan: Path | None
    method: str
    joints: tuple[str, ...]
    gravity: tuple[float, ...]
    cutoff: float
    rotor_inertia: bool
    sensor_frame: str
    wrench_convention: str
    topics: Topics


@dataclass(frozen=True, eq=False)
class Session:
    """What came of it.

    Attributes
    ----------
    found : Found
    prediction : Prediction
        Of data that were not fitted.
    arm_model : IdentifiedArm or None
        Where efforts were measured.
    description : str
        URDF.
    fitted, method : str
        In words.
    identified : bool
        Whether all is told, the prediction is better than that of the description, and links
        that could be built predict nearly as well.
    warnings : tuple of str
    """

    found: Found
    prediction: Prediction
    arm_model: IdentifiedArm | None
    description: str
    fitted: str
    method: str
    identified: bool
    warnings: tuple[str, ...]


T = TypeVar('T')


def load_all(
    request: Request, read: Callable[[RecordingReader, str, Path], T]
) -> tuple[str, list[T], T | None]:
    """Read the description, the recordings, and the one held out, each by a function.

    Returns
    -------
    tuple
        Text of the description, what was read of each, and of that held out, if there is one.
    """
    paths = [*request.recordings, *([request.held_out] if request.held_out else [])]
    description = read_description(request.description) if request.description else ''
    out = []
    for path in paths:
        with open_recording(path, request.topics) as recording:
            description = description or _described(recording)
            out.append(read(recording, description, path))
    count = len(request.recordings)
    return description, out[:count], out[count] if request.held_out else None


def _described(recording: RecordingReader) -> str:
    try:
        return recording.description()
    except RecordingError as error:
        text = str(error).replace('set the parameter robot_description', 'give --description')
        raise RecordingError(text) from error


def moving_joints(description: str) -> tuple[str, ...]:
    """Return the names of all joints of a description that move."""
    return tuple(parse_description(description).names)[1:]


def nominal_arm(request: Request, description: str, joints: tuple[str, ...]) -> Arm:
    """Return the arm, with the links of another description where one is given.

    Raises
    ------
    DescriptionError
        If that has other links.
    """
    arm = Arm(description, request.gravity, joints)
    if request.nominal is None:
        return arm
    try:
        other = Arm(read_description(request.nominal), request.gravity, joints)
    except DescriptionError as error:
        raise DescriptionError(f'--nominal {request.nominal}: {error}') from error
    if (other.joints, other.bodies) != (arm.joints, arm.bodies):
        raise DescriptionError(
            f'--nominal {request.nominal} has the links {", ".join(other.bodies)}; it must '
            f'have those of the description, {", ".join(arm.bodies)}'
        )
    arm.nominal = other.nominal
    return arm


def verdict(
    found: Found, prediction: Prediction, cure: str = 'plan a motion by plan_excitation'
) -> tuple[bool, list[str]]:
    """Tell whether an arm is identified, and if not, why and what to do."""
    warnings = []
    untold = [found.names[i] for i in found.base.independent[~np.isfinite(found.std)]]
    if untold:
        more = f' and {len(untold) - MOST_NAMED} more' if len(untold) > MOST_NAMED else ''
        warnings.append(
            f'of {len(found.values)} combinations {len(untold)} are not told by this motion and '
            f'method, those of {", ".join(untold[:MOST_NAMED])}{more}; {cure}'
        )
    measured, own = prediction.measured, prediction.predicted
    worse = prediction.rms(measured - own) > prediction.rms(measured - prediction.nominal)
    if worse.all():
        warnings.append('what was not fitted is predicted no better than by the description')
    elif worse.any():
        names = [n for n, w in zip(prediction.channels, worse, strict=True) if w]
        warnings.append(f'{", ".join(names)}: predicted no better than by the description')
    error, built = map(prediction.relative_error, (own, prediction.consistent))
    unbuildable = built > MOST_UNBUILDABLE * max(error, EXACT)
    if unbuildable:
        warnings.append(
            'no links that could be built explain the data as well as the estimate: they leave '
            f'{100.0 * built:.3g} % of what was not fitted, the estimate {100.0 * error:.3g} %; '
            'is the sign of efforts or wrench reversed?'
        )
    return not untold and not worse.all() and not unbuildable, warnings


@contextmanager
def working(words: str) -> Iterator[None]:
    """Say what is being done on standard error, where that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(words):
        yield
