"""Leave out published joint velocities that are not the derivatives of the positions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from load_identification.signals.jumps import reach
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

MOVED = 2e-3
"""Distance from the first position from which a velocity of zero is wrong [rad, m]."""

PIECE = 25_000_000
"""Length of the pieces over which ways are compared [ns]."""

CHECKED = 100_000_000
"""Time after which what pieces have shown is applied [ns]."""

MOST_WAITING = 1000
"""Largest number of batches that wait for that."""

RECENT = 250
"""Number of the newest steps between stamps that show how these waver."""

WAVER, LEAST_WAVER = 0.25, 1e-3
"""Deviation of the shorter of them from the median from which stamps waver: share of it [-] and
size [s]. A message lost makes a step longer, none makes it shorter."""

JOINED = 100_000_000
"""Longest step within a piece [ns]."""

FORGETTING = 0.99
"""Forgetting factor per piece in which the joint moves [-]: 2.5 s of motion."""

LEAST_WAY = 1e-4
"""Way from which the joint moves in a piece, by positions or velocities [rad, m]."""

FEWEST = 4.0
"""Least number of such pieces by which velocities are judged."""

CLEARLY = 6.0
"""Standard deviations from which a lag or a factor is one [-]."""

LAG = 0.015
"""Lag from which velocities are not used [s]; a smaller one of all joints is corrected
(`joint_noise`)."""

FACTOR, PER_NOISE = 0.03, 0.5
"""Deviation of the factor from 1 from which velocities are not used [-], and what is added per
share of the positions' noise in the squares of the ways."""

NOISIEST = 0.1
"""Largest such share at which velocities are judged [-]."""

LIKE = 0.05
"""Share of the squares of ways and of changes of velocity that neither has in common with the
other, from which they are told apart [-]."""

SURPLUS = 4.0
"""Least determinant of the squares, in units of what noise of the ways makes of it [-]."""

SURELY = 3.0
"""Standard deviations by which both must be within their limits to be used again [-]."""

LEAST = 1e-6, 1e-4
"""Least noise of a way [rad, m] and of a change of velocity [rad/s, m/s]."""

ZERO = 0.02
"""Factor below which velocities are said to be zero [-]."""

CLEARLY_ANOTHER = 3.0
"""Factor from which stamps that waver are not what makes it [-]."""

DEGREES, NEAR = float(np.degrees(1.0)), 1.03
"""Factor of velocities in degrees per second, and how near to it one is said to be so [-]."""


class FilledIn:
    """Find velocities that a driver fills with zeros: of joints that move, and never had another.

    Parameters
    ----------
    joints : int
        Number J of joints.
    """

    def __init__(self, joints: int) -> None:
        self._begin = np.full(joints, np.nan)
        self._moved = self._told = np.zeros(joints, dtype=bool)

    def without(self, position: FloatArray, velocity: FloatArray) -> FloatArray:
        """Return the next velocities (n, J), NaN where filled in."""
        if self._told.all() or not len(position):
            return velocity
        if np.isnan(self._begin).any():
            first = position[np.isfinite(position).argmax(axis=0), range(position.shape[1])]
            self._begin = np.where(np.isnan(self._begin), first, self._begin)
        moved = np.abs(position - self._begin) > MOVED
        moved = np.logical_or.accumulate(moved) | self._moved
        told = (velocity != 0.0) & ~np.isnan(velocity)
        told = np.logical_or.accumulate(told) | self._told
        self._moved, self._told = moved[-1], told[-1]
        return np.where(moved & ~told, np.nan, velocity)


