"""Build of the package, for colcon (ament_python) and for pip alike."""

from glob import glob
from pathlib import Path

from setuptools import find_packages, setup

NAME = 'load_identification'


def files_in(directory: str) -> list[str]:
    """List the files directly in a directory, as paths relative to this one."""
    return sorted(path for path in glob(f'{directory}/*') if Path(path).is_file())


def ros_wheels(distro: str) -> list[str]:
    """List the wheels of ROS 2 packages that the nodes need, of one distribution."""
    packages = (
        'builtin-interfaces',
        'diagnostic-msgs',
        'geometry-msgs',
        'rcl-interfaces',
        'rclpy[fastrtps]',
        'sensor-msgs',
        'std-msgs',
        'std-srvs',
        'trajectory-msgs',
        'visualization-msgs',
    )
    return [f'ros-{distro}-{package}' for package in packages]


setup(
    name=NAME,
    version='0.1.0',
    description="Live identification of a robot arm's payload from a wrist force/torque sensor",
    license='Apache-2.0',
    maintainer='load_identification maintainers',
    maintainer_email='maintainers@users.noreply.a-seed-938da300.example',
    python_requires='>=3.10',
    packages=find_packages(include=[NAME, f'{NAME}.*']),
    package_data={NAME: ['py.typed', 'nodes/transport/*.xml']},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{NAME}']),
        (f'share/{NAME}', ['package.xml']),
        (f'share/{NAME}/launch', files_in('launch')),
        (f'share/{NAME}/config', files_in('config')),
    ],
    # Names on the package index. On a robot rosdep brings the same modules from package.xml;
    # the console scripts that colcon makes do not look at this list.
    install_requires=['matplotlib', 'numpy', 'pillow', 'pin>=3.4', 'pyyaml', 'rich', 'scipy'],
    extras_require={
        # ROS 2 as wheels, for a machine without ROS (CPython 3.10 to 3.14, x86-64).
        'ros': ros_wheels('jazzy'),
        'ros-kilted': ros_wheels('kilted'),
        # Opens recordings where there is no rosbag2_py of ROS.
        'recordings': ['rosbags>=0.10'],
        'test': [
            'mujoco',
            'mypy',
            'pytest',
            'pytest-xdist',
            'ruff',
            # The first that builds a wheel without the package `wheel`.
            'setuptools>=70.1',
            'types-PyYAML',
        ],
    },
    entry_points={
        'console_scripts': [
            f'load_identification = {NAME}.nodes.transport.entry:load_identification',
            f'fusion_node = {NAME}.nodes.transport.entry:fusion_node',
            f'filter_node = {NAME}.nodes.transport.entry:filter_node',
            f'estimator_node = {NAME}.nodes.transport.entry:estimator_node',
            f'compensation_node = {NAME}.nodes.transport.entry:compensation_node',
            f'hexapod_node = {NAME}.nodes.transport.entry:hexapod_node',
            f'arm_estimator_node = {NAME}.nodes.transport.entry:arm_estimator_node',
            f'load_demo = {NAME}.commands.load_demo:main',
            f'identify_load = {NAME}.commands.identify_load:main',
            f'identify_arm = {NAME}.commands.identify_arm:main',
            f'hexapod_demo = {NAME}.commands.hexapod_demo:main',
            f'load_monitor = {NAME}.commands.load_monitor:main',
            f'identify_payload = {NAME}.commands.guided.identify_payload:main',
            f'plan_excitation = {NAME}.commands.plan_excitation:main',
        ]
    },
    zip_safe=False,
)
