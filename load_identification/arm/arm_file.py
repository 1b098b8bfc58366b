"""Read and write the arm model file: an identified arm, its drives and their covariance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.dynamics.transmission import Transmission, transmission_of
from load_identification.arm.dynamics.tree import PARAMETERS, Arm, parameter_names
from load_identification.errors import ParameterError
from load_identification.interface.files import (
    LARGEST,
    check_covariance,
    field,
    line,
    named,
    number,
    numbers,
    read_yaml,
    rounded,
    vector,
)
from load_identification.interface.output import write_output
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.typing_aliases import FloatArray

VERSION = 2

HEADER = """\
# An identified arm, as identify_arm writes it. SI units. Parameters of a link are about the origin
# and in the axes of its frame, that of the joint which moves it. The covariance is of predictions:
# all of it lies with the parameters kept of each combination (see docs/identifying_an_arm.md).
"""

ROUNDING = 1e-6
"""Error of a covariance that is left to rounding, as correlations [-]."""


@dataclass(frozen=True, eq=False)
class IdentifiedArm:
    """An arm as identified from a recording; its kinematics stay in the robot description."""

    joints: tuple[str, ...]
    """Names of the J joints, in the order of `Arm.joints`."""
    links: tuple[str, ...]
    """The link that each joint moves, as `Arm.bodies`."""
    gravity: FloatArray
    """Gravity in the root frame of the description, (3,) [m/s^2]."""
    drive: DriveModel
    """The k effects modelled of each drive."""
    parameters: FloatArray
    """Parameters of each link in the package's order, all physically consistent, (J, 10)."""
    drives: FloatArray
    """Columns as `drive.terms`, such as coulomb+, coulomb-, viscous, rotor_inertia, offset,
    (J, k)."""
    noise: FloatArray
    """Standard deviation of each joint's residuals behind the filter, (J,) [N m, N]."""
    slow: FloatArray
    """Standard deviation of the slow error of each joint's torque, see `slow_errors`, (J,)
    [N m, N]; 0: none."""
    cutoff: float
    """-3 dB frequency of the filter applied to motion and efforts [Hz]."""
    covariance: FloatArray
    """Of `values`, P = (10 + k) J, as far as torques determine them, (P + J, P + J): ``Y
    covariance Y^T`` is that of predicted torques. The parameter kept of a combination carries all
    of its covariance. The difference between estimate and physically consistent links is included.
    The last J rows are of `effort_scale`, zero where that was given."""
    velocities: bool
    """Whether published joint velocities are used, or positions alone."""
    effort_scale: FloatArray
    """Torque or force per unit of the published effort, such as N m per ampere, (J,)."""
    transmission: Transmission | None = None
    """Present if joints are coupled; efforts, drives and noise then refer to motors."""

    def __post_init__(self) -> None:
        if not 0.0 < self.cutoff < np.inf:
            raise ParameterError(f'cutoff is {self.cutoff}; it must be above 0 Hz')
        each = zip(self.joints, self.noise, self.effort_scale, self.slow, strict=True)
        for joint, noise, scale, slow in each:
            if not noise > 0.0:
                raise ParameterError(f'noise of {joint} is {noise}; it must be above 0')
            if scale == 0.0:
                raise ParameterError(f'effort_scale of {joint} is 0; it must be another number')
            if slow < 0.0:
                raise ParameterError(f'slow_error of {joint} is {slow}; it must not be below 0')
        if self.level('load_friction').max() >= 1.0:
            raise ParameterError('load_friction of a joint is 1 or more: it could not move')
        for link, body in zip(self.links, self.parameters, strict=True):
            if not InertialParameters.from_vector(body).is_consistent():
                raise ParameterError(f'parameters of {link} are of no physically consistent body')
        check_covariance(self.covariance, 'covariance', ROUNDING)
        if self.transmission is not None:
            self.transmission.over(self.joints)

    @property
    def values(self) -> FloatArray:
        """Parameters of links and drives, (P,), as `ArmModel.names` of the arm and `drive`."""
        return np.concatenate([self.parameters.ravel(), self.drives.ravel()])

    def level(self, *terms: str) -> FloatArray:
        """Return the largest of some terms of each drive, (J,); 0 where it has none of them."""
        own = [k for k, name in enumerate(self.drive.terms) if name in terms]
        return np.asarray(self.drives[:, own].max(axis=1, initial=0.0))

    def model(self, urdf: str) -> ArmModel:
        """Return the arm's model for a robot description; use it as `predict(values, motion)`.

        Raises DescriptionError if the description lacks a joint; ParameterError if a joint moves
        another link in the description than in the file.
        """
        arm = Arm(urdf, self.gravity, self.joints)
        if (arm.joints, arm.bodies) != (self.joints, self.links):
            raise ParameterError(
                f'the arm model is of joints {", ".join(self.joints)} that move '
                f'{", ".join(self.links)}; in the robot description {", ".join(arm.joints)} move '
                f'{", ".join(arm.bodies)}'
            )
        return ArmModel(arm, self.drive, self.transmission, self.parameters.ravel())