class PublishedVelocities:
    """Compare velocities of joints with their positions, as they come from one publisher.

    Of pieces of the motion, the integral of the velocity is f w - T c: w is the way by the
    positions, c the change of the velocity, f a factor and T the lag. That is exact for a low-pass
    of first order, whose time constant T is. Factor and lag are fitted by least squares with
    forgetting, for each joint alone. White noise of the positions, seen in their third
    differences, makes the factor too small and is subtracted from the squares of the ways.

    Parameters
    ----------
    joints : int
        Number J of joints.
    """

    def __init__(self, joints: int) -> None:
        self.limits: FloatArray = np.full(joints, np.inf)
        """Velocity limits (J,) [rad/s, m/s]: a step beyond them is no way, as in `JumpGate`."""
        self._filled_in = FilledIn(joints)
        none = np.zeros(joints, dtype=bool)
        # Of the newest piece, and as applied from the last check on.
        self._wrong, self._late, self._applied = none, none, none
        self._lag, self._factor = np.zeros(joints), np.ones(joints)
        self._waiting: list[tuple[IntArray, FloatArray]] = []
        self._number = 0
        # The last three samples before: stamp, position and velocity.
        self._stamps: IntArray = np.zeros(0, dtype=np.int64)
        self._rows: FloatArray = np.zeros((0, 2, joints))
        self._recent: IntArray = np.zeros(0, dtype=np.int64)
        # Since the last boundary between pieces: sums (`_decided`), and number of steps; there:
        # position and velocity.
        self._since: FloatArray = np.zeros((5, joints))
        self._steps = 0
        self._begin: FloatArray = np.full((2, joints), np.nan)
        # The shortest step of each position.
        self._step = np.full(joints, np.inf)
        # Of w², w c, c², w y, c y and y², y being the integral; pieces; variances of w, c and y.
        self._sums: FloatArray = np.zeros((10, joints))

    def without(self, stamps: IntArray, position: FloatArray, velocity: FloatArray) -> FloatArray:
        """Return the next velocities (n, J), NaN where they are not those of the positions.

        Parameters
        ----------
        stamps : (n,) int array
            [ns]; at a gap, or if they do not increase, a new piece begins.
        position, velocity : (n, J) arrays
            [rad or m, and per s]; NaN where unknown.
        """
        used = self._filled_in.without(position, velocity)
        if not len(stamps):
            return used
        self._waiting.append((stamps, np.stack([position, velocity], axis=1)))
        number = stamps // CHECKED
        same = bool(np.all(number == self._number))
        if same and len(self._waiting) < MOST_WAITING:
            return np.where(self._applied, np.nan, used) if self._applied.any() else used
        self._number = int(number[-1])
        wrong = self._judged()[-len(stamps) :]
        return np.where(wrong, np.nan, used) if wrong.any() else used

    def _judged(self) -> BoolArray:
        """Return which velocities of the waiting samples are not to be used, (n, J)."""
        before = len(self._stamps)
        stamps = np.concatenate([self._stamps, *(each for each, _ in self._waiting)])
        rows = np.concatenate([self._rows, *(each for _, each in self._waiting)])
        self._waiting.clear()
        self._stamps, self._rows = stamps[-3:], rows[-3:]
        first = max(before, 1)
        wrong = np.repeat(self._applied[None], len(stamps) - before, axis=0)
        if len(stamps) == first:
            return wrong
        steps = (stamps[first:] - stamps[first - 1 : -1])[:, None]
        self._recent = np.append(self._recent, steps[steps > 0])[-RECENT:]
        q, v, seconds = rows[:, 0], rows[:, 1], 1e-9 * steps
        move = q[first:] - q[first - 1 : -1]
        area = 0.5 * seconds * (v[first:] + v[first - 1 : -1])
        most = np.minimum(reach(self.limits, seconds), np.pi)
        leapt = (np.abs(move) > most).any(axis=1, keepdims=True)
        unknown = ~np.isfinite(area + move) | leapt | (steps <= 0) | (steps > JOINED)
        noise = white_noise(rows, len(move)).swapaxes(0, 1)
        size = np.abs(move)
        size = np.where(size > 0.0, size, np.inf).min(axis=0, initial=np.inf)
        self._step = np.minimum(self._step, size)
        # What is summed up to each sample, the last of before included.
        parts = np.where(unknown, 0.0, area), unknown, *noise, noise[1] * seconds**2
        total = np.cumsum(np.stack(parts, axis=1), axis=0)
        number = stamps[first - 1 :] // PIECE
        ends = np.flatnonzero(number[1:] != number[:-1])
        if not ends.size:
            self._since = self._since + total[-1]
        else:
            grown = np.diff(np.concatenate([-self._since[None], total[ends]]), axis=0)
            apart = np.diff(np.concatenate([self._begin[None], rows[first + ends]]), axis=0)
            steps_of = np.diff(ends, prepend=-1 - self._steps)[:, None]
            decided = self._decided(apart, grown, steps_of)
            per_check = CHECKED // PIECE
            applied = number[1:][ends] // per_check != number[ends] // per_check
            for k in np.flatnonzero(applied).tolist():
                self._applied = wrong[first - before + ends[k] :] = decided[k]
            self._since = total[-1] - total[ends[-1]]
            self._begin, self._steps = rows[first + ends[-1]], 0
        self._steps += len(move) - (int(ends[-1]) + 1 if ends.size else 0)
        return wrong

    def _decided(self, apart: FloatArray, grown: FloatArray, steps: IntArray) -> BoolArray:
        """Return whether velocities are wrong after each of p pieces, (p, J).

        Parameters
        ----------
        apart : (p, 2, J) array
            Way, and change of velocity.
        grown : (p, 5, J) array
            Integral of velocity, steps unknown, and sums over steps of the variances of position
            and velocity and of that of the integral.
        steps : (p, 1) array
            Their number.
        """
        (way, change), integral = apart.swapaxes(0, 1), grown[:, 0]
        moves = np.maximum(np.abs(way), np.abs(integral)) > LEAST_WAY
        usable = moves & (grown[:, 1] == 0) & np.isfinite(way) & np.isfinite(change)
        if not usable.any():
            return np.repeat(self._wrong[None], len(usable), axis=0)
        w, c, y = (np.where(usable, each, 0.0) for each in (way, change, integral))
        squares = w * w, w * c, c * c, w * y, c * y, y * y
        of_way, of_change = (2.0 * grown[:, k] / steps for k in (2, 3))
        # A coarse encoder at low speed shows its noise in few steps only.
        coarse = np.where(np.isfinite(self._step), self._step, 0.0) ** 2 / 2.0
        noises = usable * [np.maximum(of_way, coarse), of_change, grown[:, 4]]
        sums = np.stack([*squares, usable, *noises], axis=1)
        kept = np.where(usable, FORGETTING, 1.0)
        for k, new in enumerate(sums):
            new += kept[k] * self._sums
            self._sums = new
        known, wrong, right, late = self._judge(sums.swapaxes(0, 1), usable)
        decided = np.empty_like(wrong)
        for k in range(len(decided)):
            self._wrong = decided[k] = np.where(
                known[k], wrong[k] | (self._wrong & ~right[k]), self._wrong
            )
            self._late = np.where(wrong[k], late[k], self._late)
        return decided

    def _judge(self, sums: FloatArray, usable: BoolArray) -> tuple[BoolArray, ...]:
        """Fit factors and lags to sums (10, p, J) after pieces that were usable, (p, J).

        Returns
        -------
        known, wrong, right, late : (p, J) bool arrays
            Whether factor and lag are known, beyond the limits, and well within; whether the lag
            is what is wrong.
        """
        ww, wc, cc, wy, cy, yy, count, noise, of_change, of_integral = sums
        n = np.maximum(count, 1.0)
        true = np.maximum(ww - noise, (1.0 - NOISIEST) * ww) + n * LEAST[0] ** 2
        cc = np.maximum(cc - of_change, 0.5 * cc) + n * LEAST[1] ** 2
        determinant = true * cc - wc * wc
        share = noise / np.maximum(ww, n * LEAST[0] ** 2)
        known = usable & (count >= FEWEST) & (share < NOISIEST) & (determinant > LIKE * true * cc)
        # What is subtracted as noise may be the slowest motion: it must not decide.
        known &= determinant > SURPLUS * noise * cc
        determinant = np.maximum(determinant, LIKE * true * cc)
        factor = (wy * cc - cy * wc) / determinant
        lag = (wy * wc - cy * true) / determinant
        left = np.maximum(yy - factor * wy + lag * cy, 0.0) / np.maximum(n - 2.0, 1.0)
        left = left + (noise + of_integral) / n + LEAST[0] ** 2
        std_factor, std_lag = (np.sqrt(left * of / determinant) for of in (cc, true))
        limit = FACTOR + PER_NOISE * share
        off, behind = np.abs(factor - 1.0), np.abs(lag)
        late = known & (behind > np.maximum(LAG, CLEARLY * std_lag))
        wrong = late | known & (off > np.maximum(limit, CLEARLY * std_factor))
        right = known & (behind + SURELY * std_lag < LAG) & (off + SURELY * std_factor < limit)
        told = wrong.any(axis=0)
        last = len(wrong) - 1 - np.argmax(wrong[::-1], axis=0), range(wrong.shape[1])
        self._lag = np.where(told, lag[last], self._lag)
        self._factor = np.where(told, factor[last], self._factor)
        return known, wrong, right, late

    @property
    def _wavering(self) -> str:
        """Say that stamps waver, whatever that makes of velocities; empty: they do not."""
        if len(self._recent) < RECENT:
            return ''
        usual = float(np.median(self._recent))
        shorter = np.maximum(usual - self._recent, 0.0)
        off = 1e-9 * float(np.sqrt(np.mean(shorter**2)))
        if off < max(LEAST_WAVER, WAVER * 1e-9 * usual):
            return ''
        return (
            f'stamps of /joint_states waver by {1e3 * off:.1f} ms, {1e-6 * usual:.0f} ms apart: '
            'have the driver stamp samples when they are measured, not on arrival'
        )

    def words(self, names: Sequence[str], of: Collection[str] | None = None) -> str:
        """Return a warning of velocities that are not used, by the names of the J joints; or none.

        Stamps that waver are named instead of velocities that lag or lead, or that are hardly
        another size: they make some so.

        Only those in `of` are named, if it is given.
        """
        said: dict[str, list[str]] = {}
        asked = np.array([of is None or name in of for name in names])
        waver = self._wavering if asked.any() else ''
        wrong = self._wrong & asked
        if waver:
            clear = (self._factor > CLEARLY_ANOTHER) | (self._factor < 1.0 / CLEARLY_ANOTHER)
            wrong &= ~self._late & clear
        lags = np.round(1e3 * np.abs(self._lag[wrong & self._late]))
        for j in np.flatnonzero(wrong).tolist():
            if self._late[j]:
                low, high = f'{lags.min():.0f}', f'{lags.max():.0f}'
                number = low if low == high else f'{low} to {high}'
                way = 'lags' if self._lag[j] > 0.0 else 'leads'
                words = f'{way} its position by {number} ms'
            else:
                words = factor_words(float(self._factor[j]))
            said.setdefault(words, []).append(names[j])
        each = [f'velocity of {", ".join(joints)} {w}: not used' for w, joints in said.items()]
        return '; '.join([waver, *each] if waver else each)


def white_noise(rows: FloatArray, count: int) -> FloatArray:
    """Return the variances that the last samples show of white noise, (count, c, J).

    By third differences of rows (n, c, J), which hardly contain motion; zero where there is none.
    """
    out = np.zeros((count, *rows.shape[1:]))
    if count and len(rows) > 3:
        third = np.diff(rows, n=3, axis=0)[-count:]
        out[-len(third) :] = np.nan_to_num(third) ** 2 / 20.0
    return out


def factor_words(factor: float) -> str:
    """Return in words which multiple of the derivative of its position a velocity is."""
    if abs(factor) < ZERO / 2.0 or not np.isfinite(factor):
        return 'is zero while its position changes'
    for unit, of in (('deg/s', DEGREES), ('positions in degrees', 1.0 / DEGREES)):
        if 1.0 / NEAR < factor / of < NEAR:
            return f'is {of:.3g} × the derivative of its position ({unit}?)'
    sign = ' (sign?)' if abs(factor + 1.0) < 0.1 else ''
    return f'is {factor:.2f} × the derivative of its position{sign}'
