"""Build of the package, for colcon (ament_python) and for pip alike."""

from glob import glob
from pathlib import Path

from setuptools import find_packages, setup

NAME = 'load_identification'


def files_in(directory: str) -> list[str]:
    """List the files directly in a directory, as paths relative to this one."""
    return sorted(path for path in glob(f'{directory}/*') if Path(path).is_file())


setup(
    name=NAME,
    version='0.1.0',
    description="Live identification of a robot arm's payload from a wrist force/torque sensor",
    license='Apache-2.0',
    maintainer='load_identification maintainers',
    maintainer_email='maintainers@users.noreply.a-seed-938da300.example',
    python_requires='>=3.10',
    packages=find_packages(include=[NAME, f'{NAME}.*']),
    package_data={NAME: ['py.typed', 'nodes/fastdds.xml']},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{NAME}']),
        (f'share/{NAME}', ['package.xml']),
        (f'share/{NAME}/launch', files_in('launch')),
        (f'share/{NAME}/config', files_in('config')),
    ],
    # Names on the package index. On a robot rosdep brings the same modules from package.xml;
    # the console scripts that colcon makes do not look at this list.
    install_requires=[
        'matplotlib',
        'numpy',
        'pillow',
        'pin>=3',
        'pyyaml',
        'rich',
        'rosbags>=0.10',
        'scipy',
    ],
    extras_require={
        # ROS 2 Jazzy as wheels, for a machine without ROS (CPython 3.10 to 3.14, x86-64).
        'ros': [
            'ros-jazzy-builtin-interfaces',
            'ros-jazzy-diagnostic-msgs',
            'ros-jazzy-geometry-msgs',
            'ros-jazzy-rcl-interfaces',
            'ros-jazzy-rclpy[fastrtps]',
            'ros-jazzy-sensor-msgs',
            'ros-jazzy-std-msgs',
            'ros-jazzy-std-srvs',
            'ros-jazzy-visualization-msgs',
        ],
        'test': [
            'mujoco',
            'mypy',
            'pytest',
            'ruff',
            # The first that builds a wheel without the package `wheel`.
            'setuptools>=70.1',
            'types-PyYAML',
        ],
    },
    entry_points={
        'console_scripts': [
            f'load_identification = {NAME}.nodes.entry:load_identification',
            f'fusion_node = {NAME}.nodes.entry:fusion_node',
            f'filter_node = {NAME}.nodes.entry:filter_node',
            f'estimator_node = {NAME}.nodes.entry:estimator_node',
            f'hexapod_node = {NAME}.nodes.entry:hexapod_node',
            f'arm_estimator_node = {NAME}.nodes.entry:arm_estimator_node',
            f'load_demo = {NAME}.tools.demo:main',
            f'identify_load = {NAME}.tools.identify:main',
            f'identify_arm = {NAME}.tools.identify_arm:main',
            f'hexapod_demo = {NAME}.tools.hexapod_demo:main',
            f'load_monitor = {NAME}.tools.monitor:main',
            f'plan_excitation = {NAME}.tools.plan_excitation:main',
        ],
    },
    zip_safe=False,
)
