"""An arm with a driver, what the driver is told, and what is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from ros_arm import prepared, started
from ros_driver import ROTATION, TRANSLATION, DriverArm, described
from ros_group import Group
from ros_messages import PAYLOAD
from ros_pipeline import Pipeline

from load_identification.model.inertial_parameters import InertialParameters

AT_FLANGE = PAYLOAD.transformed(ROTATION, TRANSLATION)


def arm_of(
    group: Group, service_type: Any, service: str, flange: str, **parameters: Any
) -> tuple[DriverArm, Pipeline]:
    """Start the nodes, and an arm whose driver takes off what it is told."""
    prepared(group)
    group.describe(described(flange))
    pipeline, _ = started(group, parameters=parameters)
    arm = DriverArm(group, service_type, service)
    arm.ready()
    return arm, pipeline


def loaded(arm: DriverArm) -> None:
    """Hold the block until all of it is identified."""
    arm.body = PAYLOAD
    arm.call_in_silence('reset')
    arm.run()
    assert arm.group.pipelines[0].status['izz.identified'] == 'true'


def tells(values: Mapping[str, Any], body: InertialParameters) -> None:
    """Check a request against a body in the frame of the flange."""
    inertia = values.get('payload', values)
    mass = inertia['m'] if 'm' in inertia else inertia['mass']
    center = next(inertia[name] for name in ('com', 'center_of_gravity', 'center_of_mass')
                  if name in inertia)  # fmt: skip
    if isinstance(center, Mapping):
        center = [center[axis] for axis in 'xyz']
    assert mass == pytest.approx(body.mass, abs=0.01)
    np.testing.assert_allclose(center, body.center_of_mass, atol=0.003)
    if 'ixx' in inertia:
        names = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
        moments = body.inertia_about_center_of_mass[np.triu_indices(3)]
        np.testing.assert_allclose([inertia[name] for name in names], moments, atol=1e-3)
    if 'load_inertia' in inertia:
        np.testing.assert_allclose(
            inertia['load_inertia'], body.inertia_about_center_of_mass.ravel(), atol=1e-3
        )


def right(pipeline: Pipeline, body: InertialParameters = PAYLOAD) -> None:
    """Check that the mass is identified and right."""
    pipeline.settle()
    assert pipeline.status['mass.identified'] == 'true', pipeline.words
    assert abs(pipeline.number('mass') - body.mass) < 4.0 * pipeline.number('mass.std') < 0.1
