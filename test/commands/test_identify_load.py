"""The command `identify_load`: what it finds in a recording, and what a person reads of it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from bags import (
    START,
    URDF,
    description,
    error_of,
    in_a_shell,
    joint_states,
    recorded,
    states,
    wrenches,
    write,
)
from checkout import ROOT
from rich.console import Console

from load_identification.commands.identify_load import main
from load_identification.commands.recorded_load import error_words, print_report
from load_identification.estimation.belief.error_budget import Knowledge
from load_identification.estimation.events import Event, EventKind
from load_identification.estimation.payload_estimate import (
    CalibrationValue,
    Withheld,
    nothing_claimed,
)
from load_identification.interface.batches import JointBatch
from load_identification.interface.program import NOT_DONE
from load_identification.model.inertial_parameters import to_message_order
from load_identification.recordings.result import Identification
from load_identification.report.tables import PARAMETERS, interval_table
from load_identification.simulation.sensors import Recording, SensorModel, aluminium_block


def parameter_file(folder: Path, **values: Any) -> Path:
    path = folder / 'parameters.yaml'
    path.write_text(yaml.safe_dump({'/**': {'ros__parameters': values}}))
    return path


def test_real_recording_without_wrench_says_so(
    shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = shared_data / 'kuka_lwr4' / 'run_1'
    if not recording.is_dir():
        pytest.skip(f'no recording {recording}')
    assert f'no topic /wrench in recording {recording}' in error_of(capsys, recording)
    base = error_of(capsys, recording, '--wrench-frame', 'base')
    assert '--wrench-frame base is for --static' in base


Identify = Callable[..., tuple[int, str, dict[str, Any]]]


@pytest.fixture
def identify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Identify:
    """Return the command, from a simulated recording to status, what is said and estimate."""
    output = tmp_path / 'estimate.yaml'

    def run(sim: Recording, **replaced: Any) -> tuple[int, str, dict[str, Any]]:
        path = recorded(tmp_path, sim, **replaced)
        status = main([str(path), '--output', str(output)])
        return status, capsys.readouterr().out, yaml.safe_load(output.read_text())

    return run


def test_a_second_publisher_of_zeros_is_named(
    short: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a `joint_state_publisher` that does not listen to the arm sends them."""
    few = short.joints().select(slice(None, None, 4))
    zeros = JointBatch(
        (*few.names, 'finger'), few.stamps + START + 700_000, *np.zeros((2, len(few.stamps), 7))
    )
    messages = sorted(
        [*joint_states(short), *wrenches(short), *states(zeros)], key=attrgetter('time')
    )
    main([str(write(tmp_path / 'bag', [description(), *messages]))])
    words = ' '.join(capsys.readouterr().out.split())
    # The others are at zero indeed.
    assert 'two publishers give different positions of joint_4: stop one' in words


