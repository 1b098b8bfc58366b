"""Send a path to a trajectory controller in segments that end at rest, and monitor the arm.

Each segment continues the path from the arm's present point and brakes to rest on it. The next
segment, sent long before, normally replaces that end. A late or missing segment therefore leaves
the arm at rest. Segments agree wherever they overlap, so the exact time of arrival is irrelevant.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

from load_identification.errors import LoadIdentificationError
from load_identification.interface.messages import NS, stamp_of
from load_identification.model.robot import Robot
from load_identification.motion.joint_path import Piece, Stretch
from load_identification.nodes.client.controller import Sender, hold_message, trajectory_message
from load_identification.nodes.transport.publishers import JOINT_STATES, WRENCH
from load_identification.nodes.transport.subscriptions import INPUT_QOS, DrainedSubscription
from load_identification.typing_aliases import FloatArray

SEGMENT = 2.0
"""Duration of the longest segment, braking included; without a new one the arm then rests [s]."""

STEP = 0.5
"""Time between two segments; the remainder of a segment is a margin for delays [s]."""

APPROACH, LEAD = 0.2, 0.1
"""Times from the first message to the first motion, and from a stop to the braking [s]."""

PERIOD = 0.01
"""Time between two checks of the arm [s]."""

STALE = 0.5
"""Longest allowed time between joint states, and between wrenches [s]."""

START, TRACKING = np.deg2rad(1.0), np.deg2rad(2.0)
"""Largest error at the start of a path, and to the path within the last `LAG` [rad, m]."""

LAG = 0.25
"""Largest lag of a controller [s]."""

HOLD = 2.0
"""Time to stop an arm that is off its path, as a multiple of the braking time on it [-]."""

SETTLING = 2.0
"""Time allowed to the arm to settle at its commanded position [s]."""


class StoppedError(LoadIdentificationError):
    """The motion was stopped or not begun; the text says why."""


class _Heard(NamedTuple):
    """The newest position of a joint [rad, m]: stamp and arrival, each on its own clock [ns].

    `ahead` is the largest lead of its stamps over this host's clock [ns].
    """

    position: float
    stamp: int
    when: int
    ahead: int


class ArmListener:
    """Receive joint states and wrenches, and keep the newest."""

    def __init__(self, node: Node) -> None:
        self.wrench_frame = ''
        """Frame of the newest wrench; empty before the first."""
        self._joints = DrainedSubscription(node, JointState, JOINT_STATES, INPUT_QOS)
        self._wrenches = DrainedSubscription(node, WrenchStamped, WRENCH, INPUT_QOS)
        self._newest: dict[str, _Heard] = {}
        self._wrench = 0, -np.inf

    def update(self) -> None:
        """Take in new messages; ignore positions and wrenches that are not newer or not finite."""
        for message in self._joints.take():
            now, stamp = time.monotonic_ns(), stamp_of(message)
            for name, position in zip(message.name, message.position, strict=False):
                before = self._newest.get(name, _Heard(0.0, 0, 0, stamp - now))
                if stamp > before.stamp and math.isfinite(position):
                    ahead = max(before.ahead, stamp - now)
                    self._newest[name] = _Heard(position, stamp, now, ahead)
        for message in self._wrenches.take()[-1:]:
            self.wrench_frame = message.header.frame_id
            if stamp_of(message) > self._wrench[0]:
                self._wrench = stamp_of(message), time.monotonic()

    def now(self, joints: Sequence[str]) -> int:
        """Return the time on the clock of these joints, independent of other clocks [ns]."""
        return time.monotonic_ns() + max(self._newest[name].ahead for name in joints)

    def heard(self, joints: Sequence[str]) -> bool:
        """Return whether a position of each of these joints has been received."""
        return set(joints) <= self._newest.keys()

    def position(self, joints: Sequence[str]) -> FloatArray:
        """Return the newest positions (J,) of joints that have been heard [rad, m]."""
        return np.array([self._newest[name].position for name in joints])

    def oldest(self, joints: Sequence[str]) -> int:
        """Return the oldest stamp of these positions [ns]."""
        return min(self._newest[name].stamp for name in joints)

    def stale(self, joints: Sequence[str]) -> str:
        """Return in words which input is missing or late; empty: none."""
        heard = {
            'wrenches': self._wrench[1],
            **{f'positions of {name}': self._newest[name].when / NS for name in joints},
        }
        what = min(heard, key=lambda name: heard[name])
        age = time.monotonic() - heard[what]
        if age > STALE:
            return f'no {what} for {age:.1f} s'
        # If stamps lag, a segment begins at another time than assumed here.
        ahead = {name: self._newest[name].stamp - self._newest[name].when for name in joints}
        last = min(joints, key=lambda name: ahead[name])
        late = (max(self._newest[name].ahead for name in joints) - ahead[last]) / NS
        if late <= STALE:
            return ''
        return (
            f'no joint states of now: {last} is {late:.1f} s late by its stamps: two clocks, or a '
            'simulation slower than real time?'
        )


def amount(robot: Robot, joint: int, way: float) -> str:
    """Return in words the angle [rad] or distance [m] of a joint."""
    return f'{1e3 * way:.0f} mm' if robot.prismatic[joint] else f'{np.rad2deg(way):.1f}°'


class PathFollower:
    """Make an arm follow paths from rest to rest; it can brake within a duration `brake` [s]."""

    def __init__(self, arm: ArmListener, sender: Sender, robot: Robot, brake: float) -> None:
        self._arm, self._sender, self._robot, self._brake = arm, sender, robot, brake
        self._joints = robot.joints
        # Positions of endless joints are compared modulo whole turns.
        self._endless = np.isinf(robot.position_limits).any(axis=0) & ~robot.prismatic

    def follow(
        self,
        path: Piece,
        finished: Callable[[], bool],
        wrong: Callable[[], str],
        shown: Callable[[float], None],
    ) -> FloatArray:
        """Follow a path from rest to its end or until finished; return the position at rest (J,).

        Both `finished` and `wrong` are polled: whether the arm may stop, and why it must (empty:
        it need not). `shown` is called with the time along the path [s].

        Raises StoppedError after the arm was brought to rest, or if it is not at the start of the
        path.
        """
        self._arm.update()
        if reason := self._arm.stale(self._joints):
            raise StoppedError(reason)
        if reason := self._elsewhere(path, 0.0):
            raise StoppedError(f'{reason}: something has moved the arm since, plan again')
        begin = self._arm.now(self._joints) + int(APPROACH * NS)
        run = SEGMENT - self._brake
        until = due = -APPROACH
        while True:
            self._arm.update()
            elapsed = (self._arm.now(self._joints) - begin) / NS
            shown(min(max(elapsed, 0.0), path.duration))
            if reason := self._sender.ended():
                # The controller holds the arm; a new command would move it on.
                raise StoppedError(reason)
            reason = wrong() or self._arm.stale(self._joints) or self._sender.refused()
            if not reason and (astray := self._astray(path, begin)):
                self._hold()
                raise StoppedError(astray)
            if not reason and until > 0.0 and elapsed > min(until, path.duration):
                if until >= path.duration:
                    return self._at_rest(path, path.duration)
                reason = 'this program was held up, and the arm has come to rest by itself'
            if reason or finished():
                rest = self._stop(path, begin, elapsed, until)
                if reason:
                    if not self._arm.stale(self._joints) and self._elsewhere(path, rest):
                        self._hold()
                    raise StoppedError(reason)
                return self._at_rest(path, rest)
            if elapsed >= due and until < path.duration:
                start = max(elapsed, 0.0)
                self._send(Stretch(path, start, run, self._brake), begin)
                until, due = start + run, start + STEP
            time.sleep(PERIOD)

    def _send(self, stretch: Stretch, begin: int) -> None:
        stamp = begin + int(stretch.begin * NS)
        self._sender.send(trajectory_message(self._joints, stretch, stamp))

    def _stop(self, path: Piece, begin: int, elapsed: float, until: float) -> float:
        """Brake, wait until the arm rests, and return the time along the path at rest [s]."""
        start = max(elapsed, 0.0)
        stretch = Stretch(path, start, min(LEAD, max(until - start, 0.0)), self._brake)
        if start + LEAD < until:
            self._send(stretch, begin)
        else:
            stretch = Stretch(path, until, 0.0, self._brake)
        over = begin + int((stretch.begin + stretch.duration) * NS)
        while self._arm.now(self._joints) < over:
            self._arm.update()
            time.sleep(PERIOD)
        return min(stretch.end, path.duration)

    def _hold(self) -> None:
        """Stop an arm that is off its path where it is, so that it does not push any further."""
        duration, position = HOLD * self._brake, self._arm.position(self._joints)
        self._sender.send(hold_message(self._joints, position, duration))
        end = time.monotonic() + duration
        while time.monotonic() < end:
            self._arm.update()
            time.sleep(PERIOD)

    def _at_rest(self, path: Piece, rest: float) -> FloatArray:
        """Wait until the arm has reached its commanded position; return that position (J,)."""
        end = time.monotonic() + SETTLING
        while reason := self._elsewhere(path, rest):
            if time.monotonic() > end:
                raise StoppedError(reason)
            self._arm.update()
            time.sleep(PERIOD)
        return np.asarray(path.sample(np.array([rest])).position[0])

    def _elsewhere(self, path: Piece, at: float) -> str:
        """Return in words that the arm is not at the path's point of a time [s]; empty: it is."""
        (off,) = self._off(path, np.array([at]))
        return self._beyond(off, START, 'from where the plan has it')

    def _astray(self, path: Piece, begin: int) -> str:
        """Return in words that the arm was off the path for the last `LAG`; empty: it was not."""
        lags = np.linspace(0.0, LAG, 26)
        off = self._off(path, (self._arm.oldest(self._joints) - begin) / NS - lags)
        nearest = off[int(np.argmin(np.max(off, axis=1)))]
        reason = self._beyond(nearest, TRACKING, 'off its path')
        return reason and f'{reason}: does the controller follow?'

    def _beyond(self, off: FloatArray, allowed: float, where: str) -> str:
        """Return in words which joint exceeds the allowed error (J,); empty: none."""
        joint = int(np.argmax(off))
        if off[joint] <= allowed:
            return ''
        there, most = (amount(self._robot, joint, way) for way in (off[joint], allowed))
        return f'{self._joints[joint]} is {there} {where}, {most} are allowed'

    def _off(self, path: Piece, times: FloatArray) -> FloatArray:
        """Return the arm's distance from a path at times (n,) [s], (n, J) [rad, m]."""
        off = self._arm.position(self._joints) - path.sample(times).position
        turns = np.round(off / (2.0 * np.pi)) * self._endless
        return np.asarray(np.abs(off - 2.0 * np.pi * turns))
