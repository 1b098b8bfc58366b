"""Arms and samples of motion at random, shared by the tests of whole-arm identification."""

from __future__ import annotations

import numpy as np
import pinocchio

from load_identification.arm.dynamics.rows import JointMotion
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.urdf import configurations
from load_identification.simulation.robots import PinocchioArm
from load_identification.typing_aliases import FloatArray

KINDS = ('revolute', 'continuous', 'prismatic')


def random_body(rng: np.random.Generator) -> InertialParameters:
    """Return a physically consistent body: four points of random mass."""
    points, masses = rng.normal(0.0, 0.2, (4, 3)), rng.uniform(0.2, 1.0, 4)
    center = masses @ points / masses.sum()
    arms = points - center
    inertia = sum(
        m * (a @ a * np.eye(3) - np.outer(a, a)) for m, a in zip(masses, arms, strict=True)
    )
    return InertialParameters.from_center_of_mass(masses.sum(), center, inertia)


def random_urdf(rng: np.random.Generator, joints: int, branches: bool = False) -> str:
    """Write a description with links, axes and placements at random, and fixed links between."""

    def text(values: FloatArray) -> str:
        return ' '.join(repr(float(v)) for v in values)

    def inertial() -> str:
        body = random_body(rng)
        entries = body.inertia_about_center_of_mass[np.triu_indices(3)].tolist()
        names = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
        inertia = ' '.join(f'{n}="{v!r}"' for n, v in zip(names, entries, strict=True))
        return (
            f'<inertial><origin xyz="{text(body.center_of_mass)}"/><mass value="{body.mass!r}"/>'
            f'<inertia {inertia}/></inertial>'
        )

    def joint(name: str, kind: str, parent: str, child: str) -> str:
        origin, turn, axis = rng.normal(0.0, 0.3, 3), rng.uniform(-3.0, 3.0, 3), rng.normal(size=3)
        limit = '<limit lower="-3" upper="3" effort="90" velocity="2"/>'
        return (
            f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{text(origin)}" rpy="{text(turn)}"/><axis xyz="{text(axis)}"/>'
            f'{limit if kind in ("revolute", "prismatic") else ""}</joint>'
            f'<link name="{child}">{inertial()}</link>'
        )

    parts = [f'<link name="root">{inertial()}</link>']
    before = 'root'
    for k in range(joints):
        parent = f'extra_{rng.integers(k)}' if branches and k > 1 else before
        parts.append(joint(f'joint_{k}', KINDS[k % 3], parent, f'link_{k}'))
        parts.append(joint(f'fixed_{k}', 'fixed', f'link_{k}', f'extra_{k}'))
        before = f'extra_{k}'
    return f'<robot name="random">{"".join(parts)}</robot>'


def random_samples(rng: np.random.Generator, joints: int, samples: int = 12) -> JointMotion:
    """Return unconnected samples of motion."""
    q, qd, qdd = rng.normal(0.0, 1.5, (3, samples, joints))
    return q, qd, qdd


def base_wrench(arm: PinocchioArm, motion: JointMotion) -> FloatArray:
    """Return the wrench (n, 6) on the moving links, about and in the root."""
    out = []
    for sample in zip(configurations(arm.model, motion[0]), *motion[1:], strict=True):
        pinocchio.rnea(arm.model, arm.data, *sample)
        pinocchio.forwardKinematics(arm.model, arm.data, sample[0])
        total = pinocchio.Force.Zero()
        for k in range(1, arm.model.njoints):
            if arm.model.parents[k] == 0:
                total += arm.data.oMi[k].act(arm.data.f[k])
        out.append(total.vector.copy())
    return np.array(out)
