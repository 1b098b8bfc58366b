"""Distances of an arm to itself and to what stands around it."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from load_identification.errors import DescriptionError, FrameError, ParameterError
from load_identification.motion.clearance import Clearance
from load_identification.motion.limits import Box
from load_identification.typing_aliases import FloatArray

LENGTH, THICK = 0.4, 0.1
BOX = f'<box size="{THICK} {THICK} {LENGTH}"/>'
MESH = '<mesh filename="package://some_arm/meshes/link.stl" scale="1 1 2"/>'


def link(name: str, shape: str) -> str:
    body = f'<origin xyz="0 0 {LENGTH / 2}"/><geometry>{shape}</geometry>'
    return f'<link name="{name}">{f"<collision>{body}</collision>" if shape else ""}</link>'


def arm(shape: str = BOX, kind: str = 'revolute') -> str:
    """Three links that turn about y, one on top of the other, on a base without thickness."""
    links = ''.join(link(f'link_{k}', shape) for k in (1, 2, 3))
    joints = ''.join(
        f'<joint name="joint_{k}" type="{kind}"><parent link="{parent}"/>'
        f'<child link="link_{k}"/><origin xyz="0 0 {height}"/><axis xyz="0 1 0"/>'
        '<limit lower="-3" upper="3" effort="1" velocity="1"/></joint>'
        for k, parent, height in ((1, 'base', 0.2), (2, 'link_1', LENGTH), (3, 'link_2', LENGTH))
    )
    tip = (
        '<link name="tip"/><joint name="tip_joint" type="fixed"><parent link="link_3"/>'
        f'<child link="tip"/><origin xyz="0 0 {LENGTH}"/></joint>'
    )
    return f'<robot name="arm"><link name="base"/>{links}{joints}{tip}</robot>'


JOINTS = ('joint_1', 'joint_2', 'joint_3')
TURN = np.pi / 2.0


def test_the_height_over_the_floor_is_that_of_the_lowest_corner() -> None:
    clearance = Clearance(arm(), JOINTS, floor=0.05)
    # Lying flat at the height of the first joint; hanging down; all upright.
    postures = np.array([[TURN, 0.0, 0.0], [np.pi, 0.0, 0.0], [0.0, 0.0, 0.0]])
    low = np.array([0.2 - THICK / 2.0, 0.2 - 3.0 * LENGTH, 0.2]) - 0.05
    np.testing.assert_allclose(clearance.distance(postures), low, atol=1e-9)
    assert clearance.nearest(postures[1]) == 'link_3 and the floor'


def test_links_that_are_no_neighbours_keep_clear_of_each_other() -> None:
    clearance = Clearance(arm(), JOINTS, floor=None)
    # Folded back into a U: the third beside the first, as far as the second is long.
    beside, inside = [0.0, TURN, TURN], [0.0, np.deg2rad(150.0), np.deg2rad(150.0)]
    least = clearance.distance(np.array([beside, inside]))
    assert least[0] == pytest.approx(LENGTH - THICK, abs=1e-9)
    assert least[1] < 0.0
    assert clearance.nearest(np.array(inside)) == 'link_3 and link_1'


def test_links_built_nearer_than_is_kept_are_left_out_and_nothing_else() -> None:
    folded = np.deg2rad([[0.0, 150.0, 150.0]])
    # The third link is never farther from the first than the second is long.
    kept = 1.1 * LENGTH
    assert Clearance(arm(), JOINTS, floor=None, kept=kept).distance(folded)[0] == np.inf
    assert Clearance(arm(), JOINTS, floor=None, kept=0.9 * LENGTH).distance(folded)[0] < 0.0
    above = Clearance(arm(), JOINTS, floor=0.0, kept=10.0)
    assert above.distance(np.array([[TURN, 0.0, 0.0]]))[0] == pytest.approx(0.2 - THICK / 2.0)
    box = Box(np.array([-1.0, -1.0, 1.6]), np.array([1.0, 1.0, 2.0]))
    below = Clearance(arm(), JOINTS, floor=None, keep_out=[box], kept=10.0)
    assert below.distance(np.zeros((1, 3)))[0] == pytest.approx(0.2)
    held = Clearance(arm(), JOINTS, floor=None, tip_frame='tip', payload_radius=0.2, kept=10.0)
    assert held.nearest(folded[0]) == 'the payload and link_1'


@pytest.mark.parametrize('kind', ['revolute', 'continuous', 'prismatic'])
def test_the_derivative_is_that_of_the_distance(kind: str) -> None:
    clearance = Clearance(
        arm(kind=kind),
        JOINTS[::-1],
        floor=0.0,
        keep_out=[Box(np.array([0.5, -0.3, 0.2]), np.array([0.8, 0.1, 0.5]))],
        workspace=Box(np.full(3, -1.0), np.full(3, 1.0)),
        tip_frame='tip',
        payload_radius=0.1,
    )
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (50, 3))
    distance, slope = clearance.gradient(q)
    np.testing.assert_array_equal(distance, clearance.distance(q))
    step = 1e-6 * np.eye(3)
    above, below = (
        np.stack([clearance.distance(q + sign * row) for row in step], axis=1)
        for sign in (1.0, -1.0)
    )
    # Where another pair becomes the nearest within a step, there is no derivative.
    close = np.abs((above - below) / 2e-6 - slope).max(axis=1) < 1e-5
    assert close.mean() >= 0.95


def test_the_payload_the_boxes_and_the_workspace_count() -> None:
    upright = np.zeros((1, 3))
    top = 0.2 + 3.0 * LENGTH
    ceiling = Box(np.array([-1.0, -1.0, top + 0.3]), np.array([1.0, 1.0, top + 1.0]))
    room = Box(np.full(3, -1.0), np.array([1.0, 1.0, top + 0.2]))

    def least(**what: object) -> float:
        found = Clearance(arm(), JOINTS, floor=None, tip_frame='tip', **what)  # type: ignore[arg-type]
        return float(found.distance(upright)[0])

    assert least() == pytest.approx(LENGTH, abs=1e-9)
    assert least(keep_out=[ceiling]) == pytest.approx(0.3, abs=1e-9)
    assert least(keep_out=[ceiling], payload_radius=0.25) == pytest.approx(0.05, abs=1e-6)
    assert least(workspace=room) == pytest.approx(0.2, abs=1e-9)


def test_joints_that_are_not_named_stand_at_zero() -> None:
    clearance = Clearance(arm(), ['joint_2'], floor=0.0)
    # The upper two hang down from the end of the lowest.
    low = 0.2 + LENGTH - 2.0 * LENGTH
    assert clearance.distance(np.array([[np.pi]]))[0] == pytest.approx(low, abs=1e-9)


def stl(path: Path, size: FloatArray) -> None:
    """Write a box from the origin's middle as triangles."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * size / 2.0
    faces = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)]
    faces += [(2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)]
    triangles = b''.join(
        struct.pack('<12fH', 0.0, 0.0, 0.0, *corners[list(face)].ravel(), 0) for face in faces
    )
    path.parent.mkdir(parents=True)
    path.write_bytes(bytes(80) + struct.pack('<I', len(faces)) + triangles)


