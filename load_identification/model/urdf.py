"""Reads robot descriptions: by Pinocchio, with its reasons, and as XML."""

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
from load_identification.typing_aliases import FloatArray

JOINT_TYPES = ('revolute', 'continuous', 'prismatic')
"""Moving joints that the chain from the root to the sensor may have, besides fixed ones."""

MOST_CHARACTERS, MOST_LINKS = 5_000_000, 1000
"""A larger description is refused before it is parsed: Pinocchio overflows its stack on a chain
of some thousands of links."""

PIPE = 65536
"""What a pipe holds [bytes]."""


def check_description(urdf: str) -> None:
    """Check that a text is a robot description, whichever its sensor frame will be.

    Raises
    ------
    DescriptionError : where it is not.
    """
    parse_description(urdf)


def parse_description(urdf: str) -> pinocchio.Model:
    """Build Pinocchio's model of the whole description.

    Raises
    ------
    DescriptionError : where the text is no URDF.
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
            # Stricter: whoever asks for links or joints later is to find them.
            parse_xml(urdf)
            return model
        except (ValueError, RuntimeError) as error:
            # The reason is printed by the parser and only the fact raised.
            reasons = re.findall(r'Error:\s*(.*)', read_stderr()) or [str(error)]
    raise DescriptionError(
        f'robot description of {len(urdf)} characters is no valid URDF: {"; ".join(reasons)}'
    )


@contextlib.contextmanager
def _captured_stderr() -> Iterator[Callable[[], str]]:
    """Keep off the terminal what C++ code writes to standard error; the function yielded reads it.

    The descriptor belongs to the whole process, so this is for start-up only.
    """
    saved = os.dup(2)
    # No file: the disk may be full. What is more than the pipe holds is lost.
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
    joints: Sequence[str], urdf: str, where: str = 'between root and sensor frame'
) -> None:
    """Refuse joints that one joint position does not describe.

    Parameters
    ----------
    joints : names of joints of the description that are not fixed.
    urdf : text of the description.
    where : what the joints have in common, for the message.

    Raises
    ------
    DescriptionError : where one is not revolute, continuous or prismatic, or mimics another.
    """
    elements = {element.get('name'): element for element in parse_xml(urdf).findall('joint')}
    for joint in joints:
        kind = elements[joint].get('type')
        if kind not in JOINT_TYPES:
            raise DescriptionError(
                f'joint {joint!r} {where} is of type {kind!r}, allowed are '
                f'fixed, {", ".join(JOINT_TYPES)}'
            )
        mimic = elements[joint].find('mimic')
        if mimic is not None:
            raise DescriptionError(
                f'joint {joint!r} {where} mimics {mimic.get("joint")!r}: '
                'only joints that move on their own are allowed there'
            )


def parse_xml(urdf: str) -> ElementTree.Element:
    """Parse the XML of a robot description as leniently as urdfdom does.

    It takes undeclared prefixes, double hyphens in comments, ampersands that begin no entity and
    blank lines before the declaration; all stand in descriptions in use.
    """
    builder = ElementTree.TreeBuilder()
    parser = expat.ParserCreate()  # unlike ElementTree's own, this one knows no namespaces
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    try:
        text = re.sub('<!--.*?-->', '', urdf, flags=re.DOTALL).strip()
        parser.Parse(re.sub(r'&(?!#?\w+;)', '&amp;', text), True)
    except (expat.ExpatError, ValueError) as error:
        raise DescriptionError(f'robot description is not well-formed XML: {error}') from error
    return builder.close()


def configurations(model: pinocchio.Model, q: FloatArray) -> FloatArray:
    """Turn joint positions (n, J) into Pinocchio's configurations (n, nq).

    It holds a continuous joint's angle as cosine and sine, any other value as is.
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
