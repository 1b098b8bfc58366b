"""The command identify_load: recordings in, estimate, report, file and exit status out."""

from __future__ import annotations

import os
import pty
import random
import re
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio
import pytest
import yaml
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.model.inertial_parameters import to_message_order
from load_identification.model.robot import Robot
from load_identification.nodes.parameters import Parameters
from load_identification.tools.estimate_file import estimate_file
from load_identification.tools.identify import main
from load_identification.tools.offline import Identification, identify
from load_identification.tools.recording import (
    CHUNK,
    DESCRIPTION,
    JOINT_STATE,
    MOST_MESSAGES,
    TRANSFORMS,
    WRENCH,
    Topics,
    open_recording,
)
from load_identification.tools.simulation import (
    Recording,
    SensorModel,
    aluminium_block,
    simulate,
)
from load_identification.tools.tables import PARAMETERS, interval_table
from load_identification.tools.trajectories import (
    PAPER_START,
    Quintic,
    Trajectory,
    puma_trajectory,
)

ROOT = Path(__file__).resolve().parents[1]
URDF = (ROOT / 'config' / 'puma.urdf').read_text()
SENSOR = re.compile(
    r'<link name="ft_sensor">.*?</link>|<joint name="ft_sensor_joint".*?</joint>', re.S
)
HEIGHT = 0.08625
"""Of the sensor above link_6 [m]."""

STORE = get_typestore(Stores.ROS2_JAZZY)
START = 1_700_000_000_000_000_000
MCAP, SQLITE3 = StoragePlugin.MCAP, StoragePlugin.SQLITE3


@dataclass(frozen=True)
class Recorded:
    """A message, and the time at which it was recorded [ns]."""

    topic: str
    type: str
    time: int
    message: Any


def make(type_name: str, /, **content: Any) -> Any:
    return STORE.types[type_name](**content)


def header(stamp: int, frame: str = '') -> Any:
    sec, nanosec = divmod(stamp, 1_000_000_000)
    return make(
        'std_msgs/msg/Header',
        stamp=make('builtin_interfaces/msg/Time', sec=sec, nanosec=nanosec),
        frame_id=frame,
    )


def joint_states(
    sim: Recording, topic: str = '/joint_states', names: Sequence[str] = ()
) -> Iterator[Recorded]:
    for stamp, position, velocity in zip(sim.stamps, sim.position, sim.velocity, strict=True):
        stamp = int(stamp) + START
        message = make(
            JOINT_STATE,
            header=header(stamp),
            name=list(names or sim.names),
            position=position,
            velocity=velocity if np.isfinite(velocity).all() else np.empty(0),
            effort=np.empty(0),
        )
        yield Recorded(topic, JOINT_STATE, stamp, message)


def wrenches(
    sim: Recording, topic: str = '/wrench', frame: str = 'ft_sensor', late: int = 0
) -> Iterator[Recorded]:
    for stamp, values in zip(sim.stamps, sim.wrench.tolist(), strict=True):
        stamp = int(stamp) + START
        force, torque = (
            make('geometry_msgs/msg/Vector3', x=x, y=y, z=z)
            for x, y, z in (values[:3], values[3:])
        )
        wrench = make('geometry_msgs/msg/Wrench', force=force, torque=torque)
        message = make(WRENCH, header=header(stamp, frame), wrench=wrench)
        yield Recorded(topic, WRENCH, stamp + late, message)


def description(text: str = URDF, topic: str = '/robot_description') -> Recorded:
    return Recorded(topic, DESCRIPTION, START, make(DESCRIPTION, data=text))


def write(
    path: Path,
    messages: Iterable[Recorded],
    storage: StoragePlugin = MCAP,
    compression: CompressionMode = CompressionMode.NONE,
    empty: Sequence[tuple[str, str]] = (),
) -> Path:
    """Write a recording, with topics (name, type) that carry nothing where asked."""
    writer = Writer(path, version=9, storage_plugin=storage)
    if compression != CompressionMode.NONE:
        writer.set_compression(compression, CompressionFormat.ZSTD)
    with writer:
        connections = {t: writer.add_connection(*t, typestore=STORE) for t in empty}
        for item in sorted(messages, key=lambda m: m.time):
            key = item.topic, item.type
            if key not in connections:
                connections[key] = writer.add_connection(*key, typestore=STORE)
            data = STORE.serialize_cdr(item.message, item.type)
            writer.write(connections[key], item.time, data)
    return path


