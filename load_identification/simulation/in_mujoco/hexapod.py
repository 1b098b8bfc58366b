"""A hexapod: six legs with slide joints, closed by equality constraints."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from load_identification.constants import STANDARD_GRAVITY
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.parallel.excitation import OrientationSines
from load_identification.parallel.mechanism import Mechanism
from load_identification.typing_aliases import FloatArray, IntArray

STEP = 5e-4
RATE_DIVISOR = 2
"""Every second step is a sample: 1 kHz."""

STIFFNESS, DAMPING = 1e5, 2e3
"""Stiffness and damping of the leg servos [N/m, N s/m]."""


@dataclass(frozen=True)
class LegFriction:
    """Friction in the legs: Coulomb, viscous, and the excess at low speed.

    Dry friction is at most coulomb(t) + excess exp(-(v / stribeck_speed)²). It holds a leg at
    rest. Viscous friction: viscous v. coulomb(t) = level (1 + swing sin(2 π t / period + phase)).
    """

    level: FloatArray
    excess: FloatArray
    viscous: FloatArray
    phase: FloatArray
    """(6,) [N, N, N s/m, rad]."""
    stribeck_speed: float = 0.015
    swing: float = 0.15
    period: float = 60.0
    """[m/s, -, s]."""

    def coulomb(self, time: float) -> FloatArray:
        """Return the Coulomb levels at a time [s]."""
        return self.level * (
            1.0 + self.swing * np.sin(2.0 * np.pi * time / self.period + self.phase)
        )

    def dry(self, time: float, speed: FloatArray) -> FloatArray:
        """Return the largest dry friction of each leg at a speed, (6,) [N]."""
        return self.coulomb(time) + self.excess * np.exp(-((speed / self.stribeck_speed) ** 2))


@dataclass(frozen=True)
class Run:
    """Motion and forces of the legs, without noise."""

    stamps: IntArray
    """(n,) [ns]."""
    length: FloatArray
    rate: FloatArray
    force: FloatArray
    """Distance between the joints, its rate, and the pushing force of the actuators, (n, 6)
    [m, m/s, N]."""


def simulate(
    mechanism: Mechanism, body: InertialParameters, motion: OrientationSines, friction: LegFriction
) -> Run:
    """Let the servos follow a motion, with friction in the loop."""
    model = mujoco.MjModel.from_xml_string(model_xml(mechanism, body))
    data = mujoco.MjData(model)
    steps = int(motion.duration / STEP)
    pose, platform = motion.sample(np.arange(steps + 1, dtype=np.float64) * STEP)
    target, target_rate, _ = mechanism.leg_motion(pose, platform)
    start = mechanism.lengths(*(part[None] for part in mechanism.home))[0]
    slides = [model.joint(f'slide{k}').qposadr[0] for k in range(6)]
    dofs = np.array([model.joint(f'slide{k}').dofadr[0] for k in range(6)])
    length, rate, force = (np.empty((steps, 6)) for _ in range(3))
    model.dof_damping[dofs] = friction.viscous
    for k in range(steps):
        speed = data.qvel[dofs].copy()
        data.ctrl[:6], data.ctrl[6:] = target[k] - start, target_rate[k]
        model.dof_frictionloss[dofs] = friction.dry(k * STEP, speed)
        # Positions and velocities are those before the step, forces those during it.
        length[k], rate[k] = start + data.qpos[slides], speed
        mujoco.mj_step(model, data)
        # The integrator is implicit in the servo's damping, which thus acts on the new speed.
        force[k] = data.qfrc_actuator[dofs] - DAMPING * (data.qvel[dofs] - speed)
    every = slice(0, None, RATE_DIVISOR)
    stamps = np.round(np.arange(steps)[every] * STEP * 1e9).astype(np.int64) + 1_000_000_000
    return Run(stamps, length[every], rate[every], force[every])


def model_xml(mechanism: Mechanism, body: InertialParameters) -> str:
    """Return the machine at home as MJCF, with the body, given in S, as its platform."""
    geometry = mechanism.geometry
    center, inertia = body.center_of_mass, body.inertia_about_center_of_mass
    full = [inertia[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    legs, closures = [], []
    for k in range(6):
        base, joint = geometry.base[k], geometry.platform[k]
        top = geometry.home + joint
        axis = top - base
        length = float(np.linalg.norm(axis))
        z = axis / length
        x = np.cross([0.0, 1.0, 0.0], z)
        x /= np.linalg.norm(x)
        frame = f'{_text(x)} {_text(np.cross(z, x))}'
        legs.append(f"""
    <body name="cylinder{k}" pos="{_text(base)}" xyaxes="{frame}">
      <joint name="u{k}" type="hinge" axis="1 0 0"/> <joint name="w{k}" type="hinge" axis="0 1 0"/>
      <inertial pos="0 0 0" mass="0.2" diaginertia="1e-3 1e-3 1e-4"/>
      <body name="rod{k}" pos="0 0 {length!r}">
        <joint name="slide{k}" type="slide" axis="0 0 1" frictionloss="1e-9"
          solreffriction="0.002 1" solimpfriction="0.99 0.999 0.001"/>
        <inertial pos="0 0 0" mass="0.2" diaginertia="1e-3 1e-3 1e-4"/>
      </body>
    </body>""")
        closures.append(
            f'<connect body1="rod{k}" body2="platform" anchor="0 0 0" '
            'solref="0.001 1" solimp="0.9999 0.99999 0.001"/>'
        )
    gains = [f'<position joint="slide{k}" kp="{STIFFNESS}"/>' for k in range(6)]
    gains += [f'<velocity joint="slide{k}" kv="{DAMPING}"/>' for k in range(6)]
    return f"""<mujoco>
  <compiler angle="radian" autolimits="true"/>
  <option timestep="{STEP}" integrator="implicitfast" gravity="0 0 -{STANDARD_GRAVITY}"
    iterations="50" tolerance="1e-12"/>
  <worldbody>{''.join(legs)}
    <body name="platform" pos="{_text(geometry.home)}">
      <freejoint/>
      <inertial pos="{_text(center)}" mass="{body.mass!r}" fullinertia="{_text(full)}"/>
    </body>
  </worldbody>
  <equality>{''.join(closures)}</equality>
  <actuator>{''.join(gains)}</actuator>
</mujoco>"""


def _text(numbers: FloatArray | list[float]) -> str:
    return ' '.join(repr(float(x)) for x in numbers)