def write_arm_model(path: Path, arm: IdentifiedArm) -> None:
    """Write an identified arm as human-readable YAML.

    Raises ParameterError if the file cannot be written.
    """
    fields = asdict(arm.drive)
    determined = np.flatnonzero(np.diag(arm.covariance) > 0.0)
    names = _names(arm.joints, arm.links, arm.drive)
    sections = [
        _block({'version': VERSION, 'gravity': numbers(arm.gravity), 'cutoff': arm.cutoff}),
        _block({'velocities': arm.velocities}),
        _block({'drive': fields}),
        _block({'transmission': arm.transmission.fields}) if arm.transmission else '',
        'joints:\n',
        *(f'- {line(_joint(arm, j))}\n' for j in range(len(arm.joints))),
        'covariance:\n',
        f'  parameters: {line([names[i] for i in determined])}\n',
        '  matrix:\n',
        *(f'  - {line(numbers(arm.covariance[i, determined]))}\n' for i in determined),
    ]
    if not len(determined):
        sections[-1] = '  matrix: []\n'
    write_output('arm model', path, HEADER + ''.join(sections))


def read_arm_model(path: Path) -> IdentifiedArm:
    """Read an identified arm.

    Raises ParameterError if the file cannot be read, or a field is missing or invalid; it names
    file and field.
    """
    with named(f'arm model {path}'):
        return _identified_arm(read_yaml(path))


def _identified_arm(content: Any) -> IdentifiedArm:
    """Return the arm described by the content of a file."""
    if not isinstance(content, Mapping) or 'version' not in content:
        raise ParameterError('field version is missing: is this a file of identify_arm --model?')
    version = content['version']
    if version != VERSION:
        raise ParameterError(
            f'version is {version!r}; this program reads {VERSION}: identify the arm again'
        )
    drive = _drive(field(content, 'drive'))
    joints = field(content, 'joints')
    if not isinstance(joints, list) or not joints:
        raise ParameterError(f'joints is {joints!r}; it must be a list')
    names = [str(field(j, 'name', f'joints[{i}].')) for i, j in enumerate(joints)]
    if len(set(names)) < len(names):
        raise ParameterError(f'joints are {", ".join(names)}; each must be there once')
    rows = list(zip(joints, names, strict=True))
    links = [str(field(j, 'link', f'{n}.')) for j, n in rows]
    noise, scale = np.array([_by_name(j, f'{n}.', ('noise', 'effort_scale')) for j, n in rows]).T
    # Older files lack it: on real arms, most of what they call noise is slow.
    slow = [
        number(joint.get('slow_error', usual), f'{name}.slow_error')
        for (joint, name), usual in zip(rows, noise.tolist(), strict=True)
    ]
    bodies, drives = (
        [_by_name(field(j, part, f'{n}.'), f'{n}.{part}.', terms) for j, n in rows]
        for part, terms in (('parameters', PARAMETERS), ('drive', drive.terms))
    )
    order, coupled = _names(names, links, drive), content.get('transmission')
    return IdentifiedArm(
        joints=tuple(names),
        links=tuple(links),
        gravity=vector(field(content, 'gravity'), 'gravity', 3),
        drive=drive,
        parameters=np.array(bodies),
        drives=np.array(drives).reshape(len(names), len(drive.terms)),
        noise=noise,
        slow=np.array(slow),
        cutoff=number(field(content, 'cutoff'), 'cutoff'),
        covariance=_covariance(field(content, 'covariance'), order),
        velocities=_switch(content, 'velocities'),
        effort_scale=scale,
        transmission=transmission_of(coupled) if coupled is not None else None,
    )