def run(path: Path, parameters: Parameters | None = None, chunk: float = CHUNK) -> Identification:
    with open_recording(path, Topics()) as recording:
        return identify(recording, parameters or Parameters(), chunk)


def command(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, '-m', 'load_identification.tools.identify', *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, 'COLUMNS': '', **environment},
        capture_output=True,
        text=True,
        encoding='utf-8',
        timeout=120,
    )


def error_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run the command, hold it to one line on standard error and status 2, return the line."""
    assert main([str(argument) for argument in arguments]) == 2
    out, error = capsys.readouterr()
    assert out == ''
    assert error.startswith('identify_load: error: ')
    assert error.count('\n') == 1
    return error


def parameter_file(folder: Path, **values: Any) -> Path:
    path = folder / 'parameters.yaml'
    path.write_text(yaml.safe_dump({'/**': {'ros__parameters': values}}))
    return path


@pytest.fixture(scope='module')
def robot() -> Robot:
    return Robot(URDF, 'ft_sensor')


@pytest.fixture(scope='module')
def sim(robot: Robot) -> Recording:
    """11 s at 200 Hz: the paper's move, then 8 s of rich motion."""
    trajectory = puma_trajectory(robot.velocity_limits, 8.0, seed=1)
    return simulate(robot, trajectory, aluminium_block(), SensorModel(), 200.0, seed=2)


@pytest.fixture(scope='module')
def short(robot: Robot) -> Recording:
    """0.6 s at rest, enough for every error and for no estimate of the mass."""
    rest = Trajectory((Quintic(PAPER_START, PAPER_START, 0.6),))
    return simulate(robot, rest, aluminium_block(), SensorModel(), 200.0, seed=3)


