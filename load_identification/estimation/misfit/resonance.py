"""Detect ringing of the wrench that the joints do not show: a line in the residual spectrum."""

from __future__ import annotations

from collections import deque

import numpy as np

from load_identification.estimation.misfit import words
from load_identification.estimation.misfit.evidence import complete, felt
from load_identification.estimation.misfit.fits import least_squares, without_component
from load_identification.interface.batches import FilteredBatch
from load_identification.interface.messages import NS
from load_identification.typing_aliases import FloatArray, IntArray

SPAN, PIECE, EVERY = 15.0, 4.0, 2.0
"""Length of the samples examined, length of the segments of their averaged spectrum, and time
between two evaluations [s]."""

FEWEST = 2
"""Least number of segments in a spectrum, each half overlapping the next."""

REMEMBERED = 60.0
"""Time for which ringing counts after it was last detected, as it will recur [s]."""

BAND = 2.25, 16.0
"""Frequencies searched [Hz]: below, imperfectly explained motion has lines too; above, the filter
passes little."""

BESIDE, WITHIN = 1.6, 0.6
"""A line is compared with frequencies up to this factor and beyond this distance [-, Hz]."""

ABOVE = 5.0
"""Least ratio of a line to its surroundings; sound cells reach 4.3, with pushes 5.0 [-]."""

DRIVEN = 0.1
"""Least ratio of a line to what payload and motion explain there [-]: errors of a cell leave up to
0.03 of that; joints of 5 Hz that a weave of 3 Hz drives leave more."""

LOW = 6.0
"""A resonance below this frequency corrupts the estimate [Hz]."""

STRONG, STRONG_LOW = 2.0, 1.0
"""Least rms of a reported line, and of one below `LOW`, in standard deviations of a sample [-]."""

ALIKE = 0.1
"""Relative difference up to which two frequencies are one [-]."""

WORTH, CLEAR = 0.1, 10.0
"""Least mean square of a line that corrupts the estimate, in units of that from errors of an
ordinary cell [-], or its least ratio to its surroundings: a torque ripple of 0.3 mrad, which does
not, reaches 0.08 and 5.1, joints that sway at 3 to 5 Hz 0.1 to 8 or 12 to 45."""


class Resonance:
    """Detect compliance of arm, mounting or load in the newest samples.

    A joint that is compliant behind its encoder, once excited, rings at its own resonance. `noise`
    (2,) is the expected std of a sample of force and torque [N, N m], `friction` that of the last
    joint's friction, which has lines of its own in work of a rhythm [N m].
    """

    def __init__(self, noise: FloatArray, friction: float = 0.0) -> None:
        self._noise, self._friction = np.repeat(noise, 3), friction
        self.forget()

    def forget(self) -> None:
        """Forget everything."""
        self.cut()
        self._due, self._until = 0, 0
        self._stop()

    def _stop(self) -> None:
        """Forget the ringing alone."""
        self._frequency, self._rms, self._large = np.inf, np.zeros(2), False
        self.words = ''
        """The ringing in words; empty: none."""

    def cut(self) -> None:
        """Begin anew: load or offset may be others from now on, or something touches."""
        # Of each block its newest stamp; of the complete samples stamps, what load and friction
        # may cause, and wrench.
        self._samples: deque[tuple[int, tuple[IntArray, FloatArray, FloatArray]]] = deque()

    def corrupts(self, usual: FloatArray) -> bool:
        """Return whether the ringing corrupts the estimate, or has done so before.

        `usual` (2,): residual std of force and torque in an ordinary cell [N, N m].
        """
        share = float(np.mean((self._rms * self._noise[::3] / usual) ** 2)) / 3.0
        self._large |= share >= WORTH
        return self._large and self._frequency < LOW

    def add(self, samples: FilteredBatch) -> None:
        """Process a block of samples of a sensor's wrench; evaluate every `EVERY` seconds."""
        stamp = int(samples.stamps[-1])
        if self._samples and stamp - self._samples[-1][0] > NS:
            self.forget()
        finite = complete(samples)
        columns = np.concatenate([-finite.regressor, felt(finite, self._friction)], axis=2)
        self._samples.append((stamp, (finite.stamps, columns, finite.wrench)))
        if stamp < self._due:
            return
        while stamp - self._samples[0][0] > SPAN * NS:
            self._samples.popleft()
        self._due = stamp + round(EVERY * NS)
        # Without a complete sample it is not known what friction there may be.
        some = [arrays for _, arrays in self._samples if len(arrays[0])]
        if some:
            self._look(*(np.concatenate(parts) for parts in zip(*some, strict=True)))

    def _look(self, stamps: IntArray, columns: FloatArray, wrench: FloatArray) -> None:
        if len(stamps) < 2:
            return
        if stamps[-1] > self._until:
            self._stop()
        matrix, wrench = columns / self._noise[:, None], wrench / self._noise
        left = without_delay(least_squares(matrix, wrench), wrench, stamps / NS)
        found = line(left, float(np.median(np.diff(stamps))) / NS, wrench - left)
        least = STRONG_LOW if found is not None and found[0] < LOW else STRONG
        if found is not None and np.linalg.norm(found[1]) > least:
            self._keep(*found, stamp=int(stamps[-1]))

    def _keep(self, frequency: float, rms: FloatArray, standing: float, stamp: int) -> None:
        """Keep what `line` has found; of one frequency the strongest, and for that long."""
        same = abs(frequency / self._frequency - 1.0) < ALIKE
        self._large = (self._large and same) or standing > CLEAR
        if same and np.linalg.norm(rms) < np.linalg.norm(self._rms):
            return
        self._until = stamp + round(REMEMBERED * NS)
        self._frequency, self._rms = frequency, rms
        self.words = words.rings(frequency, rms * self._noise[::3])


