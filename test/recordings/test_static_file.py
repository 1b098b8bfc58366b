"""identify_load --static: files of poses and options that cannot be used, in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from static_arm import options

from load_identification.commands.identify_load import main

HEADER = 'qx,qy,qz,qw,fx,fy,fz,tx,ty,tz'
POSE = '0,0,0,1,1,2,3,0.1,0.2,0.3'


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('', 'has no poses'),
        (HEADER, 'has no poses'),
        (HEADER.replace(',', ';') + '\n' + POSE, 'columns are parted by commas'),
        ('qx,qx,qz,qw,fx,fy,fz\n0,0,0,1,1,2,3', "column 2 is 'qx' for the second time"),
        ('qx,qy,qz,qw,fx,fy\n0,0,0,1,1,2', 'fx, fy and fz are needed'),
        ('fx,fy,fz\n1,2,3', 'neither joints nor qx, qy, qz, qw'),
        ('qx,qy,qz,joint_1,fx,fy,fz\n0,0,0,1,1,2,3', 'either joints or qx, qy, qz, qw'),
        (f'{HEADER},fx.std\n{POSE},0.1', 'standard errors of fx, but the wrench has'),
        (f'{HEADER}\n{POSE}\n# a remark\n\n{POSE},7', 'line 5: 11 values for 10 columns'),
        (f'{HEADER}\n{POSE.replace(".", ",")}', 'numbers have a decimal point, not a comma'),
        (f'{HEADER}\n{POSE.replace("3,0.1", "x,0.1")}', "line 2: fz is 'x'; it must be a finite"),
        (f'{HEADER}\n{POSE.replace("3,0.1", "nan,0.1")}', "line 2: fz is 'nan'"),
        (f'{HEADER}\n{POSE.replace("3,0.1", ",0.1")}', "line 2: fz is ''"),
        (f'{HEADER}\n{POSE}\n{POSE.replace("0,0,0,1", "0,0,0,2")}', 'line 3: the quaternion'),
        (f'{POSE}\n{POSE}', 'column names: the first line is 0, 0, 0, 1, 1, 2, 3, 0.1, 0.2, 0.3'),
        (
            f'{POSE}\n{POSE}',
            'it must name the columns: fx, fy, fz, tx, ty, tz, and qx, qy, qz, qw or joints',
        ),
        ('joint_1,fx,fy,fz\n0.9,1,2,3', '--description URDF and --sensor-frame LINK'),
    ],
)
def test_unusable_file_is_refused_with_line_and_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    file = tmp_path / 'poses.csv'
    file.write_text(text)
    assert main(['--static', str(file)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count('\n') == 1


def test_other_joints_than_those_of_the_arm_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / 'poses.csv'
    file.write_text('joint_1,fx,fy,fz\n0.9,1,2,3')
    assert main(['--static', str(file), *options(tmp_path)]) == 2
    assert '; shoulder_pan, shoulder_lift, elbow, ' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        ([], 'needs a RECORDING, or --static'),
        (['bag', '--static', 'poses.csv'], 'needs a RECORDING, or --static'),
        (['--static', 'poses.csv', '--report', 'here'], 'leave out --static'),
        (['--static', 'none.csv'], 'none.csv cannot be read: No such file'),
        (['--static', 'poses.csv', '--gravity', '0', '0', '0'], 'parameter gravity is'),
    ],
)
def test_what_does_not_go_together_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(arguments) == 2
    assert words in capsys.readouterr().err
