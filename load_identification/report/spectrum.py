"""Spectrum of the wrench residuals, and resonances in it, section 4.2.2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammainccinv, gammaincinv

from load_identification.typing_aliases import FloatArray, IntArray

SEGMENT = 2.0
"""Length of the stretches whose spectra are averaged [s]."""

PATIENCE = 10.0
"""Longest time for which a raw wrench waits for its explained part [s]."""

LEAST_SEGMENTS = 4
"""Fewest stretches: with fewer, every fluctuation makes a peak."""

UNEVEN = 0.05
"""Largest deviation of a step between stamps from the usual step, as a share of the stretch. A
stretch with a larger one is left out, because its frequencies are not defined."""

BACKGROUND = 8.0
"""Range to each side over which the median for a line is computed [Hz]."""

MOST_RESONANCES = 2

OVERLAP = 1.06
"""Number of half-overlapping stretches under a Hann window per independent stretch of equal
scatter: 1 + 2 / 36, Welch 1967."""

FALSE_PEAK = 1e-4
"""Probability that white noise shows a resonance."""

LEAST_RATIO = 4.0
"""Least power of a resonance, as a multiple of the power around it, at any significance."""

SLOWEST = 5.0
"""Lowest frequency of a resonance; motion and its errors are below [Hz]."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Averaged spectrum of the residuals of the raw wrench."""

    frequency: FloatArray
    """(f,) [Hz]"""
    density: FloatArray
    """Amplitude spectral density, (f, 6) [N/√Hz, N m/√Hz]."""
    segments: int
    """Number of averaged stretches."""
    resonances: tuple[float, ...]
    """Frequencies with a peak in force, torque or both, strongest first [Hz]."""


