"""From joint motion to the motion of the sensor frame."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

import numpy as np
import pinocchio

from load_identification.errors import DescriptionError, FrameError, ParameterError
from load_identification.typing_aliases import FloatArray

JOINT_TYPES = ('revolute', 'continuous', 'prismatic')
"""Moving joints that the chain from the root to the sensor may have, besides fixed ones."""


@dataclass(frozen=True, eq=False)
class FrameMotion:
    """Motion of the sensor frame S for n samples, every vector in S.

    Attributes
    ----------
    linear_velocity : (n, 3) of the origin of S [m/s].
    angular_velocity : (n, 3) omega [rad/s].
    angular_acceleration : (n, 3) alpha [rad/s^2].
    linear_acceleration : (n, 3) p_ddot - g, what an accelerometer at the origin reads [m/s^2].
    gravity : (n, 3) g [m/s^2].
    """

    linear_velocity: FloatArray
    angular_velocity: FloatArray
    angular_acceleration: FloatArray
    linear_acceleration: FloatArray
    gravity: FloatArray


class Robot:
    """Kinematics of the joints between the root of a robot description and a sensor frame.

    Not for use by two threads at a time: it computes in one workspace.

    Attributes
    ----------
    sensor_frame : link of the description whose frame is S.
    gravity : (3,) in the root frame [m/s^2].
    joints : names of the moving joints from root to sensor, the order of every joint vector.
    velocity_limits : (J,) of the joints, infinite where the description has none [rad/s, m/s].
    """

    def __init__(
        self,
        urdf: str,
        sensor_frame: str,
        gravity: Sequence[float] | FloatArray = (0.0, 0.0, -9.80665),
    ) -> None:
        """Read a robot description.

        Parameters
        ----------
        urdf : text of the description.
        sensor_frame : name of a link.
        gravity : (3,) in the root frame of the description [m/s^2].

        Raises
        ------
        DescriptionError : where the text is no URDF or the chain has a joint that is not fixed,
            revolute, continuous or prismatic, or that mimics another.
        FrameError : where the sensor frame is not a link.
        ParameterError : where gravity is not three finite numbers.
        """
        self.sensor_frame = sensor_frame
        self.gravity = np.array(gravity, dtype=np.float64)
        if self.gravity.shape != (3,) or not np.isfinite(self.gravity).all():
            raise ParameterError(f'gravity must be three finite numbers, got {gravity!r}')

        whole = parse_description(urdf)
        chain = _chain(whole, sensor_frame)
        check_joints([whole.names[joint] for joint in chain], urdf)
        others = [joint for joint in range(1, whole.njoints) if joint not in chain]
        self._model = pinocchio.buildReducedModel(whole, others, pinocchio.neutral(whole))
        self._data = self._model.createData()
        self._frame = self._model.getFrameId(sensor_frame, pinocchio.FrameType.BODY)
        self.joints: tuple[str, ...] = tuple(self._model.names)[1:]
        self.velocity_limits: FloatArray = np.array(self._model.velocityLimit)

        # Pinocchio holds a continuous joint's angle as cosine and sine, any other value as is.
        moving = list(self._model.joints)[1:]
        self._index = np.array([joint.idx_q for joint in moving], dtype=np.intp)
        self._continuous = np.flatnonzero([joint.nq == 2 for joint in moving])
        self._cosine = self._index[self._continuous]
        self._check_axes()

    def motion(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FrameMotion:
        """Compute the motion of the sensor frame.

        Parameters
        ----------
        q : (n, J) joint positions, plain angles for continuous joints too [rad, m].
        qd : (n, J) joint velocities [rad/s, m/s].
        qdd : (n, J) joint accelerations [rad/s^2, m/s^2].
        """
        n = len(q)
        velocity, acceleration = np.empty((n, 6)), np.empty((n, 6))
        root_from_sensor = np.empty((n, 3, 3))
        model, data, frame, local = self._model, self._data, self._frame, pinocchio.LOCAL
        samples = zip(self._configurations(q), qd, qdd, strict=True)
        for k, (configuration, sample_qd, sample_qdd) in enumerate(samples):
            pinocchio.forwardKinematics(model, data, configuration, sample_qd, sample_qdd)
            velocity[k] = pinocchio.getFrameVelocity(model, data, frame, local).vector
            acceleration[k] = pinocchio.getFrameClassicalAcceleration(
                model, data, frame, local
            ).vector
            root_from_sensor[k] = pinocchio.updateFramePlacement(model, data, frame).rotation
        gravity = self.gravity @ root_from_sensor
        return FrameMotion(
            linear_velocity=velocity[:, :3],
            angular_velocity=velocity[:, 3:],
            angular_acceleration=acceleration[:, 3:],
            linear_acceleration=acceleration[:, :3] - gravity,
            gravity=gravity,
        )

    def _configurations(self, q: FloatArray) -> FloatArray:
        """Turn joint positions (n, J) into Pinocchio's configurations (n, nq)."""
        if not len(self._continuous):
            return q
        configurations = np.empty((len(q), self._model.nq))
        configurations[:, self._index] = q
        angles = q[:, self._continuous]
        configurations[:, self._cosine] = np.cos(angles)
        configurations[:, self._cosine + 1] = np.sin(angles)
        return configurations

    def _check_axes(self) -> None:
        """Refuse an axis of length zero: Pinocchio takes it, and the joint would move nothing."""
        neutral = pinocchio.neutral(self._model)
        jacobian = pinocchio.computeJointJacobians(self._model, self._data, neutral)
        # Reshaped, for the binding gives a matrix of one column as a vector.
        columns = jacobian.reshape(6, len(self.joints)).T
        for joint, column in zip(self.joints, columns, strict=True):
            if not column.any():
                raise DescriptionError(f'joint {joint!r} has the axis 0 0 0: it needs a direction')


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
    with _captured_stderr() as read_stderr:
        try:
            return pinocchio.buildModelFromXML(urdf)
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
    with tempfile.TemporaryFile() as file:

        def read() -> str:
            file.seek(0)
            return file.read().decode(errors='replace')

        os.dup2(file.fileno(), 2)
        try:
            yield read
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def _chain(model: pinocchio.Model, sensor_frame: str) -> list[int]:
    """Return the joints that move a link, from the root on."""
    if not model.existFrame(sensor_frame, pinocchio.FrameType.BODY):
        links = [frame.name for frame in model.frames if frame.type == pinocchio.FrameType.BODY]
        close = difflib.get_close_matches(sensor_frame, links, n=5, cutoff=0.5)
        hint = f'close to it: {close}' if close else f'its links: {links}'
        raise FrameError(
            f'sensor frame {sensor_frame!r} is not a link of the robot description; {hint}'
        )
    frame = model.frames[model.getFrameId(sensor_frame, pinocchio.FrameType.BODY)]
    return list(model.supports[frame.parentJoint])[1:]  # the first is the universe


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
    elements = {element.get('name'): element for element in _parse_xml(urdf).findall('joint')}
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


