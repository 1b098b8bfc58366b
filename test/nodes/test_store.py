"""What survives a restart: whole or not at all, and nothing damaged is believed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import yaml

import load_identification
from load_identification.estimation.belief.tool import Shared
from load_identification.estimation.sensor_offset import OfErrors, OffsetPrior
from load_identification.nodes.store import (
    DriverState,
    Persistence,
    Stored,
    StoredTool,
    StoreError,
    load,
    path_for,
    save,
)
from load_identification.typing_aliases import FloatArray

Kept = StoredTool | OffsetPrior | Shared | OfErrors | DriverState | None


def quantity(size: int, seed: int) -> tuple[FloatArray, FloatArray, int]:
    """Return value, full covariance and stamp."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((size, size))
    value, covariance = rng.standard_normal(size), root @ root.T + np.eye(size)
    return value, covariance, 1_700_000_000_123_456_789


SHARED = Shared(
    ('gain.fx', 'cross_talk.fx.ty'),
    np.array([0.004, -0.001]),
    np.random.default_rng(3).standard_normal((10, 2)),
    quantity(10, 4)[1],
)
OF_ERRORS = OfErrors(
    ('gain_common', 'joint_zero.1'),
    np.random.default_rng(5).standard_normal((6, 2)),
    np.arange(6.0),
)
STORED = Stored(
    OffsetPrior(
        *quantity(6, 1),
        np.array([0.03, 0.002]),
        None,
        OF_ERRORS,
        play=np.array([0.1, 0.0, 0.12, 0.0, 0.0, 0.004]),
        frame='s',
    ),
    StoredTool(*quantity(10, 2)[:2], SHARED, quantity(10, 2)[2], frame='wrist_ft'),
)


def assert_equal(one: Kept, other: Kept) -> None:
    """Check that two quantities are the same to the last bit."""
    assert one is not None
    assert other is not None
    assert vars(one).keys() == vars(other).keys()
    for name, value in vars(one).items():
        if isinstance(value, Shared | OfErrors):
            assert_equal(value, getattr(other, name))
        else:
            np.testing.assert_array_equal(value, getattr(other, name))


def test_what_was_saved_is_loaded_to_the_last_bit(tmp_path: Path) -> None:
    path = tmp_path / 'deep' / 'left.yaml'
    save(path, STORED)
    loaded = load(path)
    assert_equal(loaded.offset, STORED.offset)
    assert_equal(loaded.tool, STORED.tool)
    assert [entry.name for entry in path.parent.iterdir()] == ['left.yaml']


def test_nothing_saved_is_nothing_known(tmp_path: Path) -> None:
    assert load(tmp_path / 'none.yaml') == Stored()


def test_offset_or_tool_alone_are_kept(tmp_path: Path) -> None:
    path = tmp_path / 'a.yaml'
    save(path, Stored(offset=STORED.offset))
    assert load(path).tool is None
    save(path, Stored(tool=STORED.tool))
    assert load(path).offset is None
    assert_equal(load(path).tool, STORED.tool)
    driver = DriverState(np.arange(10.0), np.zeros(10), 3, 'wrist_ft')
    save(path, replace(STORED, driver=driver))
    assert_equal(load(path).driver, driver)


def test_a_file_from_before_there_were_errors_frames_and_drivers_is_read(tmp_path: Path) -> None:
    path = tmp_path / 'a.yaml'
    save(path, STORED)
    document = yaml.safe_load(path.read_text())
    del document['driver']
    for section, keys in (
        ('tool', ('errors', 'alone', 'frame')),
        ('offset', ('errors', 'level', 'play', 'frame')),
    ):
        for key in keys:
            del document[section][key]
    path.write_text(yaml.safe_dump(document))
    stored = load(path)
    assert stored.driver is None
    assert stored.tool.frame == stored.offset.frame == ''
    assert stored.tool.shared is None
    assert stored.offset.of_errors is None
    np.testing.assert_array_equal(stored.tool.parameters, STORED.tool.parameters)


