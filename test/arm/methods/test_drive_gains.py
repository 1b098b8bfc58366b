"""Drive gains by `identify_arm --loaded`, from recordings of currents to a payload weighed."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pinocchio
import pytest
from bags import Command, description, states, write
from joint_weighing import weighed

from load_identification.arm.arm_file import read_arm_model
from load_identification.arm.description import moving_joints
from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.dynamics.tree import Arm
from load_identification.arm.filtering import filtered
from load_identification.arm.identification import identify_and_test
from load_identification.arm.methods.drive_gains import Loaded
from load_identification.arm.recording import Recording
from load_identification.arm.settings import Settings
from load_identification.interface.batches import EffortBatch
from load_identification.interface.program import DONE, NOT_DONE, UNUSABLE
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.recordings.arm import read_efforts
from load_identification.recordings.reader import Topics, open_recording
from load_identification.simulation.robots import SEVEN_JOINTS
from load_identification.simulation.weighing_arm import FRAME, JOINTS, PAYLOAD, run
from load_identification.typing_aliases import FloatArray

GAINS = np.array([11.0, 9.0, -8.0, 7.0, 4.0, 3.0, 2.5])
"""[N m per ampere]."""
KNOWN = InertialParameters.from_center_of_mass(
    3.0, np.array([0.05, -0.03, 0.07]), 0.012 * np.eye(3)
)
"""Its mass is told, the rest is not."""


def currents(seconds: float, seed: int, load: InertialParameters | None = None) -> EffortBatch:
    joints = run(seconds, seed, load, 125.0, 1.0 + 0.05 * seed).measured(seed)
    return replace(joints, effort=joints.effort / GAINS)


@dataclass(frozen=True)
class Recordings:
    """Without a load and with one; friction differs by 5 %."""

    empty: Path
    loaded: Path
    model: Path


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    folder, first = tmp_path_factory.mktemp('gains'), description(SEVEN_JOINTS.urdf)
    return Recordings(
        write(folder / 'empty', [first, *states(currents(24.0, 0))]),
        write(folder / 'loaded', [first, *states(currents(24.0, 1, KNOWN))]),
        folder / 'arm.yaml',
    )


def load_in_link(load: InertialParameters) -> FloatArray:
    """Return the centre of mass of a load at the frame that weighs, in the last link's [m]."""
    model = pinocchio.buildModelFromXML(SEVEN_JOINTS.urdf)
    placement = model.frames[model.getFrameId(FRAME)].placement
    return np.asarray(placement.act(load.center_of_mass))


@pytest.mark.usefixtures('unchosen')
def test_currents_weigh_a_load_by_gains_that_another_has_told(
    bags: Recordings, command: Command
) -> None:
    options = ('--loaded', bags.loaded, '--load-mass', 3.0, '--cutoff', 10, '--model', bags.model)
    status, out, _ = command(bags.empty, *options)
    assert status == DONE
    assert ', 24.0 s with 3 kg' in out
    # The load that the fit has found besides, about the axes of the last link.
    (center,) = re.findall('3 kg as given; its centre of mass in left_link_7: (.*) m', out)
    found_at = np.array([[float(x) for x in each.split(' ± ')] for each in center.split(', ')])
    where = load_in_link(KNOWN)
    assert np.all(np.abs(found_at[:, 0] - where) < 1.6 * found_at[:, 1] + 1e-4)
    arm = read_arm_model(bags.model)
    rows = [
        re.search(rf'^ ?{joint} +(-?[\d.]+) +([\d.]+) +([\d.e-]+) +N·m per unit', out, re.M)
        for joint in JOINTS
    ]
    printed = np.array([[float(x) for x in row.groups()] for row in rows if row is not None])
    np.testing.assert_allclose(printed[:, 0], arm.effort_scale, rtol=1e-3)
    std = np.sqrt(np.diag(arm.covariance)[-7:])
    np.testing.assert_allclose(printed[:, 1], 1.96 * std, rtol=0.06)  # two digits are printed
    assert np.all(np.abs(arm.effort_scale - GAINS) < 3.0 * std)
    # 0.1 N m in each sample, of 0.8 N m at the last joint and 6 to 30 at the others.
    assert np.all(std < [*[0.002 * abs(g) for g in GAINS[:6]], 0.006 * GAINS[6]])
    joints = currents(15.0, 2, PAYLOAD)
    found = weighed(arm, joints, exact_gains=False)
    assert found.identified[0]
    # Friction differs by 10 % from that of the identification; at 5 % of the mass it ends.
    assert found.values[0] == pytest.approx(PAYLOAD.mass, rel=0.05)
    certain = arm.covariance.copy()
    certain[-7:], certain[:, -7:] = 0.0, 0.0
    unsure = weighed(replace(arm, covariance=certain), joints, exact_gains=False)
    # Gains and links that were told by them are off together: less than if either were alone.
    assert found.std[0] != pytest.approx(unsure.std[0])


