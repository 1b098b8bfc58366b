"""What a robot description says of the joints and links of an arm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio

from load_identification.arm.motion import Joint
from load_identification.errors import DescriptionError
from load_identification.model.robot import check_joints, parse_description


def moving_model(urdf: str, joints: Sequence[str] | None) -> pinocchio.Model:
    """Build Pinocchio's model of the joints that move.

    Parameters
    ----------
    urdf : str
    joints : sequence of str, optional
        Those that move; the others are locked at zero. All by default.

    Raises
    ------
    DescriptionError
        Where the text is no URDF, a moving joint is not revolute, continuous or prismatic or
        mimics another, there is none, or the description lacks one of `joints`.
    """
    whole = parse_description(urdf)
    names = tuple(whole.names)[1:]
    if joints is not None:
        lacking = sorted(set(joints) - set(names))
        if lacking:
            raise DescriptionError(
                f'the robot description has no moving joint {", ".join(lacking)}; it has '
                f'{", ".join(names)}'
            )
        locked = [k for k, name in enumerate(names, start=1) if name not in joints]
        whole = pinocchio.buildReducedModel(whole, locked, pinocchio.neutral(whole))
    moving = tuple(whole.names)[1:]
    if not moving:
        raise DescriptionError('the robot description has no moving joint')
    check_joints(moving, urdf, 'of the arm')
    return whole


def child_link(model: pinocchio.Model, joint: int) -> str:
    """Return the link whose frame is that of a joint: the first that hangs on it."""
    body = pinocchio.FrameType.BODY
    return next(str(f.name) for f in model.frames if f.type == body and f.parentJoint == joint)


def moving_joint(model: pinocchio.Model, joint: int) -> Joint:
    """Read off Pinocchio how a joint moves its link.

    Raises
    ------
    DescriptionError
        For an axis of length zero: Pinocchio takes it, and the joint would move nothing.
    """
    data = model.joints[joint].createData()
    model.joints[joint].calc(data, pinocchio.neutral(model))
    linear, angular = np.array(data.S).reshape(2, 3)
    axis = linear if linear.any() else angular
    if not axis.any():
        raise DescriptionError(
            f'joint {model.names[joint]!r} has the axis 0 0 0: it needs a direction'
        )
    placement = model.jointPlacements[joint]
    return Joint(
        parent=int(model.parents[joint]) - 1,
        prismatic=bool(linear.any()),
        axis=axis,
        rotation=np.array(placement.rotation),
        translation=np.array(placement.translation),
    )
