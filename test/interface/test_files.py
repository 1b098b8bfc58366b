"""Files that were written to hurt, and files as they are: bounded, and named with the reason."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from bags import START
from checkout import ROOT

from load_identification.arm.arm_file import read_arm_model
from load_identification.arm.planning.plan_file import read_plan
from load_identification.errors import LoadIdentificationError
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.files import DEEPEST, FileError, read_yaml, write_whole
from load_identification.interface.parameter_file import from_yaml
from load_identification.interface.parameters import Parameters
from load_identification.nodes import store
from load_identification.parallel.geometry_file import read_geometry
from load_identification.recordings.result import Identification
from load_identification.weighing.catalogue import LIMIT, catalogue_from, load_catalogue

READERS: dict[str, Callable[[Path], object]] = {
    'store': store.load,
    'catalogue': load_catalogue,
    'parameters': from_yaml,
    'mechanism': read_geometry,
    'arm': read_arm_model,
    'plan': read_plan,
}

CONFIG = ROOT / 'config'


def bomb(levels: int) -> str:
    """Return a text whose aliases amount to 9 to the power of levels."""
    lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x]']
    for n in range(1, levels):
        lines.append(f'a{n}: &a{n} [{", ".join([f"*a{n - 1}"] * 9)}]')
    return '\n'.join(lines)


TEXTS = {
    'nested lists': '[' * 100_000,
    'nested mappings': '{a: ' * 100_000,
    'nested by indentation': '\n'.join(' ' * n + 'a:' for n in range(1000)),
    'nested keys': '? ' * 50_000,
    'bomb of aliases': bomb(12),
    'within itself': 'a: &a [*a]',
    'alias of nothing': 'a: *b',
    'object of Python': 'a: !!python/object/apply:os.system ["true"]',
    'two documents': 'a: 1\n---\na: 2\n',
    'not closed': 'a: [1, 2',
    'a character that may not be': 'a: \x00',
    'a text of 2 MB': 'a: ' + 'x' * 2_000_000,
}


@pytest.mark.parametrize('reader', READERS)
@pytest.mark.parametrize('text', TEXTS)
def test_a_file_written_to_hurt_is_refused_in_one_short_line(
    reader: str, text: str, tmp_path: Path
) -> None:
    path = tmp_path / 'it.yaml'
    path.write_text(TEXTS[text], encoding='utf-8')
    with pytest.raises(LoadIdentificationError) as raised:
        READERS[reader](path)
    words = str(raised.value)
    assert words.count('\n') == 0
    assert len(words.replace(str(tmp_path), '')) < 400
    assert 'it.yaml' in words


@pytest.mark.parametrize('reader', READERS)
@pytest.mark.parametrize('kind', ['pipe', 'device', 'folder', 'bytes'])
def test_what_is_no_file_of_text_is_refused(reader: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / 'it.yaml'
    if kind == 'pipe':
        os.mkfifo(path)
    elif kind == 'device':
        path.symlink_to('/dev/zero')
    elif kind == 'folder':
        path.mkdir()
    else:
        path.write_bytes(b'\xff\xfe\xfa')
    with pytest.raises(LoadIdentificationError, match=r'it\.yaml') as raised:
        READERS[reader](path)
    assert ('UTF-8' if kind == 'bytes' else 'is no regular file') in str(raised.value)


def documents() -> dict[str, tuple[dict[str, Any], tuple[str | int, ...]]]:
    """Return a whole file for some readers, and where in it a number stands."""
    identity = [[float(i == j) for j in range(6)] for i in range(6)]
    offset = {'stamp': 1, 'value': [0.0] * 6, 'covariance': identity, 'noise': [0.1, 0.1]}
    stored = {'version': 1, 'offset': offset, 'tool': None}
    cup = {
        'name': 'cup',
        'mass': 0.3,
        'mass_tolerance': 0.01,
        'center_of_mass': [0.0, 0.0, 0.0],
        'principal_moments': [3e-3, 2e-3, 2e-3],
        'principal_moments_tolerance': 1e-4,
    }
    catalogue = {'objects': [cup]}
    parameters = {'/**': {'ros__parameters': {'force_noise': 0.1, 'gravity': [0.0, 0.0, -9.8]}}}
    hexapod = yaml.safe_load((CONFIG / 'hexapod.yaml').read_text(encoding='utf-8'))
    return {
        'store offset': (stored, ('offset', 'value', 2)),
        'store covariance': (stored, ('offset', 'covariance', 2, 2)),
        'store stamp': (stored, ('offset', 'stamp')),
        'catalogue mass': (catalogue, ('objects', 0, 'mass')),
        'catalogue tolerance': (catalogue, ('objects', 0, 'mass_tolerance')),
        'catalogue center': (catalogue, ('objects', 0, 'center_of_mass', 1)),
        'catalogue moments': (catalogue, ('objects', 0, 'principal_moments', 0)),
        'parameters number': (parameters, ('/**', 'ros__parameters', 'force_noise')),
        'parameters vector': (parameters, ('/**', 'ros__parameters', 'gravity', 2)),
        'mechanism base': (hexapod, ('legs', 'leg_3', 'base', 1)),
        'mechanism stroke': (hexapod, ('stroke', 'longest')),
        'mechanism home': (hexapod, ('home', 2)),
    }


@pytest.mark.parametrize('value', ['1e300', '1' + '0' * 400, '1' + '0' * 5000, '.inf', '.nan',
                                   '2020-99-99', '-1e300', '[1, [2]]', '12:30:99'])  # fmt: skip
@pytest.mark.parametrize('where', documents())
def test_a_value_that_no_machine_has_is_refused(where: str, value: str, tmp_path: Path) -> None:
    document, place = documents()[where]
    reader = READERS[where.split()[0]]
    path = tmp_path / 'it.yaml'
    path.write_text(yaml.safe_dump(document), encoding='utf-8')
    reader(path)
    part: Any = document
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = 'VALUE'
    path.write_text(yaml.safe_dump(document).replace('VALUE', value), encoding='utf-8')
    with pytest.raises(LoadIdentificationError, match=r'it\.yaml') as raised:
        reader(path)
    assert len(str(raised.value).replace(str(tmp_path), '')) < 400


class Name(str):
    """A name that counts how often any is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return super().__eq__(other)

    __hash__ = str.__hash__


