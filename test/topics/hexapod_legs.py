"""A hexapod over topics: the states of its legs, its nodes, and what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from exact_hexapod import exact_legs
from ros_group import Group
from ros_messages import NAMESPACE, NS, Message, stamped
from ros_pipeline import Pipeline
from sensor_msgs.msg import JointState

from load_identification.interface.batches import EffortBatch
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.parallel.mechanism import Mechanism
from load_identification.simulation.hexapod import GEOMETRY, GEOMETRY_FILE, PLATFORM

BODY = InertialParameters.from_center_of_mass(31.26, [0.02, -0.01, 0.0], np.diag([0.4, 0.5, 0.8]))
LOAD = BODY - PLATFORM
NOISE = {'force_noise': 1.0, 'torque_noise': 0.2}
"""What is to be expected behind six legs with friction, as docs/hexapod.md says [N, N m]."""
ON_BODY = ('mass', 'com.x', 'com.y', 'com.z', 'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')

SLOWING_NS = 1_300_000_000
"""Time before the end of the motion since which a leg is too slow for a sample to be used [ns]."""


def leg_states(
    body: InertialParameters, begin: float = 0.0, seed: int = 1, noise: float = 1.0
) -> EffortBatch:
    """Return 16 s of leg states: friction of the assumed kind, and the noise of sensors."""
    clean = exact_legs(Mechanism(GEOMETRY), body, duration=16.0, rate=250.0)
    rng = np.random.default_rng(seed)
    friction = 22.0 * np.sign(clean.velocity) + 55.0 * clean.velocity
    stamps = clean.stamps + round(begin * NS)
    effort = clean.effort + friction + noise * rng.standard_normal(clean.effort.shape)
    return EffortBatch(clean.names, stamps, clean.position, clean.velocity, effort)


def messages(legs: EffortBatch, first: int = 0, last: int | None = None) -> list[Message]:
    out = []
    for k in range(len(legs.stamps))[first:last]:
        state = stamped(JointState(), int(legs.stamps[k]))
        state.name = list(legs.names)
        state.position = legs.position[k].tolist()
        state.velocity = legs.velocity[k].tolist()
        state.effort = legs.effort[k].tolist()
        out.append(Message(int(legs.stamps[k]), '/joint_states', state))
    return out


def start(
    group: Group, mechanism: Path = GEOMETRY_FILE, parameters: dict[str, Any] | None = None
) -> tuple[Any, Any]:
    publisher = group.publisher(JointState, '/joint_states')
    node = group.start('hexapod', {'mechanism': str(mechanism)})
    estimator = group.start('estimator', NOISE | (parameters or {}))
    group.wait_for(publisher.get_subscription_count, 'a reader of the joint states')
    group.wait_for(
        lambda: ('estimator_node', NAMESPACE) in group.node.get_node_names_and_namespaces(),
        'the estimator',
    )
    # Between node and estimator, and to whoever records: what is sent before is lost.
    topic = f'{NAMESPACE}/filtered/wrench'
    group.wait_for(
        lambda: (
            group.node.count_publishers(topic)
            and 'estimator_node'
            in {info.node_name for info in group.node.get_subscriptions_info_by_topic(topic)}
        ),
        'the estimator to hear the hexapod node',
    )
    return node, estimator


def hexapod_status(diagnostics: list[DiagnosticArray]) -> Any:
    """Return the last status of the hexapod node."""
    found = [
        status
        for array in diagnostics
        for status in array.status
        if status.name.endswith('hexapod_node')
    ]
    return found[-1] if found else None


def holds(pipeline: Pipeline, body: InertialParameters) -> bool:
    """Tell whether mass and centre of mass are a body's."""
    truth = [body.mass, *body.center_of_mass]
    values = pipeline.numbers(ON_BODY[:4])
    std = pipeline.numbers([f'{key}.std' for key in ON_BODY[:4]])
    # One run: four standard deviations.
    return bool((np.abs(values - truth) <= 4.0 * std).all() and std[0] < 0.5)


def details(diagnostics: list[DiagnosticArray]) -> dict[str, str]:
    """Return keys and values of the hexapod node's last status."""
    status = hexapod_status(diagnostics)
    return {} if status is None else {item.key: item.value for item in status.values}


def written(folder: Path, document: Any) -> Path:
    path = folder / 'bad.yaml'
    path.write_text(yaml.safe_dump(document), encoding='utf-8')
    return path