def test_what_was_kept_without_its_frame_is_written_with_the_first_that_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('ROS_HOME', str(tmp_path))
    node = Mock()
    node.get_namespace.return_value = '/arm'
    offset, tool = replace(STORED.offset, frame=''), replace(STORED.tool, frame='other')
    save(path_for('/arm'), Stored(offset, tool))
    persistence = Persistence(node)
    for frame in ('', 'first', 'second'):
        persistence.take_as_of(frame)
    driver = DriverState(np.zeros(10), np.zeros(10), 3, 'second')
    persistence.keep(replace(persistence.stored, driver=driver)).result()
    persistence.close()
    kept = load(path_for('/arm'))
    assert (kept.offset.frame, kept.tool.frame, kept.driver.frame) == ('first', 'other', 'second')


def test_the_file_can_be_read_by_a_person(tmp_path: Path) -> None:
    path = tmp_path / 'a.yaml'
    save(path, STORED)
    text = path.read_text()
    assert text.startswith('#')
    document = yaml.safe_load(text)
    assert document['version'] == 1
    assert document['offset']['std'] == pytest.approx(
        np.sqrt(np.diag(STORED.offset.covariance)).tolist()
    )


def test_each_namespace_has_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv('ROS_HOME', str(tmp_path))
    folder = tmp_path / 'load_identification'
    assert path_for('/load_identification') == folder / 'load_identification.yaml'
    assert path_for('/left/load_identification') == folder / 'left' / 'load_identification.yaml'
    monkeypatch.delenv('ROS_HOME')
    home = Path.home() / '.ros' / 'load_identification'
    assert path_for('/arm') == home / 'arm.yaml'


def damaged() -> dict[str, bytes]:
    """Return unusable files by what is wrong with them."""

    def changed(section: str, key: str, value: object) -> bytes:
        document = {
            'version': 1,
            'offset': {
                'stamp': 1,
                'value': [0.0] * 6,
                'covariance': np.eye(6).tolist(),
                'noise': [0.1, 0.1],
            },
            'tool': None,
        }
        if section == 'tool':
            tool = {'stamp': 1, 'value': [0.0] * 10, 'covariance': np.eye(10).tolist()}
            document['tool'] = tool | {'errors': {}, 'alone': np.eye(10).tolist()}
        if section:
            document[section][key] = value  # type: ignore[index]
        else:
            document[key] = value
        return yaml.safe_dump(document).encode()

    lopsided = np.eye(6)
    lopsided[0, 1] = 0.5
    return {
        'empty': b'',
        'no yaml': b'version: [1',
        'no text': b'\xff\xfe\x00',
        'a list': b'- 1',
        'truncated': changed('', 'tool', None)[:-40],
        'no version': b'offset: null\ntool: null\n',
        'future version': changed('', 'version', 2),
        'short': changed('offset', 'value', [0.0] * 5),
        'words': changed('offset', 'value', ['a'] * 6),
        'not finite': changed('offset', 'value', [float('nan')] * 6),
        'infinite stamp': changed('offset', 'stamp', float('inf')),
        'negative variance': changed('offset', 'covariance', (-np.eye(6)).tolist()),
        'no variance': changed('offset', 'covariance', np.zeros((6, 6)).tolist()),
        'not positive': changed('offset', 'covariance', (np.eye(6) * 3 - 1).tolist()),
        'not symmetric': changed('offset', 'covariance', lopsided.tolist()),
        'no noise': changed('offset', 'noise', [0.0, 0.1]),
        'no play': changed('offset', 'play', [0.1, 0.1, -0.1, 0.0, 0.0, 0.0]),
        'no level': changed('offset', 'errors', {'gain.fx': [0.0] * 6}),
        'short error': changed('offset', 'errors', {'gain.fx': [0.0] * 5}),
        'no list of errors': changed('tool', 'errors', [1.0]),
        'half an error': changed('tool', 'errors', {'gain.fx': [0.0] * 10}),
        'alone negative': changed('tool', 'alone', (-np.eye(10)).tolist()),
        'no frame': changed('offset', 'frame', 3),
        'no driver': changed('', 'driver', [1]),
        'half a driver': changed('', 'driver', {'stamp': 1, 'held': [0.0] * 10}),
    }


@pytest.mark.parametrize('wrong', damaged())
def test_a_damaged_file_is_set_aside_and_named(wrong: str, tmp_path: Path) -> None:
    path = tmp_path / 'arm.yaml'
    content = damaged()[wrong]
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r'arm\.yaml cannot be used .*: moved to arm') as raised:
        load(path)
    assert '\n' not in str(raised.value)
    assert not path.exists()
    assert (tmp_path / 'arm.yaml.damaged-1').read_bytes() == content
    assert load(path) == Stored()