def test_wrenches_that_share_a_stamp_are_said_to_be_dropped(
    short: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ten at a time, as of a driver that reads a buffer and stamps what it reads alike."""
    sent = wrenches(replace(short, stamps=short.stamps // 50_000_000 * 50_000_000))
    main([str(write(tmp_path / 'bag', [description(), *joint_states(short), *sent]))])
    words = ' '.join(capsys.readouterr().out.split())
    assert re.search(
        r'\d+ of 121 wrenches dropped: stamps not later than the one before: several read '
        'together and stamped then, .* have the driver stamp samples when they are measured',
        words,
    )


@pytest.mark.parametrize('subtracts', [True, False])
def test_a_payload_that_the_driver_does_not_subtract_is_named(
    sim: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str], subtracts: bool
) -> None:
    """A mass had been claimed that was too large."""
    taken = 0.42 * np.pad(sim.motion.gravity, ((0, 0), (0, 3)))
    path = recorded(tmp_path, sim, wrench=sim.wrench - taken if subtracts else sim.wrench)
    file = parameter_file(tmp_path, driver_payload_mass=0.42)
    assert main([str(path), '--params', str(file)]) == (0 if subtracts else 1)
    words = ' '.join(capsys.readouterr().out.split())
    assert 'Driver weight of 0.42 kg added back, see driver_payload_mass' in words
    named = 'added back, but the driver does not take them off; set driver_payload_mass'
    assert (named in words) != subtracts


def test_simulated_payload_and_offset_are_found(bag: Path, tmp_path: Path) -> None:
    output = tmp_path / 'estimate.yaml'
    assert main([str(bag), '--output', str(output)]) == 0
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
    path = recorded(tmp_path, sim, urdf='<no/>')
    params = parameter_file(tmp_path, robot_description=URDF)
    assert main([str(path), '--params', str(params)]) == 0


def test_parameters_under_a_name_that_no_node_has_are_warned_of(
    short: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bag, path = recorded(tmp_path, short), tmp_path / 'parameters.yaml'
    section = {'ros__parameters': {'force_noise': 0.1}}
    path.write_text(yaml.safe_dump({'/load_identification/estimater_node': section}))
    assert main([str(bag), '--params', str(path)]) == NOT_DONE
    error = capsys.readouterr().err
    assert "no node is called '/load_identification/estimater_node': force_noise" in error
    path.write_text(yaml.safe_dump({'/left/load_identification/estimator_node': section}))
    assert main([str(bag), '--params', str(path)]) == NOT_DONE
    assert capsys.readouterr().err == ''


def test_a_terminal_shows_a_progress_bar_and_what_is_piped_is_plain(bag: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, '-m', 'load_identification.commands.identify_load', str(bag)],
        cwd=ROOT,
        env={**os.environ, 'TERM': 'xterm', 'COLUMNS': ''},
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b''
    # Reading fails once the process has closed the other end.
    while piece := _read(ours):
        shown += piece
    os.close(ours)
    written, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    assert b'reading whole' in shown
    assert b'100%' in shown
    out = written.decode()
    assert '\x1b' not in out
    assert max(map(len, out.splitlines())) <= 80
    assert re.search(r'^ mass +1\.1\d+ +0\.\d+ +kg', out, re.MULTILINE)
    assert re.search(r'^ inertia xx +0\.00\d+ +0\.0\d+ +kg·m²', out, re.MULTILINE)
    assert re.search(r'^ force x +2\.[34]\d* ', out, re.MULTILINE)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b''


def test_load_that_was_never_turned_is_not_identified_and_says_what_to_do(
    short: Recording, identify: Identify
) -> None:
    status, out, read = identify(short)
    assert status == 1
    assert 'turn the sensor' in out
    assert re.search(r'^ mass +not identified', out, re.MULTILINE)
    assert read['mass']['value'] is None
    assert read['mass']['identified'] is False
    assert read['center_of_mass']['value'] == [None] * 3


def test_event_is_listed_at_its_time_after_the_first_sample(
    sim: Recording, identify: Identify
) -> None:
    zeroed = 7.0
    wrench = sim.wrench + (sim.stamps > zeroed * 1e9)[:, None] * [5.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    status, out, _ = identify(sim, wrench=wrench)
    assert status == 0
    listed = re.search(
        r'seconds after the first sample, 1700000000\.\d+\s+- (\S+) s  (.*changed; .*\S)', out
    )
    assert listed[2] == 'load or offset changed; offset changed'
    # The filter's delay is 0.06 s, a block 0.1 s, and a change is noticed within three.
    assert zeroed < float(listed[1]) < zeroed + 0.4


def test_reversed_sign_is_said_loudly(sim: Recording, identify: Identify) -> None:
    status, out, estimate = identify(sim, wrench=-sim.wrench)
    assert status == 1
    assert out.index('WRENCH SIGN REVERSED?') < out.index('Payload')
    assert 'wrench_convention is on_sensor; on_load would make the mass positive' in out
    assert estimate['mass']['value'] is None


def test_millinewtons_are_named_and_nothing_is_claimed(sim: Recording, identify: Identify) -> None:
    """They were 1500 kg, all identified, without a note."""
    status, out, estimate = identify(sim, wrench=1e3 * sim.wrench)
    assert status == 1
    out = ' '.join(out.split())
    assert 'densest matter: forces in mN and torques in mN·m? The mass is ' in out
    assert 'newtons or millinewtons?' in out
    assert estimate['mass']['value'] is None


def test_events_may_only_follow_from_a_set_up_that_is_named_as_wrong() -> None:
    none = np.zeros(0)
    known = Knowledge(np.zeros(10), np.zeros(6), *(none,) * 8)
    noise, why = np.ones((2, 2)), 'units of force'
    for withheld, expected in ((Withheld.SET_UP_WRONG, True), (Withheld.CHANGED, False)):
        estimate = nothing_claimed(known, np.zeros(10), noise, why, START, 'ft', withheld)
        events = (Event(1, EventKind.CHANGE_DETECTED, START),)
        text = StringIO()
        console = Console(file=text, width=200)
        print_report(console, Identification(estimate, START, 9, Counter(), (), events))
        said = text.getvalue()
        assert 'load or offset changed' in said
        assert ('may only follow from the wrong set-up' in said) == expected


@pytest.mark.parametrize(
    ('name', 'said'),
    [
        ('play.fx', '0.002 ± 0.002 N'),
        ('play.tz', '0.002 ± 0.002 N·m'),
        ('cross_talk.fx.fy', '0.002 ± 0.002'),
        ('cross_talk.tx.fy', '0.002 ± 0.002 N·m/N'),
        ('cross_talk.fx.ty', '0.002 ± 0.002 N/(N·m)'),
        ('gain.tx', '0.2 ± 0.2 %'),
    ],
)
def test_errors_of_the_cell_are_printed_in_the_unit_of_their_channel(name: str, said: str) -> None:
    assert error_words(name, CalibrationValue(2e-3, 1e-3)) == f'{name} {said}'


def test_joints_in_degrees_are_refused(
    sim: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    degrees = replace(sim, position=np.degrees(sim.position), velocity=np.degrees(sim.velocity))
    assert main([str(recorded(tmp_path, degrees))]) == 2
    said = ' '.join(capsys.readouterr().err.split())
    assert re.search(r'\d+ of \d+ samples are no joint positions: ', said)
    assert re.search(r'joint_\d at \S+ rad, its limits are \S+ and \S+: degrees\?', said)


def test_channel_that_freezes_is_named(sim: Recording, identify: Identify) -> None:
    wrench = sim.wrench.copy()
    late = len(wrench) * 2 // 3
    wrench[late:, 4] = wrench[late, 4]
    out = ' '.join(identify(sim, wrench=wrench)[1].split())
    assert re.search(r'- ty repeats \S+ N·m since \S+ s: sensor or cable\?', out)


def test_channel_that_the_sensor_lacks_is_named(sim: Recording, identify: Identify) -> None:
    wrench = sim.wrench.copy()
    wrench[:, 5] = 0.0
    status, out, _ = identify(sim, wrench=wrench)
    assert status == 0
    assert 'No signal  tz' in out
    assert re.search(r'^ torque z +not known', out, re.MULTILINE)


def test_table_says_whether_the_truth_lies_in_the_interval() -> None:
    values, std = np.arange(10.0), np.full(10, 0.1)
    truth = values + np.where(np.arange(10) % 2, 0.195, 0.197)
    table = interval_table(PARAMETERS, values, std, np.ones(10, dtype=bool), '', truth)
    assert list(table.columns[-1].cells) == ['no', 'yes'] * 5


def test_nothing_of_ros_is_imported_and_a_locale_without_the_signs_is_no_reason_to_fail(
    bag: Path,
) -> None:
    program = (
        'import sys; sys.modules["rosbag2_py"] = None; '
        'from load_identification.commands.identify_load import main; '
        'status = main(sys.argv[1:]); '
        'print(sorted({m.partition(".")[0] for m in sys.modules}), file=sys.stderr); '
        'print([m for m in ("scipy.interpolate", "scipy.ndimage") if m in sys.modules]); '
        'sys.exit(status)'
    )
    done = in_a_shell('identify_load', bag, code=program, PYTHONIOENCODING='ascii')
    assert done.returncode == 0
    assert '\x1b' not in done.stdout
    assert 'rosbags' in done.stderr
    # Only a report needs them, and they take a quarter of the start.
    assert done.stdout.endswith('[]\n')
    assert not re.search(r"'(rclpy|rosidl\w*|builtin_interfaces|\w+_msgs)'", done.stderr)