@pytest.mark.parametrize('variable', ['AMENT_PREFIX_PATH', 'ROS_PACKAGE_PATH'])
def test_meshes_are_found_where_ros_has_them(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    share = 'share' if variable == 'AMENT_PREFIX_PATH' else ''
    stl(
        tmp_path / share / 'some_arm' / 'meshes' / 'link.stl',
        np.array([THICK, THICK, LENGTH / 2.0]),
    )
    monkeypatch.setenv(variable, f'/nowhere:{tmp_path}')
    meshes = Clearance(arm(MESH), JOINTS, floor=0.0)
    assert meshes.guessed == {}
    q = np.random.default_rng(0).uniform(-3.0, 3.0, (20, 3))
    boxes = Clearance(arm(), JOINTS, floor=0.0)
    np.testing.assert_allclose(meshes.distance(q), boxes.distance(q), atol=1e-6)


def test_folders_of_meshes_may_be_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stl(tmp_path / 'install/share/some_arm/meshes/link.stl', np.full(3, THICK))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('AMENT_PREFIX_PATH', 'install')
    monkeypatch.delenv('ROS_PACKAGE_PATH', raising=False)
    assert Clearance(arm(MESH), JOINTS, floor=0.0).guessed == {}


@pytest.mark.parametrize(
    'content',
    [
        b'',
        b'version https://git-lfs.github.com/spec/v1',
        bytes(80) + struct.pack('<I', 12) + bytes(60),
        bytes(80) + struct.pack('<I12fH', 1, *(np.nan,) * 12, 0),
    ],
    ids=['empty', 'not fetched', 'cut short', 'nan'],
)
def test_links_whose_meshes_cannot_be_read_are_guessed_and_named(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / 'some_arm/meshes/link.stl'
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    monkeypatch.setenv('ROS_PACKAGE_PATH', str(tmp_path))
    clearance = Clearance(arm(MESH), JOINTS, floor=0.0)
    assert set(clearance.guessed) == {'link_1', 'link_2', 'link_3'}
    assert f'cannot be read from {path}' in clearance.guessed['link_1']


@pytest.mark.parametrize('shape', [MESH, ''])
def test_links_without_geometry_are_guessed_and_named(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ('AMENT_PREFIX_PATH', 'ROS_PACKAGE_PATH'):
        monkeypatch.delenv(variable, raising=False)
    clearance = Clearance(arm(shape), JOINTS, floor=0.0)
    assert {'link_1', 'link_2', 'link_3'} <= set(clearance.guessed)
    radius = 0.07 * (0.2 + 2.0 * LENGTH)
    flat = clearance.distance(np.array([[TURN, 0.0, 0.0]]))[0]
    assert flat == pytest.approx(0.2 - radius, abs=1e-6)
    assert clearance.guessed_radius == pytest.approx(radius)


def test_what_cannot_be_kept_is_refused() -> None:
    around = Box(np.array([-2.0, -2.0, 0.0]), np.array([2.0, 2.0, 3.0]))
    with pytest.raises(ParameterError, match='link_1 touches a keep-out box in all'):
        Clearance(arm(), JOINTS, floor=None, keep_out=[around])
    with pytest.raises(FrameError, match="'base' is not a link that the joints move"):
        Clearance(arm(), JOINTS, floor=None, tip_frame='base', payload_radius=0.1)
    with pytest.raises(ParameterError, match='first corner below the second'):
        Box(np.zeros(3), np.array([1.0, -1.0, 1.0]))


def test_a_pinocchio_without_distances_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr('pinocchio.coal')
    with pytest.raises(DescriptionError, match=r'built with coal; .* was not: pip install'):
        Clearance(arm(), JOINTS, floor=0.0)