def _parse_xml(urdf: str) -> ElementTree.Element:
    """Parse XML as leniently as urdfdom does.

    It takes undeclared prefixes, double hyphens in comments and blank lines before the
    declaration; all stand in descriptions in use.
    """
    builder = ElementTree.TreeBuilder()
    parser = expat.ParserCreate()  # unlike ElementTree's own, this one knows no namespaces
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    try:
        parser.Parse(re.sub('<!--.*?-->', '', urdf, flags=re.DOTALL).strip(), True)
    except expat.ExpatError as error:
        raise DescriptionError(f'robot description is not well-formed XML: {error}') from error
    return builder.close()


def link_names(urdf: str) -> tuple[str, ...]:
    """Return the names of the links of a robot description.

    Raises
    ------
    DescriptionError : where the text is no XML.
    """
    return tuple(element.get('name', '') for element in _parse_xml(urdf).findall('link'))


def with_fixed_link(
    urdf: str, parent: str, link: str, rotation: FloatArray, translation: Sequence[float]
) -> str:
    """Return a robot description with one more link, fixed to one it has.

    Parameters
    ----------
    urdf : text of the description.
    parent : name of the link it has.
    link : name of the new one.
    rotation : (3, 3) from the new link to its parent.
    translation : (3,) origin of the new link in its parent [m].
    """
    xyz = ' '.join(repr(float(x)) for x in translation)
    rpy = ' '.join(repr(float(x)) for x in pinocchio.rpy.matrixToRpy(rotation))
    joint = quoteattr(f'{parent}_to_{link}')
    addition = (
        f'<link name={quoteattr(link)}/><joint name={joint} type="fixed">'
        f'<parent link={quoteattr(parent)}/><child link={quoteattr(link)}/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/></joint>'
    )
    body, end, rest = urdf.rpartition('</robot')
    return body + addition + end + rest
