"""What a user does with the services in a day's work: no step that a user would not take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from ros_arm import NOTHING, SHORT, Arm, prepared, started
from ros_group import Group
from ros_messages import OFFSET, PAYLOAD
from ros_pipeline import Pipeline

from load_identification.model.inertial_parameters import InertialParameters

PLATE = InertialParameters.from_center_of_mass(
    PAYLOAD.mass, np.array([0.0, 0.01, 0.05]), np.diag([0.004281, 0.002167, 0.002167])
)
"""As heavy as the block."""

GRASP_HEIGHT = 0.03
"""Of the grasp frame above S [m]."""


def catalogue() -> str:
    """Return a catalogue of a block, grasped in a known place, and a plate."""
    block = {
        'name': 'block',
        'mass': PAYLOAD.mass,
        'mass_tolerance': 0.01,
        'principal_moments': PAYLOAD.principal().moments.tolist(),
        'principal_moments_tolerance': 5e-5,
        'center_of_mass': (PAYLOAD.center_of_mass - [0.0, 0.0, GRASP_HEIGHT]).tolist(),
        'center_of_mass_tolerance': 0.005,
    }
    plate = {
        'name': 'plate',
        'mass': PLATE.mass,
        'mass_tolerance': 0.01,
        'principal_moments': PLATE.principal().moments.tolist(),
        'principal_moments_tolerance': 5e-5,
    }
    frame = {'position': [0.0, 0.0, GRASP_HEIGHT], 'orientation': [0.0, 0.0, 0.0]}
    return yaml.safe_dump({'grasp_frame': frame, 'objects': [block, plate]})


@pytest.fixture(scope='module')
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Arm, Pipeline]]:
    """Return an arm and the single process that hears it."""
    path: Path = tmp_path_factory.mktemp('catalogue') / 'catalogue.yaml'
    path.write_text(catalogue())
    with Group() as group:
        prepared(group)
        pipeline, _ = started(group, parameters={'catalogue': str(path)})
        arm = Arm(group)
        arm.ready()
        arm.rest(0.3)
        yield arm, pipeline


def calibrate_as_told(arm: Arm) -> None:
    """Calibrate with nothing held; where a payload is still believed, do what the refusal says."""
    answer = arm.call('calibrate_offset')
    if not answer.success:
        assert 'if nothing is held, call reset and then calibrate_offset' in answer.reason
        arm.call('reset')
        # Long enough for the new offset to be noticed once more: what somebody says counts.
        arm.rest(0.5)
        answer = arm.call('calibrate_offset')
    assert answer.success, answer.says


def emptied(arm: Arm) -> None:
    """Put down whatever is held, and calibrate."""
    arm.body, arm.offset = NOTHING, OFFSET.copy()
    arm.move_to(0)
    arm.rest(0.3)
    calibrate_as_told(arm)


@pytest.mark.parametrize(('name', 'body'), [('block', PAYLOAD), ('plate', PLATE)])
def test_of_two_as_heavy_motion_tells_by_principal_moments_which_is_held(
    live: tuple[Arm, Pipeline], name: str, body: InertialParameters
) -> None:
    arm, pipeline = live
    emptied(arm)
    arm.body = body
    arm.move_to(100)
    arm.rest(0.3)
    at_rest = arm.call('check_mass')
    if name == 'block':
        assert at_rest.says['verdict'] == 'inconclusive'
        assert at_rest.says['object'] is None
        assert 'fits block, plate: its principal moments may tell, move it' in at_rest.reason
        assert at_rest.says['best']['features'] == 1
    arm.run()
    pipeline.settle()
    assert pipeline.status['izz.identified'] == 'true', pipeline.words
    moved = arm.call('check_mass')
    assert moved.success, moved.says
    assert moved.says['object'] == name
    assert moved.says['best']['features'] == 4
    # The other differs by 40 times the tolerance.
    assert moved.says['runner_up']['distance'] > 10.0


def test_what_a_change_may_be_is_on_diagnostics_with_scores(live: tuple[Arm, Pipeline]) -> None:
    arm, pipeline = live
    arm.run(SHORT)
    arm.rest(0.5)
    arm.body = NOTHING
    diagnostics = pipeline.group.record(DiagnosticArray, '/diagnostics')
    arm.rest(1.0)

    def said() -> dict[str, str]:
        of_estimator = [
            status
            for array in diagnostics
            for status in array.status
            if status.name.endswith('/estimator_node')
        ]
        return {item.key: item.value for item in of_estimator[-1].values} if of_estimator else {}

    pipeline.group.wait_for(
        lambda: said().get('score.load', 'nan') != 'nan', 'the score of another load'
    )
    assert said()['change_detection'] == 'changed'
    assert float(said()['nis']) > 1.0
    # At rest another load or another offset: neither is ruled out, no change is.
    assert float(said()['score.load']) < 25.0 < float(said()['score.same'])
    assert float(said()['score.offset']) < 25.0