def without_delay(left: FloatArray, wrench: FloatArray, times: FloatArray) -> FloatArray:
    """Return residuals of a wrench, both (n, 6), without what a constant delay of it explains.

    In work of a rhythm that has lines of its own. `times` (n,) are increasing [s].
    """
    slope = np.gradient(wrench - left, times, axis=0)
    return without_component(left.ravel(), slope.ravel())[0].reshape(left.shape)


def line(
    left: FloatArray, step: float, explained: FloatArray
) -> tuple[float, FloatArray, float] | None:
    """Return frequency [Hz], rms and ratio of the most prominent line of the spectrum, or None.

    `left` (n, 6) are residuals in standard deviations of a sample, `explained` (n, 6) the rest of
    the wrench, `step` is the time between samples [s]; the rms (2,) is that of force and torque,
    in units of `left`, the ratio that to the level beside the line [-].
    """
    size = round(PIECE / step)
    power, driven = (spectrum(values, size) for values in (left, explained))
    if power is None or driven is None:
        return None
    frequency, every = np.fft.rfftfreq(size, step), power.sum(axis=1)
    best, standing = 0, ABOVE
    for k in np.flatnonzero((frequency >= BAND[0]) & (frequency <= BAND[1]))[:-1].tolist():
        if every[k] < every[k - 1 : k + 2].max():
            continue
        away = frequency - frequency[k]
        below = (frequency > frequency[k] / BESIDE) & (away < -WITHIN)
        above = (frequency < frequency[k] * BESIDE) & (away > WITHIN)
        if not (below.any() and above.any()):
            continue
        beside = max(float(np.median(every[below])), float(np.median(every[above])))
        around = slice(k - 1, k + 2)
        by_itself = every[around].sum() > DRIVEN**2 * driven[around].sum()
        if by_itself and every[k] > standing * beside:
            best, standing = k, float(every[k] / beside)
    if not best:
        return None
    three = slice(best - 1, best + 2)
    middle = float(frequency[three] @ every[three] / every[three].sum())
    return middle, np.sqrt(power[three].sum(axis=0)), standing


def spectrum(values: FloatArray, size: int) -> FloatArray | None:
    """Return the mean square (size // 2 + 1, 2) of force and torque (n, 6) at each frequency.

    It is averaged over segments of so many samples; None if there are too few of them.
    """
    window = np.hanning(size)
    pieces = np.array([values[k : k + size] for k in range(0, len(values) - size + 1, size // 2)])
    if len(pieces) < FEWEST:
        return None
    pieces = (pieces - pieces.mean(axis=1, keepdims=True)) * window[:, None]
    power = np.mean(np.abs(np.fft.rfft(pieces, axis=1)) ** 2, axis=0).reshape(-1, 2, 3).sum(axis=2)
    return np.asarray(power * 2.0 / (size * np.sum(window**2)))