class SpectrumRecorder:
    """Average the spectra of the raw wrench less the part that filtered samples explain.

    Inputs are raw wrenches, and explained wrenches at the filtered stamps. A cubic spline
    interpolates these, because a chord would leave images of the motion around multiples of the
    filter's rate. Memory holds one stretch and a sum of powers.
    """

    def __init__(self) -> None:
        self._raw_stamps: list[IntArray] = []
        self._raw: list[FloatArray] = []
        self._stamps: IntArray = np.empty(0, dtype=np.int64)
        self._explained = np.empty((0, 6))
        self._step = 0.0
        self._length = 0
        self._power = np.empty((0, 6))
        self._segments = 0

    def add_raw(self, stamps: IntArray, wrench: FloatArray) -> None:
        """Add raw wrenches (n, 6) with increasing stamps [ns, N, N m]."""
        self._raw_stamps.append(stamps)
        self._raw.append(wrench)
        # An older raw wrench will not get an explained part any more.
        while stamps[-1] - self._raw_stamps[0][0] > PATIENCE * 1e9:
            del self._raw_stamps[0], self._raw[0]

    def add_explained(self, stamps: IntArray, wrench: FloatArray) -> None:
        """Add explained wrenches, offset included, at filtered stamps [ns, N, N m]."""
        if self._stamps.size and stamps[0] <= self._stamps[-1]:
            self.restart()
        self._stamps = np.concatenate([self._stamps, stamps])
        self._explained = np.concatenate([self._explained, wrench])
        while self._stamps.size and self._stamps[-1] - self._stamps[0] >= 1.5e9 * SEGMENT:
            self._average()

    def restart(self) -> None:
        """Discard the present stretch; raw wrenches may belong to the next one."""
        self._stamps, self._explained = np.empty(0, dtype=np.int64), np.empty((0, 6))

    def _average(self) -> None:
        """Add the spectrum of one stretch, and keep its second half for the next one."""
        first = self._stamps[0]
        last = first + round(1e9 * SEGMENT)
        stamps = np.concatenate(self._raw_stamps) if self._raw else np.empty(0, dtype=np.int64)
        raw = np.concatenate(self._raw) if self._raw else np.empty((0, 6))
        inside = (stamps >= first) & (stamps < last)
        if inside.sum() > 2:
            # Imported here: it takes a quarter of the start of a program without --report.
            from scipy.interpolate import CubicSpline

            spline = CubicSpline(1e-9 * (self._stamps - first), self._explained)
            seconds = 1e-9 * (stamps[inside] - first)
            self._add_segment(seconds, raw[inside] - spline(seconds))
        middle = first + round(0.5e9 * SEGMENT)
        kept = stamps >= middle
        self._raw_stamps, self._raw = [stamps[kept]], [raw[kept]]
        kept = self._stamps >= middle
        self._stamps, self._explained = self._stamps[kept], self._explained[kept]

    def _add_segment(self, seconds: FloatArray, residual: FloatArray) -> None:
        if not self._segments:
            self._step = float(np.median(np.diff(seconds)))
            self._length = int(SEGMENT / self._step * (1.0 - UNEVEN))
            self._power = np.zeros((self._length // 2 + 1, 6))
        grid = self._step * np.arange(self._length)
        if np.diff(seconds).max() > UNEVEN * SEGMENT or seconds[-1] < grid[-1] - self._step:
            return
        even = np.column_stack([np.interp(grid, seconds, column) for column in residual.T])
        window = np.hanning(self._length)[:, None]
        transform = np.fft.rfft(window * (even - even.mean(axis=0)), axis=0)
        self._power += 2.0 * self._step * np.abs(transform) ** 2 / np.sum(window**2)
        self._segments += 1

    def spectrum(self) -> Spectrum | None:
        """Return the average, or None if there are too few stretches."""
        if self._segments < LEAST_SEGMENTS:
            return None
        frequency: FloatArray = np.asarray(np.fft.rfftfreq(self._length, self._step), np.float64)
        power = self._power / self._segments
        # The mean is removed, and the window spreads this to the neighbouring line.
        kept = slice(2, None)
        frequency, power = frequency[kept], power[kept]
        return Spectrum(
            frequency=frequency,
            density=np.sqrt(power),
            segments=self._segments,
            resonances=find_resonances(frequency, power, self._segments),
        )


def find_resonances(frequency: FloatArray, power: FloatArray, segments: int) -> tuple[float, ...]:
    """Return the frequencies, at most `MOST_RESONANCES`, whose power exceeds that of others.

    The three channels of force or torque are averaged, each relative to its background, a running
    median. For white noise, each is a gamma variate of as many independent stretches as `OVERLAP`
    leaves. A resonance must exceed both `LEAST_RATIO` and the level that noise exceeds at any line
    with the probability `FALSE_PEAK`.

    Parameters
    ----------
    frequency : (f,) array
        Evenly spaced [Hz].
    power : (f, 6) array
        Power spectral density; NaN or zero for a dead channel.
    segments : int
        Number of averaged stretches.
    """
    shape = segments / OVERLAP
    size = 2 * int(BACKGROUND / (frequency[1] - frequency[0])) + 1
    # Imported here as the splines above.
    from scipy.ndimage import median_filter

    background = median_filter(power, size=(size, 1), mode='mirror')
    with np.errstate(divide='ignore', invalid='ignore'):
        ratio = power / background * gammaincinv(shape, 0.5) / shape
    groups = [_mean_of_known(ratio[:, :3]), _mean_of_known(ratio[:, 3:])]
    score = np.maximum(*groups)
    score[frequency < SLOWEST] = 0.0
    tests = 2 * len(frequency)
    level = max(LEAST_RATIO, float(gammainccinv(3.0 * shape, FALSE_PEAK / tests)) / (3.0 * shape))
    found: list[float] = []
    for k in np.argsort(score)[::-1]:
        if score[k] < level or len(found) == MOST_RESONANCES:
            break
        if all(abs(frequency[k] - other) > BACKGROUND / 2 for other in found):
            found.append(float(frequency[k]))
    return tuple(found)


def _mean_of_known(values: FloatArray) -> FloatArray:
    """Return the mean of each row over its finite entries, zero if there is none."""
    known = np.isfinite(values)
    total = np.where(known, values, 0.0).sum(axis=1)
    return np.asarray(total / np.maximum(known.sum(axis=1), 1), dtype=float)
