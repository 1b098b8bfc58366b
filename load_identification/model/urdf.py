"""Read robot descriptions by Pinocchio, with its reasons for refusal, and as XML."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np
import pinocchio

from load_identification.errors import DescriptionError
from load_identification.typing_aliases import BoolArray, FloatArray

JOINT_TYPES = ('revolute', 'continuous', 'prismatic')
"""Moving joint types allowed in the chain from the root to the sensor, besides fixed joints."""

MOST_CHARACTERS, MOST_LINKS = 5_000_000, 1000
"""A larger description is refused before it is parsed: Pinocchio overflows its stack on a chain
of some thousands of links."""

PIPE = 65536
"""Capacity of a pipe [bytes]."""


def parse_description(urdf: str) -> pinocchio.Model:
    """Build Pinocchio's model of the whole description.

    Raises DescriptionError if the text is not a URDF.
    """
    links = urdf.count('<link')
    if len(urdf) > MOST_CHARACTERS or links > MOST_LINKS:
        raise DescriptionError(
            f'robot description of {len(urdf)} characters and {links} links: '
            f'{MOST_CHARACTERS} and {MOST_LINKS} at most are no mistake'
        )
    with _captured_stderr() as read_stderr:
        try:
            model = pinocchio.buildModelFromXML(urdf)
            # Stricter than Pinocchio: links and joints must be found in the XML later.
            parse_xml(urdf)
            return model
        except (ValueError, RuntimeError) as error:
            # The parser prints the reason; the exception states only the failure.
            reasons = re.findall(r'Error:\s*(.*)', read_stderr()) or [str(error)]
    raise DescriptionError(
        f'robot description of {len(urdf)} characters is no valid URDF: {"; ".join(reasons)}'
    )


@contextlib.contextmanager
def _captured_stderr() -> Iterator[Callable[[], str]]:
    """Keep standard error of C++ code off the terminal; yield the function that reads it.

    The descriptor belongs to the whole process, so use this only at start-up.
    """
    saved = os.dup(2)
    # A pipe, not a file: the disk may be full. Output beyond the pipe's capacity is lost.
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)

    def read() -> str:
        try:
            return os.read(reading, PIPE).decode(errors='replace')
        except BlockingIOError:
            return ''

    os.dup2(writing, 2)
    try:
        yield read
    finally:
        os.dup2(saved, 2)
        for end in (saved, reading, writing):
            os.close(end)


def check_joints(
    joints: Sequence[str],
    urdf: str,
    where: str = 'between root and sensor frame',
    locked: Sequence[str] = (),
) -> None:
    """Refuse joints that a single position does not describe.

    Parameters
    ----------
    joints : names of moving joints of the description.
    urdf : text of the description.
    where : common property of the joints, for the message.
    locked : those of the joints that may have any axis, because they stand still.

    Raises DescriptionError if a joint is not revolute, continuous or prismatic, mimics another, or
    has the axis 0 0 0.
    """
    elements = {element.get('name'): element for element in parse_xml(urdf).findall('joint')}
    for joint in joints:
        kind = elements[joint].get('type')
        if kind not in JOINT_TYPES:
            raise DescriptionError(
                f'joint {joint!r} {where} is of type {kind!r}, allowed are '
                f'fixed, {", ".join(JOINT_TYPES)}; if it stands still, as the base of a mobile '
                'robot may, make it fixed in the description'
            )
        mimic = elements[joint].find('mimic')
        if mimic is not None:
            raise DescriptionError(
                f'joint {joint!r} {where} mimics {mimic.get("joint")!r}: '
                'only joints that move on their own are allowed there'
            )
        axis = elements[joint].find('axis')
        # Pinocchio accepts it, and the joint would move nothing.
        zero = axis is not None and not any(map(float, axis.get('xyz', '').split()))
        if zero and joint not in locked:
            raise DescriptionError(f'joint {joint!r} has the axis 0 0 0: it needs a direction')


def ranges(model: pinocchio.Model) -> tuple[BoolArray, FloatArray]:
    """Return which joints slide, (J,), and the position limits of all, (2, J) [rad, m].

    They are lower and upper, infinite for a continuous joint.
    """
    joints = list(model.joints)[1:]
    slides = [joint.shortname().startswith('JointModelP') for joint in joints]
    index = np.array([joint.idx_q for joint in joints], dtype=np.intp)
    limits = np.array([model.lowerPositionLimit[index], model.upperPositionLimit[index]])
    limits[:, [joint.nq == 2 for joint in joints]] = [[-np.inf], [np.inf]]
    return np.array(slides, dtype=bool), limits


def parse_xml(urdf: str) -> ElementTree.Element:
    """Parse the XML of a robot description as leniently as urdfdom does.

    It accepts undeclared prefixes, double hyphens in comments, ampersands that begin no entity,
    and blank lines before the declaration; all occur in descriptions in use.
    """
    builder = ElementTree.TreeBuilder()
    parser = expat.ParserCreate()  # knows no namespaces, unlike ElementTree's own
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    try:
        text = re.sub('<!--.*?-->', '', urdf, flags=re.DOTALL).strip()
        parser.Parse(re.sub(r'&(?!#?\w+;)', '&amp;', text), True)
    except (expat.ExpatError, ValueError) as error:
        raise DescriptionError(f'robot description is not well-formed XML: {error}') from error
    return builder.close()


def configurations(model: pinocchio.Model, q: FloatArray) -> FloatArray:
    """Convert joint positions (n, J) to Pinocchio's configurations (n, nq).

    A configuration holds a continuous joint's angle as cosine and sine, other values unchanged.
    """
    if model.nq == model.nv:
        return q
    out = np.empty((len(q), model.nq))
    for values, joint in zip(q.T, list(model.joints)[1:], strict=True):
        if joint.nq == 2:
            out[:, joint.idx_q], out[:, joint.idx_q + 1] = np.cos(values), np.sin(values)
        else:
            out[:, joint.idx_q] = values
    return out