def test_a_catalogue_takes_time_in_proportion_to_its_objects() -> None:
    objects = [{'name': Name(n), 'mass': 1.0, 'mass_tolerance': 0.1} for n in range(1000)]
    assert len(catalogue_from({'objects': objects})) == 1000
    # Each once or so, where keys of one hash meet; each with each would be 10^6.
    assert Name.compared < 10_000


def test_a_catalogue_may_be_larger_than_other_files(tmp_path: Path) -> None:
    path = tmp_path / 'it.yaml'
    entry = 'name: object_{}, mass: 1.0, mass_tolerance: 0.1, center_of_mass: [0.01, 0.02, 0.03]'
    text = 'objects:\n' + ''.join(f'- {{{entry.format(n)}}}\n' for n in range(15_000))
    path.write_text(text, encoding='utf-8')
    assert path.stat().st_size > 1_000_000
    assert len(load_catalogue(path)) == 15_000
    path.write_text(text + '#' * LIMIT, encoding='utf-8')
    with pytest.raises(LoadIdentificationError, match=f'is larger than {LIMIT} bytes'):
        load_catalogue(path)


@pytest.mark.parametrize(
    ('text', 'value'),
    [
        ('', None),
        ('# nothing', None),
        ('7', 7),
        ('a: 1e-3', {'a': 1e-3}),
        ('a: -.5', {'a': -0.5}),
        ('a: 1.', {'a': 1.0}),
        ('a: 1700000000123456789', {'a': 1_700_000_000_123_456_789}),
        ('a: "1"', {'a': '1'}),
        ('a: 2020-01-01', {'a': '2020-01-01'}),
        ('a: [yes, off, ~, null, text]', {'a': [True, False, None, None, 'text']}),
        ('on: 1\n2: b', {'on': 1, '2': 'b'}),
        ('a: &x [1, 2]\nb: *x', {'a': [1, 2], 'b': [1, 2]}),
        ('a: {b: {c: [{}, []]}}', {'a': {'b': {'c': [{}, []]}}}),
        ('a: |\n  two\n  lines\n', {'a': 'two\nlines\n'}),
    ],
)
def test_values_are_those_that_ros_reads(text: str, value: object, tmp_path: Path) -> None:
    path = tmp_path / 'it.yaml'
    path.write_text(text, encoding='utf-8')
    read = read_yaml(path)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('a: 1\na: 2', "has 'a' for the second time, in line 2"),
        ('[a]: 1', 'has a key that is no text, in line 1'),
        ('a: !!float 1', 'has the tag'),
        ('[' * (DEEPEST + 1) + ']' * (DEEPEST + 1), f'nested deeper than {DEEPEST} levels'),
    ],
)
def test_what_is_refused_is_named_with_its_line(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / 'it.yaml'
    path.write_text(text, encoding='utf-8')
    with pytest.raises(FileError, match=words):
        read_yaml(path)


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / 'it.yaml'
    write_whole(path, 'old')
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, 'new \ud800')
    assert path.read_text(encoding='utf-8') == 'old'
    assert list(tmp_path.iterdir()) == [path]


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
        withheld=None,
        residual_rms=np.array([0.08, nan]),
        noise=np.array([0.1, 0.01]),
        total=np.full(10, nan),
        total_covariance=np.eye(10),
    )
    dropped = Counter({'wrench_not_finite': 12, 'joint_missing': 0})
    raw = Parameters(wrench_convention='on_load')
    whole = Identification(estimate, START, 13000, dropped, (), parameters=raw)
    return replace(whole, **changes)


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
    assert example().estimate_file() == GOLDEN


def test_estimate_file_reads_back_as_what_was_found(result: Identification) -> None:
    estimate = result.estimate
    read = yaml.safe_load(result.estimate_file())
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
    assert yaml.safe_load(odd.estimate_file())['frame'] == frame
