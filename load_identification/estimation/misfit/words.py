"""Put a cause of a misfit in words: the fault, its size, its uncertainty, and the remedy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio

from load_identification.constants import STANDARD_GRAVITY
from load_identification.interface.names import INTERVAL, significant
from load_identification.typing_aliases import FloatArray

WEIGHTLESS = (
    'the wrench has the inertia of a load and not its weight: the driver takes the weight off '
    'already; switch its payload compensation off, or set driver_payload_mass to the mass that it '
    'takes off'
)

PUZZLE = (
    'no payload, and no other cause that is tried, explains the motion so far: if something '
    'touched the load, at the beginning perhaps, begin anew with reset or another recording; if '
    'nothing does, check names, order and signs of the joints that the driver publishes, whether '
    'the robot description is of this robot, and whether the sensor measures in the frame that '
    'frame_id of its wrench names: parameter sensor_frame sets another'
)

PUZZLE_WITHOUT_ROOT = (
    f'{PUZZLE}; check gravity, too, that the wrench is in the sensor frame with all of the '
    'weight, and that filtered/accel.linear is p̈ − g, as an accelerometer reads it: '
    'load_identification, in one process, tells which'
)
"""For a source that does not provide the orientation of the sensor in the root."""

SUSPECTED = 'the set-up may be wrong ({}?): no payload explains what is measured; go on moving'
JOINT_REVERSED = (
    '{} turns the other way than its positions say: correct their sign in the driver, or its axis '
    'in the robot description'
)
JOINTS_EXCHANGED = (
    '{} and {} are exchanged: correct their order in the driver, or their names in the robot '
    'description'
)
EITHER = '{}; or, if this motion does not show which, {}'
STANDS = (
    'another load hides it now: if it was set right, or if something touched or helped to carry '
    'the load before, call reset'
)
FEIGNED = 'set right first that the wrench is low-passed, as that may only look like this'
TOO_FAR = (
    'the centre of mass would be {:.3g} m from the sensor: torques in mN·m, or forces in kN? Have '
    'the driver publish N and N·m'
)

FAR = float(np.deg2rad(45.0))
"""Error of gravity from which a wrench of the other sign may be the cause too [rad]."""

NEARLY = float(np.deg2rad(3.0))
"""Angle within which a rotation is rounded to quarter turns [rad]."""

UNITS = {
    1000.0: 'forces in N, torques in mN·m',
    100.0: 'forces in N, torques in N·cm',
    39.37: 'forces in lbf, torques in lbf·in',
    STANDARD_GRAVITY: 'forces in kgf, torques in N·m',
    4.44822: 'forces in lbf, torques in N·m',
    3.28084: 'forces in lbf, torques in lbf·ft',
    1.0 / STANDARD_GRAVITY: 'forces in N, torques in kgf·m',
    0.001: 'forces in mN, torques in N·m',
}
"""Units of force and torque that explain a factor between them [-]."""

WITHIN = 0.35
"""Logarithm of a factor hardly known up to which a unit explains it [-]."""

MILLI_ALL, MILLI_FORCES = 'forces in mN and torques in mN·m', 'forces in mN, torques in N·m'
"""What a mass of a thousandfold suggests."""


def with_residuals(cause: str, before: FloatArray, after: FloatArray) -> str:
    """Append to a cause by how much it reduces the residual of force or torque.

    `before` and `after` (2,) are the rms residuals of both [N, N m].
    """
    group = int(np.argmax(before / np.maximum(after, 1e-9)))
    unit = ('N', 'N·m')[group]
    return f'{cause} (residual {significant(before[group])} → {significant(after[group])} {unit})'


def gravity(taken: FloatArray, direction: FloatArray, either: bool, std: float) -> str:
    """Report that gravity points in another direction than configured.

    `taken` (3,) is gravity as configured [m/s²], `direction` (3,) a unit vector, both in the root;
    `either`: whether the opposite direction, with a wrench of the other sign, explains as much;
    `std` is that of the angle [rad].
    """
    strength = float(np.linalg.norm(taken))
    angle = float(np.arccos(np.clip(taken @ direction / strength, -1.0, 1.0)))
    said, opposite = (
        ', '.join(f'{x + 0.0:.2f}' for x in along * strength * direction) for along in (1.0, -1.0)
    )
    words = f'gravity is {degrees(angle, std)} off the parameter: set gravity to [{said}]'
    if either and angle > FAR:
        words += f', or to [{opposite}] and wrench_convention to the other'
    return words


def taken_off(mass: float, centre: FloatArray, std: float) -> str:
    """Report a weight without inertia that is missing: its mass, its std [kg], its centre [m]."""
    at = ', '.join(f'{x + 0.0:.3f}' for x in centre)
    return (
        f'the wrench lacks the weight of {mass:.3g} ± {INTERVAL * std:.2g} kg at [{at}] m, whose '
        'inertia is there: if the driver takes off the weight of a payload that is set in it, '
        f'switch that off, or raise driver_payload_mass by {mass:.3g} and set its centre of mass; '
        'a load that a hose or balancer helps to carry cannot be identified'
    )


def added_back(added: float, mass: float, centre: FloatArray, std: float) -> str:
    """Report a weight without inertia that is too much, where that of `added` [kg] is added."""
    at = ', '.join(f'{x + 0.0:.3f}' for x in centre)
    return (
        f'the wrench has the weight of {mass:.3g} ± {INTERVAL * std:.2g} kg at [{at}] m too much, '
        f'whose inertia is not there: {added:.3g} kg are added back, but the driver does not take '
        'them off; set driver_payload_mass to what it does, 0 if it leaves the weight in the '
        'wrench; if apply_payload told it of them, call clear_payload'
    )


def world(turn: FloatArray, std: float) -> str:
    """Report that the wrench is expressed in a frame that does not turn with the sensor.

    `turn` (3, 3) maps from that frame to the root; `std` of the angle [rad].
    """
    away = turned(turn, std)
    frame = f'a frame fixed to the base, {away} against its root,' if away else 'the base frame,'
    return (
        f'the wrench is expressed in {frame} not in the sensor frame: have the driver publish it '
        'in the sensor frame'
    )


def rotated(turn: FloatArray, std: float) -> str:
    """Report a sensor rotated relative to its frame; `turn` (3, 3) maps sensor to frame."""
    return (
        f'the sensor is {turned(turn, std)} against its frame: correct its mounting in the robot '
        'description, or the parameter sensor_frame'
    )


def degrees(angle: float, std: float) -> str:
    """Return an angle [rad] with its 95 % interval in degrees; `std` [rad]."""
    return f'{np.rad2deg(angle):.1f} ± {INTERVAL * np.rad2deg(std):.1f}°'


def turned(turn: FloatArray, std: float) -> str:
    """Report axis and angle of a rotation (3, 3); empty if there is none."""
    nearest = np.round(turn)
    if (
        np.linalg.norm(turn - nearest) < np.sqrt(2.0) * NEARLY
        and abs(np.linalg.det(nearest) - 1.0) < 1e-9
    ):
        turn = nearest
    vector = pinocchio.log3(turn)
    angle = float(np.linalg.norm(vector))
    if angle < 1e-6:
        return ''
    axis = vector / angle
    place = int(np.argmax(np.abs(axis)))
    # By half a turn both senses are the same.
    if angle > np.pi - 1e-9 and axis[place] < 0.0:
        axis = -axis
    if abs(axis[place]) > np.cos(NEARLY):
        about = ('-' if axis[place] < 0.0 else '') + 'xyz'[place]
    else:
        about = '[' + ', '.join(f'{x + 0.0:.2f}' for x in axis) + ']'
    return f'turned by {degrees(angle, std)} about {about}'


def channels(force: FloatArray, torque: FloatArray) -> str:
    """Report which channels are reversed or swapped; matrices (3, 3) map measured to true."""
    said = []
    for letter, turn in (('f', force), ('t', torque)):
        for axis, row in zip('xyz', turn, strict=True):
            place = int(np.argmax(np.abs(row)))
            comes = f'{"-" if row[place] < 0.0 else ""}{letter}{"xyz"[place]}'
            if comes != f'{letter}{axis}':
                said.append(f'{letter}{axis} comes as {comes}')
    return f'axes of the wrench are reversed or swapped: {", ".join(said)}: correct the driver'


def dead(channels: Sequence[str]) -> str:
    """Report channels that do not follow the load as the others do."""
    show = 'shows' if len(channels) == 1 else 'show'
    return (
        f'{" and ".join(channels)} {show} noise alone where the other channels follow the load: '
        'look at sensor, cable and driver, or have the driver publish NaN there'
    )


def rings(frequency: float, rms: FloatArray) -> str:
    """Report ringing at a frequency [Hz] with rms of force and torque (2,) [N, N m]."""
    return (
        f'the wrench rings at {frequency:.1f} Hz, {rms[0]:.2g} N and {rms[1]:.2g} N·m rms: '
        'joints, mounting or load sway behind the encoders, or stamps waver; start and stop more '
        'gently, stiffen them, or look at the stamps'
    )


def place(away: FloatArray, std: float) -> str:
    """Report a sensor that moves as if it were away (3,) from its frame; `std` [m]."""
    said = ', '.join(f'{x + 0.0:.3f}' for x in away)
    return (
        f'the sensor moves as if it were at [{said}] ± {INTERVAL * std:.2g} m in its frame: is '
        'frame_id of the wrench, or sensor_frame, its link, and are all moving joints, those of a '
        'base too, in the robot description?'
    )


def motionless(turning: float) -> str:
    """Report a motion without linear acceleration, for an rms angular one, `turning` [rad/s²]."""
    return (
        'the motion has no linear acceleration: it stays −g while the angular acceleration is '
        f'{turning:.1f} rad/s² rms; let the source of filtered/* send p̈ − g of the sensor in '
        'filtered/accel.linear, or use filter_node'
    )


def no_gravity(found: float, known: float) -> str:
    """Report gravity in a motion that is far from the one that is set [m/s²]."""
    return (
        f'filtered/accel.linear contains gravity of {found:.2f} m/s², not {known:.2f}: have its '
        'source send p̈ − g of the sensor in m/s², as an accelerometer reads it, or use filter_node'
    )


def accelerates(centre: FloatArray) -> str:
    """Report a linear acceleration that the motion lacks; `centre` (3,) of mass by torques [m]."""
    said = ', '.join(f'{1e3 * x:.0f}' for x in centre)
    return (
        f'the forces act at [{said}] mm in the sensor frame, as those of a load do, and do not '
        'follow the motion: something touched the load, or the load swings, as a bag or a liquid '
        'does, or the sensor accelerates, or gravity points, otherwise than described. Is the '
        'base at rest, are all joints and their lengths in the robot description, does the '
        'driver leave the weight in the wrench, and is filtered/accel.linear p̈ − g?'
    )


def apart(distance: float) -> str:
    """Report that forces and torques show centres of mass at a distance [m]."""
    return (
        f'inertia: forces fit a centre of mass {distance:.2f} m from that of the torques, as if '
        'the sensor moved otherwise than described: check frame_id, joints missing in the robot '
        'description, units of torque, or stamps made on arrival'
    )


def units(factor: float, std: float, moved: Sequence[str] = ()) -> str:
    """Report that torques are too large by a factor; `std` is relative [-].

    `moved` as in `_meant`.
    """
    within = max(INTERVAL * std, 0.03)
    return (
        f'torques are {factor:.3g} ± {INTERVAL * std * factor:.2g} times what the forces go '
        f'with{_meant(factor, within, moved)}: have the driver publish N and N·m'
    )


def no_body(factor: float, off: float, moved: Sequence[str] = ()) -> str:
    """Report likewise, where no real body is nearer than `off` standard deviations otherwise."""
    body = f', as the nearest real body is {off:.1f} standard deviations away' if off else ''
    return (
        f'torques are about {significant(factor)} times what the forces go '
        f'with{_meant(factor, WITHIN, moved)}{body}: have the driver publish N and N·m'
    )


def _meant(factor: float, within: float, moved: Sequence[str]) -> str:
    """Return the units that explain a factor, within a logarithm [-]; empty: none.

    `moved`: units that explain it better if the sensor moves otherwise than described.
    """
    if moved:
        return f' (if the sensor moves otherwise than described: {", or ".join(moved)}?)'
    away = {abs(float(np.log(known / factor))): said for known, said in UNITS.items()}
    known = ', or '.join(said for off, said in sorted(away.items()) if off < within)
    return f' ({known}?)' if known else ''


def impossible(mass: float, std: float, why: str, meant: str) -> str:
    """Report a mass [kg] that cannot be, why, and the units `meant` that would explain it."""
    error = INTERVAL * std
    return (
        f'the load would have {mass:.4g} ± {error:.2g} kg{why}: {meant}? The mass is '
        f'{mass / 1000.0:.4g} ± {error / 1000.0:.2g} kg then; have the driver publish N and N·m'
    )
