"""Whether the efforts of an arm's joints agree in sign and unit, and with the positions in time.

Solved are least squares of sums of products, as they are added up over pieces of a recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.linalg.lapack import dposv

from load_identification.arm.filtering import FilteredRecording
from load_identification.numerics.nearest_links import FOLDS
from load_identification.typing_aliases import FloatArray, IntArray

LIKELY = (0.6, 1.6)
"""What efforts may be of those that others ask for, and still be in N m [-]."""

SIZES = np.geomspace(1e-3, 1e3, 19)
"""Of the factors tried of a joint, of either sign [-]."""

NEARER = np.geomspace(0.68, 1.47, 9)
"""The same about the best of them [-]."""

LEAST_GAIN = 0.3
"""Of the logarithms: the noise of one channel is less by a quarter [-]."""

CLEAR = 3.0
"""Standard errors of a gain: 98 % of Student's t of five folds lie below [-]."""

WRONG = (-1.0, 0.5, 2.0)
"""Signs and units of one joint that data should show: reversed, half, twice [-]."""

RIDGE = 1e-8
"""Pull to zero, as a share of each column's square: it holds what no row shows."""

REWEIGHTINGS = 3
"""By the residuals of each channel."""

STEP = 0.02
"""Between the delays tried; about the best it is halved [s]."""