def test_the_undamaged_twin_of_those_files_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / 'arm.yaml'
    document = yaml.safe_load(damaged()['future version'])
    document['version'] = 1
    path.write_text(yaml.safe_dump(document))
    assert load(path).offset is not None


def test_a_second_damaged_file_does_not_replace_the_first(tmp_path: Path) -> None:
    path = tmp_path / 'arm.yaml'
    for content in ('one', 'two'):
        path.write_text(content)
        with pytest.raises(StoreError):
            load(path)
    assert (tmp_path / 'arm.yaml.damaged-1').read_text() == 'one'
    assert (tmp_path / 'arm.yaml.damaged-2').read_text() == 'two'


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / 'arm.yaml'
    save(path, STORED)
    before = path.read_bytes()
    with pytest.raises(AttributeError):
        save(path, Stored(offset='no offset'))  # type: ignore[arg-type]
    assert path.read_bytes() == before
    blocked = tmp_path / 'file' / 'arm.yaml'
    blocked.parent.write_text('a file where the folder should be')
    with pytest.raises(OSError, match='file'):
        save(blocked, STORED)


def test_what_a_killed_save_left_is_swept_away_later(tmp_path: Path) -> None:
    path = tmp_path / 'arm.yaml'
    old, young = tmp_path / 'arm.yaml.abc.new', tmp_path / 'arm.yaml.def.new'
    other = tmp_path / 'other.yaml.abc.new'
    for file in (old, young, other):
        file.write_text('half')
    os.utime(old, (0, 0))
    os.utime(other, (0, 0))
    save(path, STORED)
    assert not old.exists()
    assert young.exists()
    assert other.exists()


SAVER = """
import os
import sys
from pathlib import Path
import numpy as np
from load_identification.estimation.sensor_offset import OffsetPrior
from load_identification.nodes.store import Stored, StoredTool, save
path = Path(sys.argv[1])
BODY = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0]
# Each line that comes is a count: a child begins to save there and goes on till it is killed.
for line in sys.stdin:
    child = os.fork()
    if child:
        print(child, flush=True)
        os.waitpid(child, 0)
        print('dead', flush=True)
        continue
    count = int(line)
    while True:
        count += 1
        # Every number of a file is a multiple of its count, so a mixture of two would show.
        save(path, Stored(
            OffsetPrior(
                np.full(6, float(count)), count * np.eye(6), count, np.full(2, float(count))
            ),
            StoredTool(count * np.array(BODY), count * np.eye(10), None, count),
        ))
"""


BODY = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0]


def test_kill_at_any_moment_of_saving_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / 'arm.yaml'
    code = str(Path(load_identification.__file__).resolve().parents[1])
    rng = np.random.default_rng(0)
    count = kills = 0
    with subprocess.Popen(
        [sys.executable, '-c', SAVER, str(path)],
        env=os.environ | {'PYTHONPATH': code},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as saver:
        assert saver.stdout is not None
        # So long that kills have met saves; a busy machine saves less often than it kills.
        while kills < 30 or count <= 10:
            kills += 1
            saver.stdin.write(f'{count}\n')
            child = int(saver.stdout.readline())
            # Up to a few saves long, so that the kill falls into any part of one.
            with pytest.raises(subprocess.TimeoutExpired):
                saver.wait(float(rng.uniform(0.0, 0.03)))
            os.kill(child, signal.SIGKILL)
            assert saver.stdout.readline() == 'dead\n'
            stored = load(path)
            if stored == Stored():
                # Killed before the first file ever was whole.
                assert count == 0
                continue
            assert stored.offset.stamp >= count
            count = stored.offset.stamp
            assert set(stored.offset.mean) == {float(count)}
            np.testing.assert_array_equal(stored.tool.parameters, count * np.array(BODY))
            assert set(np.diag(stored.offset.covariance)) == {float(count)}
            assert set(np.diag(stored.tool.covariance)) == {float(count)}
        saver.stdin.close()
    assert not list(tmp_path.glob('*.damaged-*'))