@pytest.fixture(scope='module')
def bag(sim: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp('recordings') / 'whole'
    return write(path, [description(), *joint_states(sim), *wrenches(sim)])


@pytest.fixture(scope='module')
def result(bag: Path) -> Identification:
    return run(bag)


def assert_same(one: Identification, other: Identification) -> None:
    """Hold two results of the same samples together, up to rounding."""
    # Sums in another order over some 1e3 rows, in a problem of condition 1e4.
    std = one.estimate.std
    assert np.all(np.abs(one.estimate.values - other.estimate.values) < 1e-6 * std)
    np.testing.assert_allclose(one.offset, other.offset, atol=1e-9)
    np.testing.assert_allclose(std, other.estimate.std, rtol=1e-6)
    assert one.used == other.used
    assert +one.dropped == +other.dropped


# The real recording


def test_real_recording_gives_the_known_load_and_offset_in_time(
    shared_data: Path, tmp_path: Path
) -> None:
    recording = shared_data / 'yumi_gravity' / 'bag'
    if not recording.is_dir():
        pytest.skip(f'no recording {recording}')
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = command(recording, '--output', tmp_path / 'estimate.yaml')
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Time of the processor, for others may use it as well.
    took = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    assert (done.returncode, done.stderr) == (0, '')
    estimate = yaml.safe_load((tmp_path / 'estimate.yaml').read_text())
    # As a batch least squares on the same recording finds them; the mass as its author says.
    assert estimate['frame'] == 'ft_sensor'
    assert estimate['mass']['value'] == pytest.approx(0.2205, rel=0.025)
    com = np.array(estimate['center_of_mass']['value'])
    assert np.linalg.norm(com - [-5.9e-3, 5.3e-3, 27.7e-3]) < 1.5e-3
    offset = np.array(estimate['offset']['value'])
    np.testing.assert_allclose(offset[:3], [-1.08, -2.98, 6.78], atol=0.1)
    np.testing.assert_allclose(offset[3:], [-0.059, 0.148, -0.015], atol=0.01)
    # The log kept no sample of any acceleration.
    assert estimate['inertia_about_center_of_mass']['value'] == [None] * 6
    assert estimate['inertia_about_center_of_mass']['identified'] == [False] * 6
    assert 'the sensor cannot see it' in ' '.join(done.stdout.split())
    assert took < 15.0


def test_real_recording_without_wrench_says_so(
    shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = shared_data / 'kuka_lwr4' / 'run_1'
    if not recording.is_dir():
        pytest.skip(f'no recording {recording}')
    assert f'no topic /wrench in recording {recording}' in error_of(capsys, recording)


# What comes out


@pytest.mark.parametrize('storage', [MCAP, SQLITE3])
def test_simulated_payload_and_offset_are_found(
    sim: Recording, tmp_path: Path, storage: StoragePlugin
) -> None:
    path = write(tmp_path / 'bag', [description(), *joint_states(sim), *wrenches(sim)], storage)
    output = tmp_path / 'estimate.yaml'
    assert main([str(path), '--output', str(output)]) == 0
    estimate = yaml.safe_load(output.read_text())
    truth = to_message_order(aluminium_block().to_vector())
    sections = ['mass', 'center_of_mass', 'inertia_about_center_of_mass']
    for section, true in zip(sections, np.split(truth, [1, 4]), strict=True):
        content = estimate[section]
        assert np.all(content['identified'])
        # One draw of 16 values: five deviations are exceeded by chance once in 1e5 runs.
        assert np.all(np.abs(np.array(content['value']) - true) < 5 * np.array(content['std']))
        assert np.all(np.array(content['std']) < 0.1 * np.abs(true).max())
    offset = estimate['offset']
    deviation = np.abs(np.array(offset['value']) - SensorModel().offset)
    assert np.all(deviation < 5 * np.array(offset['std']))
    # The noise of a sample, 0.1 N and 5 mN m, less what the filter takes away.
    assert 0.0 < estimate['residual_rms']['force'] < 0.1
    assert 0.0 < estimate['residual_rms']['torque'] < 0.005


@pytest.mark.parametrize('chunk', [0.02, 1.0, 100.0])
def test_result_does_not_depend_on_the_length_of_the_chunks(
    bag: Path, result: Identification, chunk: float
) -> None:
    assert_same(run(bag, chunk=chunk), result)


def test_recording_played_in_a_loop_gives_the_same_with_any_chunks(
    sim: Recording, result: Identification, tmp_path: Path
) -> None:
    once = [*joint_states(sim), *wrenches(sim)]
    again = [replace(m, time=m.time + 12_000_000_000) for m in once]
    path = write(tmp_path / 'loop', [description(), *once, *again])
    looped = run(path)
    assert_same(run(path, chunk=0.1), looped)
    # The stamps start afresh, so of the estimate only the second round counts.
    np.testing.assert_allclose(looped.estimate.values, result.estimate.values, rtol=1e-9)
    assert looped.used == 2 * result.used


def test_result_does_not_depend_on_when_messages_were_recorded(
    sim: Recording, result: Identification, tmp_path: Path
) -> None:
    late = wrenches(sim, late=300_000_000)
    path = write(tmp_path / 'late', [description(), *joint_states(sim), *late])
    assert_same(run(path), result)


@pytest.mark.parametrize(
    ('storage', 'compression'),
    [
        (MCAP, CompressionMode.STORAGE),
        (MCAP, CompressionMode.MESSAGE),
        (MCAP, CompressionMode.FILE),
        (SQLITE3, CompressionMode.MESSAGE),
        (SQLITE3, CompressionMode.FILE),
    ],
)
def test_compressed_recordings_give_the_same(
    sim: Recording,
    result: Identification,
    tmp_path: Path,
    storage: StoragePlugin,
    compression: CompressionMode,
) -> None:
    messages = [description(), *joint_states(sim), *wrenches(sim)]
    assert_same(run(write(tmp_path / 'bag', messages, storage, compression)), result)


@pytest.mark.parametrize('storage', [MCAP, SQLITE3])
def test_single_file_without_its_folder_gives_the_same(
    sim: Recording, result: Identification, tmp_path: Path, storage: StoragePlugin
) -> None:
    messages = [description(), *joint_states(sim), *wrenches(sim)]
    folder = write(tmp_path / 'bag', messages, storage)
    (file,) = (path for path in folder.iterdir() if path.suffix in ('.mcap', '.db3'))
    assert_same(run(file.rename(tmp_path / f'alone{file.suffix}')), result)


def test_wrench_on_the_load_gives_the_same_payload_and_the_opposite_offset(
    sim: Recording, result: Identification, tmp_path: Path
) -> None:
    reversed_sim = replace(sim, wrench=-sim.wrench)
    path = write(tmp_path / 'bag', [description(), *joint_states(sim), *wrenches(reversed_sim)])
    on_load = run(path, Parameters(wrench_convention='on_load'))
    np.testing.assert_array_equal(on_load.estimate.values, result.estimate.values)
    # corrected = raw − offset, so the offset has the sign of the raw wrench.
    np.testing.assert_array_equal(on_load.offset, -result.offset)
    written = yaml.safe_load(estimate_file(on_load))['offset']['value']
    np.testing.assert_allclose(written, -result.offset, rtol=1e-8)  # nine digits


def test_topics_may_have_other_names(
    sim: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = [
        description(topic='/left/robot_description'),
        *joint_states(sim, '/left/joint_states'),
        *wrenches(sim, '/left/ft/raw'),
        *wrenches(replace(sim, wrench=-sim.wrench), '/wrench'),
    ]
    path = write(tmp_path / 'bag', messages)
    names = ['--joint-states', '/left/joint_states', '--robot-description']
    names += ['left/robot_description', '--wrench', '/left/ft/raw']
    assert main([str(path), *names]) == 0
    assert 'mass' in capsys.readouterr().out


def test_description_may_be_a_parameter(sim: Recording, tmp_path: Path) -> None:
    path = write(tmp_path / 'bag', [description('<no/>'), *joint_states(sim), *wrenches(sim)])
    params = parameter_file(tmp_path, robot_description=URDF)
    assert main([str(path), '--params', str(params)]) == 0


def test_frame_may_be_a_parameter(sim: Recording, result: Identification, tmp_path: Path) -> None:
    messages = [description(), *joint_states(sim), *wrenches(sim, frame='')]
    path = write(tmp_path / 'bag', messages)
    assert_same(run(path, Parameters(sensor_frame='ft_sensor')), result)


def hung(parent: str, child: str, placement: pinocchio.SE3) -> Recorded:
    """Return a message on /tf_static."""
    x, y, z, w = pinocchio.Quaternion(placement.rotation).coeffs().tolist()
    transform = make(
        'geometry_msgs/msg/Transform',
        translation=make(
            'geometry_msgs/msg/Vector3',
            **dict(zip('xyz', placement.translation.tolist(), strict=True)),
        ),
        rotation=make('geometry_msgs/msg/Quaternion', x=x, y=y, z=z, w=w),
    )
    stamped = make(
        'geometry_msgs/msg/TransformStamped',
        header=header(START, parent),
        child_frame_id=child,
        transform=transform,
    )
    return Recorded('/tf_static', TRANSFORMS, START, make(TRANSFORMS, transforms=[stamped]))


@pytest.mark.parametrize('upside_down', [False, True])
def test_a_sensor_that_hangs_on_tf_static_is_as_good_as_one_in_the_description(
    sim: Recording, result: Identification, tmp_path: Path, upside_down: bool
) -> None:
    """By way of a frame that is no link; also where the tree of the frames goes the other way."""
    bare = SENSOR.sub('', URDF)
    assert 'ft_sensor' not in bare
    sensor = pinocchio.SE3(np.eye(3), np.array([0.0, 0.0, HEIGHT]))
    bracket = pinocchio.SE3(pinocchio.exp3(np.array([0.3, -1.2, 0.8])), np.array([0.1, -0.2, 0.3]))
    frames = [hung('link_6', 'bracket', bracket)]
    if upside_down:
        frames = [hung('bracket', 'link_6', bracket.inverse())]
    frames += [
        hung('bracket', 'ft_sensor', pinocchio.SE3.Identity()),
        hung('bracket', 'ft_sensor', bracket.actInv(sensor)),
        hung('bracket', 'camera', pinocchio.SE3.Identity()),
    ]
    messages = [description(bare), *frames, *joint_states(sim), *wrenches(sim)]
    assert_same(run(write(tmp_path / 'bag', messages)), result)


def test_chunks_stay_bounded_where_every_message_has_the_same_time(
    short: Recording, tmp_path: Path
) -> None:
    count = MOST_MESSAGES // len(short.stamps) + 1
    messages = [*joint_states(short), *wrenches(short)] * count
    path = write(tmp_path / 'bag', [replace(m, time=START) for m in messages])
    with open_recording(path, Topics()) as recording:
        sizes = [len(chunk) for chunk in recording.chunks()]
    assert sum(sizes) == len(messages) > max(sizes) == MOST_MESSAGES


# The estimate file


def example(**changes: Any) -> Identification:
    nan, inf = np.nan, np.inf
    estimate = PayloadEstimate(
        stamp=1,
        frame='ft_sensor',
        parameters=np.full(10, nan),
        offset=np.array([-1.08, -2.98, 6.78, -0.059, 0.148, -0.015]),
        covariance=np.diag([1.0] * 10 + [1e-4, 1e-4, 1e8, 1e-6, 1e-6, 1e-6]),
        values=np.array([0.2233, -0.0059, 0.0053, 0.0277, *[1e-5] * 5, nan]),
        std=np.array([0.0004, 1e-4, 1e-4, 0.1, *[3e-4] * 5, inf]),
        identified=np.array([True] * 3 + [False] * 7),
        reasons=('inertia: rotate faster',),
        warnings=(),
        reversed_sign=False,
        untold=False,
        residual_rms=np.array([0.08, nan]),
        noise=np.array([0.1, 0.01]),
        total=np.full(10, nan),
        total_covariance=np.eye(10),
    )
    dropped = Counter({'wrench_not_finite': 12, 'joint_missing': 0})
    return replace(Identification(estimate, -1.0, START, 13000, dropped, ()), **changes)


GOLDEN = """\
frame: ft_sensor
mass: {value: 0.2233, std: 0.0004, identified: true}
center_of_mass: {value: [-0.0059, 0.0053, null], std: [0.0001, 0.0001, 0.1], \
identified: [true, true, false]}
inertia_about_center_of_mass: {value: [null, null, null, null, null, null], \
std: [0.0003, 0.0003, 0.0003, 0.0003, 0.0003, null], \
identified: [false, false, false, false, false, false]}
offset: {value: [1.08, 2.98, null, 0.059, -0.148, 0.015], \
std: [0.01, 0.01, null, 0.001, 0.001, 0.001]}
residual_rms: {force: 0.08, torque: null}
samples: {used: 13000, dropped: {wrench_not_finite: 12}}
"""


def test_estimate_file_is_as_agreed_with_null_for_what_is_not_identified() -> None:
    assert estimate_file(example()) == GOLDEN


def test_estimate_file_reads_back_as_what_was_found(result: Identification) -> None:
    estimate = result.estimate
    read = yaml.safe_load(estimate_file(result))
    values = [
        read['mass']['value'],
        *read['center_of_mass']['value'],
        *read['inertia_about_center_of_mass']['value'],
    ]
    np.testing.assert_allclose(values, estimate.values, rtol=1e-8)  # nine digits
    np.testing.assert_allclose(read['offset']['std'], result.offset_std, rtol=1e-8)
    assert read['samples']['used'] == result.used


@pytest.mark.parametrize('frame', ['null', 'a: b', '[x', '0', 'Sensör'])
def test_any_name_of_a_frame_survives_the_estimate_file(frame: str) -> None:
    odd = example(estimate=replace(example().estimate, frame=frame))
    assert yaml.safe_load(estimate_file(odd))['frame'] == frame


# What a person reads


def test_piped_output_is_plain_and_fits_80_columns(bag: Path) -> None:
    done = command(bag)
    assert (done.returncode, done.stderr) == (0, '')
    assert '\x1b' not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert re.search(r'^ mass +1\.1\d+ +0\.\d+ +kg', done.stdout, re.MULTILINE)
    assert re.search(r'^ inertia xx +0\.00\d+ +0\.0\d+ +kg·m²', done.stdout, re.MULTILINE)
    assert re.search(r'^ force x +2\.[34]\d* ', done.stdout, re.MULTILINE)


def test_a_locale_without_the_signs_is_no_reason_to_fail(bag: Path) -> None:
    assert command(bag, PYTHONIOENCODING='ascii').returncode == 0


def test_terminal_shows_a_progress_bar(bag: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, '-m', 'load_identification.tools.identify', str(bag)],
        cwd=ROOT,
        env={**os.environ, 'TERM': 'xterm', 'COLUMNS': '100'},
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b''
    # Reading fails once the process has closed the other end.
    while piece := _read(ours):
        shown += piece
    os.close(ours)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b'reading whole' in shown
    assert b'100%' in shown
    assert b'\x1b' not in out


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b''


def test_load_that_was_never_turned_is_not_identified_and_says_what_to_do(
    short: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / 'bag', [description(), *joint_states(short), *wrenches(short)])
    output = tmp_path / 'estimate.yaml'
    assert main([str(path), '--output', str(output)]) == 1
    out = capsys.readouterr().out
    assert 'turn the sensor' in out
    assert re.search(r'^ mass +not identified', out, re.MULTILINE)
    read = yaml.safe_load(output.read_text())
    assert read['mass']['value'] is None
    assert read['mass']['identified'] is False
    assert read['center_of_mass']['value'] == [None] * 3


def test_event_is_listed_at_its_time_after_the_first_sample(
    sim: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zeroed = 7.0
    wrench = sim.wrench + (sim.stamps > zeroed * 1e9)[:, None] * [5.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    messages = [description(), *joint_states(sim), *wrenches(replace(sim, wrench=wrench))]
    assert main([str(write(tmp_path / 'bag', messages))]) == 0
    out = capsys.readouterr().out
    listed = re.search(
        r'seconds after the first sample, 1700000000\.\d+\s+- (\S+) s  (.*changed; .*\S)', out
    )
    assert listed is not None
    assert listed[2] == 'load or offset changed; offset changed'
    # The filter's delay is 0.06 s, a block 0.1 s, and a change is noticed within three.
    assert zeroed < float(listed[1]) < zeroed + 0.4


def test_reversed_sign_is_said_loudly(
    sim: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = [*joint_states(sim), *wrenches(replace(sim, wrench=-sim.wrench))]
    path = write(tmp_path / 'bag', [description(), *messages])
    output = tmp_path / 'estimate.yaml'
    assert main([str(path), '--output', str(output)]) == 1
    out = capsys.readouterr().out
    assert out.index('WRENCH SIGN REVERSED?') < out.index('Payload')
    assert 'wrench_convention is on_sensor; on_load would make the mass positive' in out
    assert yaml.safe_load(output.read_text())['mass']['value'] is None


def test_channel_that_the_sensor_lacks_is_named(
    sim: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrench = sim.wrench.copy()
    wrench[:, 5] = 0.0
    messages = [description(), *joint_states(sim), *wrenches(replace(sim, wrench=wrench))]
    assert main([str(write(tmp_path / 'bag', messages))]) == 0
    out = capsys.readouterr().out
    assert 'No signal  tz' in out
    assert re.search(r'^ torque z +not known', out, re.MULTILINE)


def test_table_says_whether_the_truth_lies_in_the_interval() -> None:
    values, std = np.arange(10.0), np.full(10, 0.1)
    truth = values + np.where(np.arange(10) % 2, 0.195, 0.197)
    table = interval_table(PARAMETERS, values, std, np.ones(10, dtype=bool), '', truth)
    assert list(table.columns[-1].cells) == ['no', 'yes'] * 5


def test_nothing_of_ros_is_imported(bag: Path) -> None:
    program = (
        'import sys; from load_identification.tools.identify import main; '
        'status = main(sys.argv[1:]); '
        'print(sorted({m.partition(".")[0] for m in sys.modules}), file=sys.stderr); '
        'sys.exit(status)'
    )
    done = subprocess.run(
        [sys.executable, '-c', program, str(bag)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert 'rosbags' in done.stderr
    assert not re.search(r"'(rclpy|rosidl\w*|builtin_interfaces|\w+_msgs)'", done.stderr)


# What cannot be used: one line and status 2


def test_missing_topics_are_named_with_those_of_their_type(
    short: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = [
        description(topic='/right/robot_description'),
        *joint_states(short, '/right/joint_states'),
        *wrenches(short, '/right/b'),
        *wrenches(short, '/right/a'),
    ]
    path = write(tmp_path / 'bag', messages)
    error = error_of(capsys, path)
    assert 'no topic /joint_states' in error
    assert '/right/joint_states (choose by --joint-states)' in error
    error = error_of(capsys, path, '--joint-states', '/right/joint_states')
    assert 'no topic /wrench' in error
    assert '/right/a, /right/b (choose by --wrench)' in error
    both = ['--joint-states', '/right/joint_states', '--wrench', '/right/a']
    error = error_of(capsys, path, *both)
    assert 'no topic /robot_description' in error
    assert '/right/robot_description (choose by --robot-description)' in error
    assert 'or set the parameter robot_description' in error


def test_recording_without_any_wrench_says_none(
    short: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / 'bag', [description(), *joint_states(short)])
    assert f'of type {WRENCH} it has: none' in error_of(capsys, path)


@pytest.mark.parametrize('storage', [MCAP, SQLITE3])
def test_topic_without_messages_is_named(
    short: Recording,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    storage: StoragePlugin,
) -> None:
    messages = [description(), *joint_states(short)]
    path = write(tmp_path / 'bag', messages, storage, empty=[('/wrench', WRENCH)])
    assert 'topic /wrench of the recording has no messages' in error_of(capsys, path)


def test_topic_of_another_type_is_named(
    short: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = [
        description(),
        *joint_states(short),
        *joint_states(short, '/wrench'),
        *wrenches(short, '/ft'),
    ]
    error = error_of(capsys, write(tmp_path / 'bag', messages))
    assert f'topic /wrench is of type {JOINT_STATE}' in error
    assert f'of type {WRENCH} it has: /ft' in error


def test_two_descriptions_are_not_chosen_between(
    short: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [description(), description(), description(URDF + '\n')]
    path = write(tmp_path / 'bag', [*texts, *joint_states(short), *wrenches(short)])
    assert '/robot_description has 2 different descriptions' in error_of(capsys, path)


@pytest.mark.parametrize(
    ('urdf', 'frame', 'expected'),
    [
        (URDF, 'ft_sensr', "'ft_sensr' is not a link"),
        (URDF, '', 'set the parameter sensor_frame'),
        ('<robot', 'ft_sensor', 'no valid URDF'),
        ('', 'ft_sensor', 'no valid URDF'),
    ],
)
def test_unusable_frame_or_description_is_named(
    short: Recording,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    urdf: str,
    frame: str,
    expected: str,
) -> None:
    messages = [description(urdf), *joint_states(short), *wrenches(short, frame=frame)]
    assert expected in error_of(capsys, write(tmp_path / 'bag', messages))


def test_joints_that_never_come_are_named(
    short: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ['joint_1', 'a', 'joint_3', 'b', 'joint_5', 'joint_6']
    messages = [description(), *joint_states(short, names=names), *wrenches(short)]
    error = error_of(capsys, write(tmp_path / 'bag', messages))
    assert 'the joint states lack joint_2, joint_4; they have a, b, joint_1' in error


def test_stamps_that_never_meet_are_told_by_their_counts(
    short: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later = replace(short, stamps=short.stamps + 60_000_000_000)
    messages = [description(), *joint_states(later), *wrenches(short)]
    error = error_of(capsys, write(tmp_path / 'bag', messages))
    assert re.search(r'no sample could be used: dropped joint_state_\w+ \d+', error)


def test_recording_shorter_than_the_filter_says_so(
    short: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    brief = replace(
        short,
        stamps=short.stamps[:10],
        position=short.position[:10],
        velocity=short.velocity[:10],
        wrench=short.wrench[:10],
    )
    messages = [description(), *joint_states(brief), *wrenches(brief)]
    error = error_of(capsys, write(tmp_path / 'bag', messages))
    assert 'as long as the filter' in error


def test_paths_that_are_no_recording_are_named(
    bag: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 'does not exist' in error_of(capsys, tmp_path / 'nowhere')
    assert 'no metadata.yaml' in error_of(capsys, tmp_path)
    text = tmp_path / 'notes.txt'
    text.write_text('no recording')
    assert 'is no recording' in error_of(capsys, text)
    copy = shutil.copytree(bag, tmp_path / 'copy')
    (copy / 'metadata.yaml').unlink()
    error = error_of(capsys, copy)
    assert 'no metadata.yaml' in error
    assert str(copy / 'whole.mcap') in error
    shutil.copy(bag / 'metadata.yaml', copy)
    (copy / 'whole.mcap').unlink()
    assert 'missing' in error_of(capsys, copy)


@pytest.mark.parametrize('suffix', ['.mcap', '.db3'])
@pytest.mark.parametrize('content', [b'', b'\x00', b'garbage' * 100])
def test_file_of_something_else_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str, content: bytes
) -> None:
    path = tmp_path / f'file{suffix}'
    path.write_bytes(content)
    assert 'cannot be read' in error_of(capsys, path)


@pytest.fixture(scope='module', params=[MCAP, SQLITE3], ids=['mcap', 'sqlite3'])
def small_file(
    short: Recording, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Path:
    """A single file of 0.6 s, compressed where the storage does that itself."""
    storage = request.param
    compression = CompressionMode.STORAGE if storage == MCAP else CompressionMode.NONE
    messages = [description(), *joint_states(short), *wrenches(short)]
    folder = write(tmp_path_factory.mktemp('small') / 'bag', messages, storage, compression)
    (file,) = (path for path in folder.iterdir() if path.suffix in ('.mcap', '.db3'))
    return file


@pytest.mark.parametrize('share', [0.001, 0.1, 0.5, 0.9, 0.99])
def test_file_cut_off_is_one_line(
    small_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], share: float
) -> None:
    data = small_file.read_bytes()
    path = tmp_path / small_file.name
    path.write_bytes(data[: int(share * len(data))])
    assert 'cannot be read, it is damaged or cut off' in error_of(capsys, path)


def test_damaged_file_never_ends_in_a_traceback(
    small_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(4)
    refused = 0
    for _ in range(40):
        data = bytearray(small_file.read_bytes())
        for _ in range(20):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path = tmp_path / small_file.name
        path.write_bytes(data)
        # Damage may hit values only, so any status will do.
        if main([str(path)]) == 2:
            refused += 1
            assert capsys.readouterr().err.count('\n') == 1
    assert refused > 0


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('/**: {ros__parameters: {cutoff_freqency: 3.0}}', 'did you mean cutoff_frequency?'),
        ('/**: {ros__parameters: {max_gap: -1.0}}', 'max_gap is -1.0; it must be'),
        ('/**: {ros__parameters: {wrench_convention: up}}', 'on_sensor or on_load'),
        ('a: [1', 'parameters.yaml'),
        ('{}', 'no ros__parameters'),
        (None, 'No such file'),
    ],
)
def test_unusable_parameters_are_named(
    bag: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str | None,
    expected: str,
) -> None:
    path = tmp_path / 'parameters.yaml'
    if text is not None:
        path.write_text(text)
    assert expected in error_of(capsys, bag, '--params', path)


def test_output_that_cannot_be_written_is_refused_before_the_work(
    bag: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (tmp_path, tmp_path / 'nowhere' / 'estimate.yaml'):
        assert f'--output {path} must be a file' in error_of(capsys, bag, '--output', path)


def test_error_from_the_command_line_is_status_2_and_plain(tmp_path: Path) -> None:
    done = command(tmp_path / 'nowhere')
    assert (done.returncode, done.stdout) == (2, '')
    assert done.stderr == f'identify_load: error: recording {tmp_path}/nowhere does not exist\n'


def test_help_tells_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match='0'):
        main(['--help'])
    out = capsys.readouterr().out
    for status in ('0  the mass is identified', '1  it is not', '2  nothing could be done'):
        assert status in out