MOST = 0.2
"""The longest delay tried [s]."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """Rows of the pieces of a recording, as sums of their products, channel by channel."""

    products: FloatArray
    """(p, k, c + 1, c + 1) [A e]^T [A e], e being what c unknowns explain."""
    counts: FloatArray
    """Of rows, (p, k)."""
    positive: IntArray
    """Which of the unknowns are not below zero."""

    def left(self) -> FloatArray:
        """Return what a fit to all of them leaves of each channel, root mean square (k,)."""
        products, counts = self.products.sum(axis=0), self.counts.sum(axis=0)
        return left_rms(products, counts, fitted(products, counts, self.positive))

    def errors(self, test: Pieces) -> FloatArray:
        """Return what fits to the other folds leave of each of another filter's, (2, FOLDS).

        The sum of the logarithms of each channel's root mean square, and that of all squares.
        """
        out = []
        for fold in range(FOLDS):
            left = np.zeros(len(self.counts), dtype=bool)
            left[fold::FOLDS] = True
            products, counts = (each[~left].sum(axis=0) for each in (self.products, self.counts))
            x = fitted(products, counts, self.positive)
            products, counts = (each[left].sum(axis=0) for each in (test.products, test.counts))
            rms = left_rms(products, counts, x)
            out.append((np.sum(np.log(rms)), np.sum(rms**2)))
        return np.array(out).T


def fitted(products: FloatArray, counts: FloatArray, positive: IntArray) -> FloatArray:
    """Return the unknowns (c,) of sums of products (k, c + 1, c + 1), channels by their noise."""
    level = left_rms(products, counts, np.zeros(products.shape[1] - 1))
    x = np.zeros(products.shape[1] - 1)
    flat = products.reshape(len(products), -1)
    for _ in range(REWEIGHTINGS):
        total = (level**-2 @ flat).reshape(products.shape[1:])
        length = np.sqrt(np.diag(total)[:-1])
        length[length == 0.0] = 1.0
        matrix = total[:-1, :-1] / np.outer(length, length)
        matrix.ravel()[:: len(length) + 1] += RIDGE
        right, free = total[:-1, -1] / length, np.ones(len(length), dtype=bool)
        while True:
            x = np.zeros(len(length))
            own = matrix if free.all() else matrix[np.ix_(free, free)]
            x[free] = dposv(own, right[free])[1]
            x /= length
            below = positive[x[positive] < 0.0]
            if not below.size:
                break
            free[below] = False
        level = left_rms(products, counts, x)
    return x


def left_rms(products: FloatArray, counts: FloatArray, x: FloatArray) -> FloatArray:
    """Return the root mean square of what unknowns leave in each channel (k,)."""
    signed = np.append(x, -1.0)
    squares = products @ signed @ signed
    # Rounding of simulated data without noise.
    least = 1e-12 * products[:, -1, -1] + np.finfo(float).tiny
    return np.asarray(np.sqrt(np.maximum(squares, least) / np.maximum(counts, 1)))


def clearly_better(errors: FloatArray, known: FloatArray) -> bool:
    """Tell whether `Pieces.errors` are less than others by `CLEAR` standard errors over the folds.

    In the logarithms of all channels, and no larger in the squares.
    """
    gain = known[0] - errors[0]
    clear = gain.mean() > CLEAR * gain.std(ddof=1) / np.sqrt(FOLDS)
    return bool(clear and errors[1].mean() <= known[1].mean())


def shows(errors: FloatArray, known: FloatArray) -> bool:
    """Tell whether `Pieces.errors` are so much less than others that the set-up is wrong."""
    return bool(np.mean(known[0] - errors[0]) > LEAST_GAIN and clearly_better(errors, known))


def disagreement(pieces: Pieces) -> FloatArray:
    """Return what the efforts of each joint are of what those of the others ask for, (k,).

    Links are felt by several joints, so that one whose efforts are of another sign or unit does
    not fit. Joints get a factor, one by one, where that explains pieces left out clearly better,
    if positive also than where the joint feels links that no other feels, or none.
    What all have in common does not show, and where it would be more than half of them none has.
    The pieces are of [A n e], n being what the description explains of the efforts e.
    """
    scale = np.ones(pieces.counts.shape[1])
    known = _errors_under(pieces, scale)
    products, counts = (x.sum(axis=0, keepdims=True) for x in (pieces.products, pieces.counts))
    whole = Pieces(products, counts, pieces.positive)
    while np.sum(scale != 1.0) <= len(scale) / 2:
        better = []
        for joint in np.flatnonzero(scale == 1.0).tolist():
            found = _likeliest(whole, scale, joint)
            if _is_odd(found[joint]):
                errors = _errors_under(pieces, found)
                if shows(errors, known) and _felt_together(pieces, errors, found, joint):
                    better.append((float(np.mean(known[0] - errors[0])), found, errors))
        if not better:
            return scale
        _, scale, known = max(better, key=lambda each: each[0])
    return np.ones(len(scale))


def unsure(pieces: Pieces, channels: Sequence[str]) -> str:
    """Name the joints whose efforts could be of another sign or unit without notice.

    The pieces are those in which `disagreement` has found none.
    """
    ones = np.ones(len(channels))
    known = _errors_under(pieces, ones)

    def hidden(joint: int, factor: float) -> bool:
        wrong = np.where(np.arange(len(ones)) == joint, factor, ones)
        if shows(known, _errors_under(pieces, wrong)):
            return False
        products = pieces.products.copy()
        products[:, joint, -1] *= factor
        products[:, joint, :, -1] *= factor
        return bool(disagreement(replace(pieces, products=products))[joint] == 1.0)

    found = {
        name: (hidden(joint, WRONG[0]), any(hidden(joint, each) for each in WRONG[1:]))
        for joint, name in enumerate(channels)
    }
    words = [
        f'{kind} of the efforts of {", ".join(n for n, each in found.items() if each[k])}'
        for k, kind in enumerate(('sign', 'unit (half, twice)'))
        if any(each[k] for each in found.values())
    ]
    return f'these data would not show a wrong {", or ".join(words)}' if words else ''


def in_words(scale: FloatArray, channels: Sequence[str]) -> str:
    """Say which efforts do not go with those of the other joints, from `disagreement`."""
    words = [
        f'those of {name} are {"reversed" if factor < 0.0 else f"{factor:.2g} times as large"}'
        for name, factor in zip(channels, scale, strict=True)
        if factor != 1.0
    ]
    return (
        'the efforts of the joints do not go together: by what the others say of the links, '
        f'{", ".join(words)}; --effort-scale takes a number for each joint'
    )


def lateness(log: FilteredRecording, errors: Callable[[FilteredRecording], FloatArray]) -> float:
    """Return how late the efforts are by a fit that explains pieces left out [s].

    Zero unless it explains them clearly better. Its links are fitted anew for each delay: those of
    late efforts hide a part of it as inertia and friction. `errors` gives `Pieces.errors`.
    """
    cost = cache(lambda delay: errors(earlier(log, delay)))

    def likely(delay: float) -> bool:
        # Friction that builds up after reversals fits a little better later, too.
        least, gain = LEAST_GAIN * abs(delay) / STEP, np.mean(cost(0.0)[0] - cost(delay)[0])
        return bool(gain > least and shows(cost(delay), cost(0.0)))

    def best(delays: Iterable[float]) -> float:
        return min(delays, key=lambda delay: float(cost(delay)[0].mean()))

    # All of them: one step of a long delay hardly helps.
    delays = [sign * k * STEP for k in range(1, round(MOST / STEP) + 1) for sign in (1.0, -1.0)]
    if not any(map(likely, delays)):
        return 0.0
    found = best([0.0, *delays])
    return best([found, found - STEP / 2.0, found + STEP / 2.0])


def earlier(log: FilteredRecording, delay: float) -> FilteredRecording:
    """Return a recording with what was measured earlier by a delay [s], NaN beyond its ends."""
    starts = np.flatnonzero(np.diff(log.seconds) <= 0.0) + 1
    parts = zip(np.split(log.seconds, starts), np.split(log.measured, starts), strict=True)
    measured = [
        np.stack([np.interp(t + delay, t, one, np.nan, np.nan) for one in values.T], axis=1)
        for t, values in parts
    ]
    return replace(log, measured=np.concatenate(measured))


def late_in_words(late: float) -> str:
    """Say how late efforts are, from `lateness`."""
    which, other = ('late', 'efforts') if late > 0.0 else ('early', 'positions')
    return (
        f'the efforts are about {1e3 * abs(late):.0f} ms {which} against the positions: so the '
        f'links explain them far better; are {other} low-passed by the driver, or stamped by '
        'another clock, or does friction build up after reversals?'
    )


def _is_odd(factor: float) -> bool:
    """Tell whether a factor is of another sign, or told and of another unit.

    The joint that fits best with the largest or the least has little of the links in it.
    """
    told = 2.0 * SIZES[0] < factor < 0.5 * SIZES[-1]
    return bool(factor < 0.0 or (told and not LIKELY[0] < factor < LIKELY[1]))


def _felt_together(pieces: Pieces, errors: FloatArray, scale: FloatArray, joint: int) -> bool:
    """Tell whether a joint feels the links that others feel, by its factor in `scale` (k,).

    `errors` are those under `scale`. A reversed sign counts by itself.
    """
    if scale[joint] < 0.0:
        return True
    # With an extreme factor this joint feels links that no other feels, or none.
    extremes = np.tile(scale, (2, 1))
    extremes[:, joint] = SIZES[0], SIZES[-1]
    return all(clearly_better(errors, _errors_under(pieces, each)) for each in extremes)


def _errors_under(pieces: Pieces, scale: FloatArray) -> FloatArray:
    """Return `Pieces.errors` of channels whose efforts are as `_scaled` takes them."""
    scaled = _scaled(pieces, scale)
    return scaled.errors(scaled)


def _likeliest(whole: Pieces, scale: FloatArray, joint: int) -> FloatArray:
    """Return factors of which that of a joint is the likeliest."""

    def best(factors: FloatArray) -> FloatArray:
        each = np.tile(scale, (len(factors), 1))
        each[:, joint] = factors
        return min(each, key=lambda own: float(np.log(_scaled(whole, own).left()).sum()))

    coarse = best(np.concatenate([SIZES, -SIZES]))
    return best(coarse[joint] * NEARER)


def _scaled(pieces: Pieces, scale: FloatArray) -> Pieces:
    """Return [s A, e - s n] of channels whose efforts are s times those in N m."""
    products = pieces.products
    for _ in range(2):  # columns, then rows
        known, rows, end = np.split(np.swapaxes(products, -1, -2), [-2, -1], axis=-2)
        own = scale[:, None, None]
        products = np.concatenate([own * known, end - own * rows], axis=-2)
    return Pieces(products, pieces.counts, pieces.positive)
