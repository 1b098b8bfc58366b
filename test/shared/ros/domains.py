"""ROS domains that no two runs of the tests share, nor a run and whoever else is on this host."""

from __future__ import annotations

import fcntl
import random
import socket
import tempfile
from collections.abc import Iterable
from pathlib import Path

DOMAINS = range(1, 102)
"""Ports of higher ones may be in use for outgoing connections."""


class Domain:
    """A domain that is ours until it is released, or the process has ended.

    Parameters
    ----------
    candidates : iterable of int
        Tried in turn; in any order where not given.
    """

    def __init__(self, candidates: Iterable[int] = ()) -> None:
        for number in candidates or random.SystemRandom().sample(DOMAINS, len(DOMAINS)):
            path = Path(tempfile.gettempdir()) / f'load_identification_domain_{number}.lock'
            try:
                self._lock = path.open('w')
            except OSError:  # of another user
                continue
            if self._locked() and _nobody_at(number):
                self.number = number
                return
            self._lock.close()
        raise AssertionError('every ROS domain of this host is in use')

    def _locked(self) -> bool:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def release(self) -> None:
        """Let others have it."""
        self._lock.close()


def _nobody_at(domain: int) -> bool:
    """Tell whether nobody on this host takes part in a domain."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # The first participant of a domain listens here: DDSI-RTPS 9.6.1.1.
            probe.bind(('', 7400 + 250 * domain + 10))
        except OSError:
            return False
    return True