def _names(joints: Sequence[str], links: Sequence[str], drive: DriveModel) -> tuple[str, ...]:
    """Return the names of a covariance's rows: links, drives, scales of the efforts."""
    scales = (f'{joint}.effort_scale' for joint in joints)
    return (*parameter_names(links), *drive.names(joints), *scales)


def _joint(arm: IdentifiedArm, j: int) -> dict[str, Any]:
    return {
        'name': arm.joints[j],
        'link': arm.links[j],
        'effort_scale': float(arm.effort_scale[j]),
        'noise': rounded(arm.noise[j]),
        'slow_error': rounded(arm.slow[j]),
        'parameters': dict(zip(PARAMETERS, map(float, arm.parameters[j]), strict=True)),
        'drive': dict(zip(arm.drive.terms, numbers(arm.drives[j]), strict=True)),
    }


def _drive(fields: Any) -> DriveModel:
    """Return the drive model, which checks its friction shapes itself."""
    coulomb, viscous = (str(field(fields, name, 'drive.')) for name in ('coulomb', 'viscous'))
    # Older files lack these.
    fields = {'stribeck_velocity': 0.0, 'load_friction': False, **fields}
    transition, stribeck = _by_name(fields, 'drive.', ('transition_velocity', 'stribeck_velocity'))
    names = ('rotor_inertia', 'stiffness', 'offset', 'load_friction')
    return DriveModel(
        coulomb,
        viscous,
        transition_velocity=transition,
        stribeck_velocity=stribeck,
        **{name: _switch(fields, name, 'drive.') for name in names},
    )


def _switch(fields: Any, name: str, where: str = '') -> bool:
    """Return a boolean field."""
    value = field(fields, name, where)
    if not isinstance(value, bool):
        raise ParameterError(f'{where}{name} is {value!r}; it must be true or false')
    return value


def _covariance(fields: Any, names: Sequence[str]) -> FloatArray:
    """Return the covariance of all parameters, zero for those that the file does not name."""
    determined = field(fields, 'parameters', 'covariance.')
    if not isinstance(determined, list) or len({*map(str, determined)}) < len(determined):
        raise ParameterError('covariance.parameters must be a list of names, each once')
    strange = [str(name) for name in determined if name not in names]
    if strange:
        raise ParameterError(
            f'covariance.parameters has {", ".join(strange)}; that is of no joint of the file'
        )
    rows = field(fields, 'matrix', 'covariance.')
    if not isinstance(rows, list) or len(rows) != len(determined):
        raise ParameterError(f'covariance.matrix must have {len(determined)} rows, as parameters')
    places = [names.index(name) for name in determined]
    covariance = np.zeros((len(names), len(names)))
    for i, (place, row) in enumerate(zip(places, rows, strict=True)):
        covariance[place, places] = vector(
            row, f'covariance.matrix[{i}]', len(determined), -(LARGEST**2), LARGEST**2
        )
    return covariance


def _by_name(section: Any, where: str, names: Sequence[str]) -> list[float]:
    """Return some numbers of a section of the file, with the path `where`."""
    return [number(field(section, name, where), f'{where}{name}') for name in names]


def _block(fields: Mapping[str, Any]) -> str:
    return ''.join(f'{name}: {line(value)}\n' for name, value in fields.items())