def test_slow_errors_are_those_under_the_load_where_these_are_larger() -> None:
    size = np.linspace(0.2, 0.5, 7)
    with_load = run(24.0, 1, KNOWN, 125.0)
    logs = []
    for seed, own in ((0, run(24.0, 0, None, 125.0)), (1, with_load.wandering(5, size))):
        j = own.measured(seed)
        signal = j.effort / GAINS
        logs.append(Recording.held('it', j.names, j.stamps, j.position, j.velocity, signal))
    drive = DriveModel('symmetric', 'symmetric', offset=True)
    session = identify_and_test(
        ArmModel(Arm(SEVEN_JOINTS.urdf, joints=logs[0].joints), drive),
        logs[:1],
        None,
        Settings(cutoff=10.0, bandwidth=10.0, transition_velocities=()),
        Loaded(logs[1], KNOWN.mass),
    )
    # Some 15 independent values of each, of which the fit takes some.
    assert (session.slow > 0.3 * size).all()
    assert (session.slow < 1.5 * size).all()
    unloaded = replace(session, estimate=replace(session.estimate, gains=None)).slow
    assert (unloaded < 0.3 * session.slow).all()


@pytest.mark.parametrize(
    ('options', 'says'),
    [
        (('--load-mass', 3.0), '--loaded and --load-mass go together'),
        (('--loaded', 'x'), '--loaded and --load-mass go together'),
        (('--loaded', 'x', '--load-mass', 0), '--load-mass is 0.0 kg; it must be above 0'),
        (('--loaded', 'x', '--load-mass', 3, '--effort-scale', 2), 'leave out --effort-scale'),
        (('--loaded', 'x', '--load-mass', 3, '--sensor', 'base'), 'leave out --sensor base'),
        (('--loaded', 'x', '--load-mass', 3, '--method', 'sequential'), 'leave out --method seq'),
        (('--loaded', 'x', '--load-mass', 3, '--ridge', 0.1), 'leave out --ridge'),
        (('--loaded', '/nowhere', '--load-mass', 3), 'recording /nowhere does not exist'),
    ],
)
def test_what_does_not_go_with_a_load_is_said(
    bags: Recordings, command: Command, options: tuple[object, ...], says: str
) -> None:
    status, out, error = command(bags.empty, *options)
    assert (status, out) == (UNUSABLE, '')
    assert error.count('\n') == 1
    assert says in error


def test_a_load_that_does_not_show_is_refused_with_what_it_tells(
    bags: Recordings, command: Command
) -> None:
    options = ('--loaded', bags.empty, '--load-mass', 3.0, '--cutoff', 10)
    status, _, error = command(bags.empty, *options)
    assert status == UNUSABLE
    assert 'the load does not show in the recording of --loaded' in error
    shares = [float(x) for x in re.findall(r'left_\d to ± (\d+) %', error)]
    assert len(shares) == 7
    assert min(shares) > 50.0


@pytest.mark.usefixtures('unchosen')
def test_a_load_of_another_mass_than_said_is_asked_for(bags: Recordings, command: Command) -> None:
    options = ('--loaded', bags.loaded, '--load-mass', 1.0, '--cutoff', 10)
    status, out, _ = command(bags.empty, *options)
    assert status == NOT_DONE
    said = ' '.join(out.split())
    assert 'the arm weighs 0.33 times what its description says: is --load-mass, 1 kg,' in said


@pytest.mark.usefixtures('unchosen')
def test_data_that_were_not_fitted_make_gains_as_poor_as_they_show(
    bags: Recordings, command: Command, tmp_path: Path
) -> None:
    # Efforts in another unit: nothing that was fitted predicts them.
    other = write(tmp_path / 'torques', states(run(8.0, 3, rate=125.0).measured(3)))
    options = ('--loaded', bags.loaded, '--load-mass', 3.0, '--cutoff', 10)
    status, out, _ = command(bags.empty, *options, '--held-out', other)
    assert status == NOT_DONE
    assert re.search(r'the data tell the drive gain of .*left_7 to ± \d+ %; ± 49 %', out)


def test_intervals_of_gains_hold_on_a_real_arm(shared_data: Path) -> None:
    """The torque of a load, computed, is added to one of two real recordings: known gains."""
    urdf = (shared_data / 'panda' / 'panda.urdf').read_text(encoding='utf-8')
    logs = []
    for part in ('part_a', 'part_b'):
        with open_recording(shared_data / 'panda' / part, Topics(wrench='')) as recording:
            log = read_efforts(recording, moving_joints(urdf))
        logs.append(log.of_joints(log.joints[:7]))
    model = ArmModel(
        Arm(urdf, joints=logs[0].joints), DriveModel('symmetric', 'symmetric', offset=True)
    )
    smooth = filtered(logs[1:], 20.0)
    last = model.link_rows(*smooth.motion)[..., model.links.stop - 10 : model.links.stop]
    times = logs[1].seconds
    inside = np.flatnonzero((times >= smooth.seconds[0]) & (times <= smooth.seconds[-1]))
    own = logs[1].part(slice(inside[0], inside[-1] + 1)).whole()
    added = [np.interp(times[inside], smooth.seconds, one) for one in (last @ KNOWN.to_vector()).T]
    effort = own.wrench + np.column_stack(added)
    carrying = Recording.held('loaded', own.names, own.stamps, own.position, own.velocity, effort)
    session = identify_and_test(
        model,
        [logs[0].scaled(1.0 / GAINS)],
        None,
        Settings(cutoff=10.0),
        Loaded(carrying.scaled(1.0 / GAINS), KNOWN.mass),
    )
    gains = session.estimate.gains
    std = np.sqrt(session.excess) * gains.std
    # White noise would claim some 0.1 %; recordings of this arm differ by several percent.
    assert np.all(std > 0.003 * np.abs(GAINS))
    assert np.all(np.abs(gains.gains - GAINS) < 2.5 * std)
