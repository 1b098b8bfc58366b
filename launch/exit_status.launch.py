"""Ends a launch, with status 1, when a program of this package ends with an error.

To be included: launch itself returns 0 whatever its processes do, which hides from a supervisor
that a node has refused its parameters. Other packages' processes are none of its business.
"""

from __future__ import annotations

from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.actions import RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited


def generate_launch_description() -> LaunchDescription:
    """Return what launch is to do."""
    return LaunchDescription([RegisterEventHandler(OnProcessExit(on_exit=_check))])


def _check(event: ProcessExited, context: LaunchContext) -> None:
    ours = Path(event.cmd[0]).parent.name == 'load_identification'
    if ours and event.returncode and not context.is_shutdown:
        # An exception is what makes launch end all its processes, and its status 1.
        raise RuntimeError(f'{event.process_name} has ended with status {event.returncode}')
