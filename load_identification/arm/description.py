"""What a robot description says of an arm, and one with other links' inertial parameters."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from xml.etree import ElementTree

import numpy as np
import pinocchio

from load_identification.arm.dynamics.tree import Arm, Placement
from load_identification.errors import DescriptionError, FrameError
from load_identification.model.inertial_parameters import MOMENTS, InertialParameters
from load_identification.model.urdf import parse_description
from load_identification.typing_aliases import FloatArray

LIGHT = 0.05
"""Share of the mass of all moving links that fingers have at most [-]."""


def moving_joints(description: str) -> tuple[str, ...]:
    """Return the names of all joints of a description that move."""
    return tuple(parse_description(description).names)[1:]


def heavy_joints(description: str, joints: Collection[str], arm: Collection[str]) -> list[str]:
    """Return those of some joints that move more than fingers, in the order of the description.

    That is more mass, or joints of the arm.
    """
    model = parse_description(description)
    data = model.createData()
    pinocchio.computeSubtreeMasses(model, data)
    return [
        name
        for name, mass, behind in zip(model.names, data.mass, model.subtrees, strict=True)
        if name in joints
        and (mass > LIGHT * data.mass[0] or any(model.names[k] in arm for k in behind))
    ]


def felt_elsewhere(
    description: str, gravity: FloatArray, joints: Sequence[str], places: Mapping[str, float]
) -> list[str]:
    """Return which places of joints change the weight that others bear: no lift at the base does.

    Places are from zero [rad, m]; those of fingers do not count. `joints` bear the weight, under a
    gravity (3,) [m/s^2].
    """
    model = parse_description(description)
    model.gravity.linear, data = gravity, model.createData()
    bear = [model.joints[model.getJointId(name)].idx_v for name in joints]
    moves = np.random.default_rng(0).uniform(-1.0, 1.0, model.nv)

    def weight(own: int, place: float) -> FloatArray:
        moves[own] = place
        q = pinocchio.integrate(model, pinocchio.neutral(model), moves)
        return np.array(pinocchio.computeGeneralizedGravity(model, data, q)[bear])

    out = []
    for name in heavy_joints(description, places, joints):
        own = model.joints[model.getJointId(name)].idx_v
        both = weight(own, 0.0), weight(own, places[name])
        if not np.allclose(*both, rtol=1e-6, atol=1e-6 * float(np.abs(both[0]).max())):
            out.append(name)
    return out


def with_nominal(arm: Arm, other: str, source: str) -> Arm:
    """Return an arm with the nominal links of another description (URDF), `source` in errors.

    Raises DescriptionError if that has other links.
    """
    try:
        nominal = Arm(other, arm.gravity, arm.joints)
    except DescriptionError as error:
        raise DescriptionError(f'{source}: {error}') from error
    if (nominal.joints, nominal.bodies) != (arm.joints, arm.bodies):
        raise DescriptionError(
            f'{source} has the links {", ".join(nominal.bodies)}; it must have those of the '
            f'description, {", ".join(arm.bodies)}'
        )
    out = copy.copy(arm)
    out.nominal = nominal.nominal
    return out


def sensor_placement(urdf: str, frame: str) -> Placement:
    """Return where a description has the sensor under the arm, a link fixed to the root.

    Raises FrameError if there is no such link; DescriptionError if it moves.
    """
    model = parse_description(urdf)
    if not model.existBodyName(frame):
        raise FrameError(f'the robot description has no link {frame!r} for the sensor')
    where = model.frames[model.getFrameId(frame, pinocchio.FrameType.BODY)]
    if where.parentJoint:
        raise DescriptionError(
            f'{frame!r} is moved by {model.names[where.parentJoint]!r}; a sensor under the arm '
            'stands still'
        )
    return np.array(where.placement.rotation), np.array(where.placement.translation)


def with_bodies(urdf: str, arm: Arm, bodies: FloatArray) -> str:
    """Return a description in which the moving links have other inertial parameters.

    Links fixed to one another count as one: the first gets all, the others lose their inertials.
    What hangs behind a joint that the arm takes for locked keeps its own, and the link before it
    gets the rest. The arm is made from this description or another of the same links, and the
    bodies (J, 10) are as `Arm.nominal`.

    Raises DescriptionError if what the locked links keep leaves no physically consistent body.
    """
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    robot = ElementTree.fromstring(urdf.encode(), parser)
    for element in robot.iter():
        # ROS does not read other origins than the first, and MuJoCo refuses them.
        for repeated in element.findall('origin')[1:]:
            element.remove(repeated)
    links = {str(link.get('name')): link for link in robot.iter('link')}
    for body in arm.bodies:
        for name in _fixed_together(robot, body):
            for inertial in links[name].findall('inertial'):
                links[name].remove(inertial)
    text = ElementTree.tostring(robot, encoding='unicode')
    kept = Arm(text, arm.gravity, arm.joints).nominal
    for name, body, behind in zip(arm.bodies, bodies, kept, strict=True):
        own = InertialParameters.from_vector(body - behind)
        if not own.is_consistent():
            raise DescriptionError(
                f'{name} was identified together with links behind locked joints; less what the '
                f'description has for those, {own.mass:.4g} kg are left that could not be built. '
                'Record all joints, or lock fewer'
            )
        links[name].insert(0, _inertial(own))
    ElementTree.indent(robot)
    return ElementTree.tostring(robot, encoding='unicode', xml_declaration=True) + '\n'


def _fixed_together(robot: ElementTree.Element, link: str) -> list[str]:
    """Return a link and all that hang on it by fixed joints."""
    found = [link]
    for name in found:
        for joint in robot.iterfind('.//joint[@type="fixed"]'):
            parent, child = joint.find('parent'), joint.find('child')
            if parent is not None and child is not None and parent.get('link') == name:
                found.append(str(child.get('link')))
    return found


def _inertial(body: InertialParameters) -> ElementTree.Element:
    """Return the element of a body, about its centre of mass in the axes of the link."""
    inertial = ElementTree.Element('inertial')
    center = ' '.join(repr(float(x)) for x in body.center_of_mass)
    ElementTree.SubElement(inertial, 'origin', xyz=center, rpy='0 0 0')
    ElementTree.SubElement(inertial, 'mass', value=repr(float(body.mass)))
    inertia = body.inertia_about_center_of_mass[np.triu_indices(3)].tolist()
    values = {name: repr(value) for name, value in zip(MOMENTS, inertia, strict=True)}
    ElementTree.SubElement(inertial, 'inertia', values)
    return inertial
