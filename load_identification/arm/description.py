"""A robot description with other links' inertial parameters, all else as it was."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from load_identification.arm.arm import Arm
from load_identification.errors import DescriptionError, ParameterError
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.typing_aliases import FloatArray

ENTRIES = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')


def read_description(path: Path) -> str:
    """Read the text of a description.

    Raises
    ------
    ParameterError
        If it cannot be read.
    """
    try:
        return path.read_text(encoding='utf-8')
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, 'strerror', None) or 'it is no text'
        raise ParameterError(f'description {path} cannot be read: {reason}') from error


def with_bodies(urdf: str, arm: Arm, bodies: FloatArray) -> str:
    """Return a description in which the moving links have other inertial parameters.

    Links fixed to one another count as one: the first gets all, the others lose their inertials.
    What hangs behind a joint that the arm takes for locked keeps its own, and the link before it
    gets the rest.

    Parameters
    ----------
    urdf : str
    arm : Arm
        Made from this description, or another of the same links.
    bodies : (J, 10) array
        As `Arm.nominal`.

    Raises
    ------
    DescriptionError
        If what the locked links keep leaves no body that could be built.
    """
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    robot = ElementTree.fromstring(urdf.encode(), parser)
    _drop_repeated_origins(robot)
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


def _drop_repeated_origins(robot: ElementTree.Element) -> None:
    """Keep the first origin of every element: others ROS does not read, and MuJoCo refuses."""
    for element in robot.iter():
        for repeated in element.findall('origin')[1:]:
            element.remove(repeated)


def _fixed_together(robot: ElementTree.Element, link: str) -> list[str]:
    """Return a link and all that hang on it by fixed joints."""
    found = [link]
    for name in found:
        for joint in robot.iter('joint'):
            parent, child = joint.find('parent'), joint.find('child')
            if joint.get('type') != 'fixed' or parent is None or child is None:
                continue
            if parent.get('link') == name:
                found.append(str(child.get('link')))
    return found


def _inertial(body: InertialParameters) -> ElementTree.Element:
    """Return the element of a body, about its centre of mass in the axes of the link."""
    inertial = ElementTree.Element('inertial')
    center = ' '.join(repr(float(x)) for x in body.center_of_mass)
    ElementTree.SubElement(inertial, 'origin', xyz=center, rpy='0 0 0')
    ElementTree.SubElement(inertial, 'mass', value=repr(float(body.mass)))
    inertia = body.inertia_about_center_of_mass[np.triu_indices(3)].tolist()
    values = {name: repr(value) for name, value in zip(ENTRIES, inertia, strict=True)}
    ElementTree.SubElement(inertial, 'inertia', values)
    return inertial
