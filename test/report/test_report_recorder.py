"""What a report is made of: recorded in bounded memory, and the spectrum of what is left."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from estimates import not_none
from report_samples import OFFSET, PAYLOAD, START, STD, TRUTH, constant

from load_identification.report.recorder import GAP, SNAPSHOTS, Recorder
from load_identification.report.series_figures import predict
from load_identification.report.snapshot import (
    BinnedSeries,
    LiveliestWindow,
    Snapshot,
)
from load_identification.report.spectrum import SpectrumRecorder, find_resonances
from load_identification.typing_aliases import FloatArray


def test_series_keeps_averages_and_extremes_of_any_length() -> None:
    rng = np.random.default_rng(1)
    data = rng.standard_normal((9001, 3))
    series = BinnedSeries(3, capacity=16)
    for part in np.split(data, np.sort(rng.integers(0, len(data), 60))):
        series.add(part)
    width = series.width
    bins = data[: len(data) // width * width].reshape(-1, width, 3)
    assert 8 <= len(bins) <= 16
    # Sums of a thousand numbers of size one.
    mean, low, high = series.bins
    np.testing.assert_allclose(mean, bins.mean(axis=1), atol=1e-12)
    np.testing.assert_array_equal(low, bins.min(axis=1))
    np.testing.assert_array_equal(high, bins.max(axis=1))


def test_liveliest_window_is_the_one_with_the_burst() -> None:
    score = np.zeros(1000)
    score[430:440] = 1.0
    window = LiveliestWindow(1, length=100)
    rows = np.arange(1000.0)[:, None]
    for k in range(0, 1000, 30):
        window.add(rows[k : k + 30], score[k : k + 30])
    np.testing.assert_array_equal(window.rows.ravel(), np.arange(400.0, 500.0))


def spectrum_of(
    residual: FloatArray, motion: FloatArray, step_ns: int, every: int
) -> SpectrumRecorder:
    """Feed raw samples, explained exactly at every so-manieth of them."""
    stamps = START + step_ns * np.arange(len(residual), dtype=np.int64)
    recorder = SpectrumRecorder()
    for k in range(0, len(stamps), 200):
        part = slice(k, k + 200)
        recorder.add_raw(stamps[part], (residual + motion)[part])
        recorder.add_explained(stamps[part][::every], motion[part][::every])
    return recorder


def noise(rng: np.random.Generator, seconds: float) -> FloatArray:
    n = int(1000 * seconds)
    return rng.standard_normal((n, 6)) * np.array([0.1] * 3 + [0.005] * 3)


def test_level_of_white_noise_is_its_standard_deviation_over_the_band() -> None:
    spectrum = not_none(
        spectrum_of(
            noise(np.random.default_rng(2), 60.0), np.zeros((60000, 6)), 1_000_000, 20
        ).spectrum()
    )
    # One-sided: sigma² over 500 Hz. 58 stretches of 945 lines: 0.3 %.
    level = np.sqrt(np.mean(spectrum.density**2, axis=0))
    np.testing.assert_allclose(level, np.array([0.1] * 3 + [0.005] * 3) / np.sqrt(500), rtol=0.02)


def test_resonance_of_a_payload_on_a_compliant_sensor_is_found() -> None:
    rng = np.random.default_rng(3)
    residual = noise(rng, 30.0)
    # An oscillator of 38 Hz and 2 % damping, shaken by noise, on force x and torque y.
    pole = np.exp((-0.02 + 1j * np.sqrt(1 - 0.02**2)) * 2 * np.pi * 38.0 / 1000.0)
    x = np.zeros(len(residual), dtype=complex)
    for k, kick in enumerate(rng.standard_normal(len(x) - 1)):
        x[k + 1] = pole * x[k] + 0.02 * kick
    residual[:, 0] += x.imag
    residual[:, 4] += 0.05 * x.imag
    spectrum = not_none(spectrum_of(residual, np.zeros_like(residual), 1_000_000, 20).spectrum())
    # Half of its width at half power is 0.8 Hz, the resolution half a hertz.
    assert spectrum.resonances[0] == pytest.approx(38.0, abs=1.5)


def test_noise_shows_no_resonance() -> None:
    rng = np.random.default_rng(4)
    frequency = np.arange(1.0, 500.0, 0.5)
    for segments in (4, 20, 200):
        for _ in range(70):
            # Averages of |X|², of stretches of which some overlap.
            shape = segments / 1.06
            power = rng.gamma(shape, 1.0 / shape, (len(frequency), 6))
            assert find_resonances(frequency, power, segments) == ()


def test_motion_leaves_no_image_at_the_rate_of_the_filter() -> None:
    t = np.arange(30000) / 1000.0
    motion = 10.0 * np.sin(2 * np.pi * 3.0 * t)[:, None] * np.ones(6)
    spectrum = not_none(
        spectrum_of(noise(np.random.default_rng(5), 30.0), motion, 1_000_000, 20).spectrum()
    )
    assert spectrum.resonances == ()


@pytest.mark.parametrize('said', [False, True])
def test_payload_that_was_lost_explains_its_own_time(said: bool) -> None:
    """Of snapshots that are thinned, an event alone may tell of the change."""
    recorder = Recorder()
    first, second = PAYLOAD.to_vector(), 2.0 * PAYLOAD.to_vector()
    everything, nothing = np.ones(10, dtype=bool), np.zeros(10, dtype=bool)
    snapshot = Snapshot(
        0, first, first, OFFSET, 1e-8 * np.eye(16), TRUTH[:10], STD, everything, ()
    )
    stamps = START + 20_000_000 * np.arange(300, dtype=np.int64)
    for k in range(0, 300, 10):
        recorder.add_samples(constant(stamps[k : k + 10], OFFSET))
        parameters = first if k < 140 else second
        if said and k == 150:
            recorder.add_event(int(stamps[150]), 'load changed')
        if said and k == 140:
            continue
        recorder.add_snapshot(
            replace(
                snapshot,
                stamp=int(stamps[k + 9]),
                total=parameters,
                identified=nothing if k == 140 and not said else everything,
            )
        )
    samples = recorder.samples
    predicted = predict(samples, recorder)
    for part, parameters in ((slice(0, 149), first), (slice(151, 300), second)):
        expected = OFFSET - samples.matrix[part] @ parameters
        # Sums of ten products.
        np.testing.assert_allclose(predicted[part], expected, atol=1e-12)


def test_gap_is_counted_and_a_jump_back_starts_afresh() -> None:
    recorder = Recorder()
    stamps = START + 20_000_000 * np.arange(50, dtype=np.int64)
    recorder.add_samples(constant(stamps, OFFSET))
    later = stamps + 10_000_000_000
    recorder.add_samples(constant(later, OFFSET))
    gap = 1e-9 * float(later[0] - stamps[-1])
    assert gap > GAP
    assert recorder.gaps == [pytest.approx(gap)]
    recorder.add_samples(constant(stamps, OFFSET))
    assert recorder.events[-1].words.startswith('stamps jumped back')
    assert recorder.count == len(stamps)
    recorder.add_samples(constant(later, OFFSET, 'other'))
    assert recorder.events[-1].words.startswith('frame is now other')


def test_time_begins_with_the_first_raw_sample_and_again_after_a_jump_back() -> None:
    recorder = Recorder()
    stamps = START + 20_000_000 * np.arange(50, dtype=np.int64)
    for later in (0, 5_000_000_000, -60_000_000_000):
        # Filtered samples come later than the raw ones, by half a window.
        recorder.add_raw(stamps + later, np.zeros((50, 6)))
        recorder.add_samples(constant(stamps[5:] + later, OFFSET))
    assert recorder.first == START - 60_000_000_000
    assert recorder.samples.seconds[0] == pytest.approx(0.1)


def test_an_hour_takes_the_memory_of_two_minutes() -> None:
    recorder = Recorder()
    estimate = Snapshot(
        0, PAYLOAD.to_vector(), PAYLOAD.to_vector(), OFFSET, 1e-8 * np.eye(16), TRUTH[:10], STD,
        np.ones(10, dtype=bool), (),
    )  # fmt: skip
    seconds = 4
    span = 20_000_000 * np.arange(50 * seconds, dtype=np.int64)
    raw = np.zeros((100 * seconds, 6))
    size = {}
    for k in range(0, 3600, seconds):
        begin = START + k * 1_000_000_000
        recorder.add_raw(begin + 10_000_000 * np.arange(len(raw), dtype=np.int64), raw)
        recorder.add_samples(constant(begin + span, OFFSET))
        if recorder.wants_estimate(begin):
            recorder.add_snapshot(replace(estimate, stamp=begin, covariance=1e-8 * np.eye(16)))
        if k in (120, 3596):
            size[k] = len(pickle.dumps(recorder))
    assert recorder.count == 180_000
    assert len(recorder.snapshots) <= SNAPSHOTS
    # The estimates are not all there after two minutes: 512 of some 3 kB.
    assert size[3596] - size[120] < 3000 * SNAPSHOTS
    assert len(recorder.samples.seconds) <= 2048
