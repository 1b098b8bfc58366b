"""The report: what is found in what was recorded, and the page."""

from __future__ import annotations

import copy
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from estimates import not_none
from report_samples import OFFSET, PAYLOAD, START, STD, TRUTH, constant

from load_identification.commands.identify_load import main
from load_identification.estimation.belief.error_budget import CAUSES
from load_identification.estimation.changes.hypotheses import MARGIN, Hypothesis
from load_identification.estimation.changes.state import State
from load_identification.interface.batches import SynchronizedBatch
from load_identification.interface.names import significant
from load_identification.interface.parameters import Parameters
from load_identification.model.robot import Robot
from load_identification.motion.limits import Limits
from load_identification.motion.sines import random_sines
from load_identification.pipeline import settings
from load_identification.pipeline.payload_stage import PayloadStage, Samples
from load_identification.report.budget_figure import budget_figure
from load_identification.report.changes_figure import changes_figure
from load_identification.report.information_figures import condition_number, directions
from load_identification.report.recorder import LEVELS, Recorder
from load_identification.report.report import write_report
from load_identification.report.series_figures import predict
from load_identification.report.snapshot import Outcome, Snapshot, snapshot_of
from load_identification.report.style import spans
from load_identification.simulation.cells import Conditions, filtered, record, sample
from load_identification.simulation.changes.runs import pieces
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS, SIX_JOINTS
from load_identification.simulation.sensors import SensorModel, simulate
from load_identification.typing_aliases import FloatArray

RATE = 500.0

PICTURES = (
    *('wrench', 'estimates', 'identified', 'payload', 'error_budget', 'excitation', 'offset'),
    'spectrum',
)


def recorded(seconds: float, slow: float = 1.0, seed: int = 0) -> tuple[Recorder, Snapshot]:
    """Send a simulated motion through the stages, with a recorder told of everything."""
    robot = Robot(SIX_JOINTS.urdf, SIX_JOINTS.sensor_frame)
    center = np.zeros(len(robot.joints))
    limit, highest = np.full(6, 2.0 / slow), 1.0 / min(slow, 8.0)
    motion = random_sines(
        center, Limits(center - 1.2, center + 1.2, limit), seconds, seed, highest
    )
    sim = simulate(robot, motion, PAYLOAD, SensorModel(), RATE, seed)
    parameters = Parameters()
    stage, estimator = (settings.motion_filter(parameters), settings.payload_estimator(parameters))
    stage.set_description(SIX_JOINTS.urdf, sim.frame)
    recorder = Recorder()
    for first in range(0, len(sim.stamps), 250):
        part = slice(first, first + 250)
        batch = SynchronizedBatch(
            sim.names, sim.frame, START + sim.stamps[part], sim.position[part],
            sim.velocity[part], sim.wrench[part],
        )  # fmt: skip
        recorder.add_raw(batch.stamps, batch.wrench)
        filtered = stage.update(batch)
        for piece in recorder.pieces(filtered) if filtered is not None else ():
            estimator.update(piece)
            recorder.add_samples(piece)
            estimate = estimator.estimate()
            if estimate is not None and recorder.wants_estimate(estimator.newest):
                recorder.add_snapshot(snapshot_of(estimate))
    return recorder, recorder.snapshots[-1]


@pytest.fixture(scope='module')
def rich() -> Recorder:
    return recorded(12.0)[0]


def outcome(truth: FloatArray | None = TRUTH, sign: float = 1.0) -> Outcome:
    return Outcome(
        source='a test & more',
        parameters=Parameters(wrench_convention='on_sensor' if sign > 0.0 else 'on_load'),
        residual_rms=np.array([0.03, 0.002]), used=600, dropped=Counter(stuck=3),
        description=SIX_JOINTS.urdf, truth=truth,
    )  # fmt: skip


def test_prediction_explains_all_but_the_noise(rich: Recorder) -> None:
    samples = rich.samples
    assert rich.bin_width == 1
    residual = samples.wrench - predict(samples, rich)
    rms = np.sqrt(np.mean(residual**2, axis=0))
    # White noise of 0.1 N and 0.005 N m at 500 Hz, low-passed at 20 Hz to about a quarter;
    # noise of the differentiated encoders on top doubles that at most.
    assert np.all(rms < np.array([0.06] * 3 + [0.003] * 3))


def test_identified_parts_are_events_in_order(rich: Recorder) -> None:
    assert rich.first == START
    words = [event.words for event in rich.events]
    assert words[:2] == ['mass identified', 'centre of mass identified']
    assert 'inertia identified' in words
    stamps = [event.stamp for event in rich.events]
    assert stamps == sorted(stamps)
    assert START < stamps[0] < START + 3_000_000_000


def test_directions_are_those_of_the_covariance(rich: Recorder) -> None:
    std, shares = directions(rich.snapshots[-1])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.all(np.diff(std) >= 0.0)
    assert condition_number(rich.snapshots[-1]) == pytest.approx(std[-1] / std[0])
    # A rich motion of two radians per second leaves no direction to a guess.
    assert condition_number(rich.snapshots[-1]) < 100.0


class Page(HTMLParser):
    """Reads a page: its text, the sources of its pictures, tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.text = ''
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        assert 'href' not in values
        if 'src' in values:
            self.sources.append(str(values['src']))
        if tag not in ('meta', 'img'):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope='module')
def report(rich: Recorder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the report of rich motion, with notes, and with events besides; return its page."""
    recorder = copy.deepcopy(rich)
    # What a change was is told after what it took away, at the stamp at which it was noticed.
    recorder.add_event(START + 7_100_000_000, 'load or offset changed')
    recorder.add_event(START + 7_200_000_000, 'mass no longer identified')
    recorder.add_event(START + 7_100_000_000, 'load changed')
    noted = replace(outcome(), notes=('wrench is < 15 ms older', 'turn joint_6'))
    return write_report(tmp_path_factory.mktemp('report'), recorder, noted)


def test_report_is_a_page_that_needs_no_other_file(report: Path) -> None:
    page = Page(report.read_text(encoding='utf-8'))
    assert len(page.sources) == len(PICTURES)
    assert all(source.startswith('data:image/png;base64,') for source in page.sources)
    assert sorted(f.stem for f in report.parent.glob('*.png')) == sorted(PICTURES)
    for words in ('a test & more', 'mass identified', 'Condition number', 'stuck 3', 'yes'):
        assert words in page.text
    assert 'Where the uncertainty comes frommass ± ' in page.text
    assert 'Refused' not in page.text
    assert 'not identified' not in page.text


def test_the_budget_is_drawn_by_cause_and_by_source_and_not_where_it_is_unknown() -> None:
    first, some = PAYLOAD.to_vector(), np.arange(10) < 3
    covariance = 1e-8 * np.eye(16)
    snapshot = Snapshot(0, first, first, OFFSET, covariance, TRUTH[:10], STD, some, ())
    assert budget_figure(snapshot) is None
    by_source = replace(snapshot, causes=np.array([[1.0], [0.0], [99.0], [0.0]]) * 1e-6)
    causes = np.zeros((len(CAUSES), 4))
    causes[[0, 2, CAUSES.index('pose field')]] = np.array([[1.0], [39.0], [60.0]]) * 1e-6
    for each, rows, names in (
        (by_source, ['mass'], ['errors of the cell', 'noise']),
        (
            replace(snapshot, causes=causes),
            ['mass', 'centre of mass x', 'centre of mass y'],
            ['sensor gain', 'pose field', 'noise'],
        ),
    ):
        figure = not_none(budget_figure(each))
        assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == rows
        assert [label.get_text() for label in figure.legends[0].get_texts()] == names
        written = [text.get_text() for text in figure.axes[0].texts]
        assert written[-1].startswith(f'± {significant(1960 * each.causes[:, 0].sum() ** 0.5)} ')


def test_notes_are_on_the_page_and_events_in_the_order_of_time(report: Path) -> None:
    text = Page(report.read_text('utf-8')).text
    assert 'Note:wrench is < 15 ms older' in text
    assert 'turn joint_6' in text
    changed = text.index('7.10load or offset changed; load changed')
    assert changed < text.index('7.20mass no longer')


def test_the_page_shows_the_inertia_and_every_error_in_standard_deviations(
    rich: Recorder, report: Path
) -> None:
    page = report.read_text('utf-8')
    (card,) = re.findall(r'<div class="card"><b>inertia</b><span>(.*?)</span>', page)
    assert re.fullmatch(r'\((−?[\d.]+, ){5}−?[\d.]+\) ± [\d.]+ kg·m², [\d.]+ % of the .*', card)
    assert 'error [std]' in page
    last = rich.snapshots[-1]
    assert f'>{(last.values[0] - TRUTH[0]) / last.std[0]:.1f}<'.replace('-', '−') in page


def test_figure_and_events_tell_the_same_of_what_was_lost_however_briefly(rich: Recorder) -> None:
    recorder, last = Recorder(), rich.snapshots[-1]
    for k in range(2000):
        known = (last.identified & (k != 1501)) if k > 3 else np.zeros(10, dtype=bool)
        known[1:4] &= k < 1800
        recorder.add_snapshot(replace(last, stamp=k * 1_000_000_000, identified=known))
    assert len(recorder.snapshots) < 600
    for value, end in ((0, 1999.0), (1, 1800.0)):
        turns = [(stamp, bool(known[value])) for stamp, known in recorder.turns]
        assert spans(turns, recorder, 1999.0) == [(4.0, 1501.0), (1502.0, end)]
    mass = [1e-9 * event.stamp for event in recorder.events if event.words.startswith('mass')]
    assert mass == [4.0, 1501.0, 1502.0]


@pytest.mark.usefixtures('undrawn')
def test_report_of_a_slow_motion_refuses_the_inertia(tmp_path: Path) -> None:
    (tmp_path / 'wrench_detail.png').write_bytes(b'of a former run')
    recorder, last = recorded(20.0, slow=8.0)
    assert last.identified[:4].all()
    assert not last.identified[4:].all()
    page = Page(write_report(tmp_path, recorder, outcome(truth=None)).read_text('utf-8'))
    assert page.text.count('Refused: not identified: inertia') == 4
    assert 'ros2 service call /io_and_status_controller/set_payload' in page.text
    assert 'truth' not in page.text
    assert not (tmp_path / 'wrench_detail.png').exists()


@pytest.mark.usefixtures('undrawn')
def test_an_alarm_and_the_scores_that_name_its_cause_are_drawn(tmp_path: Path) -> None:
    motion = MOTIONS['rich'](MOUNTS['puma'], 8.0, np.random.default_rng(0))
    path = sample(MOUNTS['puma'], motion, 8.0, RATE)
    joints, wrenches = record(path, PAYLOAD, Conditions(), 0)
    wrenches.wrench[wrenches.stamps > 4_000_000_000] += [0.0, 3.0, 5.0, 0.0, 0.0, 0.0]
    batch, _ = filtered(MOUNTS['puma'], joints, wrenches, Parameters())
    recorder = Recorder()
    stage = PayloadStage(Parameters(), recorder)
    for piece in pieces(batch):
        stage.update(Samples(filtered=piece))
    looks = recorder.looks[0]
    seconds, state, nis, scores = looks[:, 0], looks[:, 1], looks[:, 2], looks[:, 3:]
    np.testing.assert_allclose(np.diff(seconds), 0.1, atol=0.03)
    open_change = state == LEVELS.index(State.CHANGED)
    assert 3.9 < seconds[open_change][0] < 4.3
    assert (nis[open_change] > 1.0).all()
    assert (nis[seconds < 3.9] < 1.0).all()
    tested = np.isfinite(scores).any(axis=1)
    assert tested.any()
    assert not tested[~open_change].any()
    last = dict(zip(Hypothesis, scores[tested][-1], strict=True))
    assert last[Hypothesis.OFFSET] < MARGIN < min(last[Hypothesis.SAME], last[Hypothesis.LOAD])
    write_report(tmp_path, recorder, outcome(truth=None))
    assert (tmp_path / 'changes.png').exists()
    figure = not_none(changes_figure(recorder))
    named = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {'changed', 'load', 'offset'} < named
    assert named.isdisjoint({'contact', 'earlier'})
    left, right = figure.axes[1].get_xlim()
    assert 3.0 < left < 4.5 < right < 6.0


@pytest.mark.usefixtures('undrawn')
def test_report_without_any_identified_value_says_so(tmp_path: Path) -> None:
    recorder, last = recorded(2.0, slow=1e4)
    assert not last.identified.any()
    page = Page(write_report(tmp_path, recorder, outcome()).read_text('utf-8'))
    assert 'Not drawn: the centre of mass is not identified.' in page.text
    assert 'Not drawn: not recorded from topics.' in page.text
    assert 'set_payload' not in page.text
    assert page.text.count('Refused: not identified: mass') == 5


@pytest.mark.usefixtures('undrawn')
def test_long_recording_gets_a_close_up(rich: Recorder, tmp_path: Path) -> None:
    long = Recorder()
    samples = constant(START + 20_000_000 * np.arange(5000, dtype=np.int64), OFFSET)
    long.add_samples(samples)
    long.add_snapshot(replace(rich.snapshots[-1], stamp=int(samples.stamps[-1])))
    assert long.bin_width == 4
    page = Page(write_report(tmp_path, long, outcome()).read_text('utf-8'))
    assert (tmp_path / 'wrench_detail.png').exists()
    assert 'Each point averages 4 samples' in page.text
    # The mean of a bin is linear: that of the regressor predicts that of the wrench.
    first = samples.regressor[:4].mean(axis=0)
    np.testing.assert_allclose(long.samples.matrix[0], first, atol=1e-12)


def test_folder_that_cannot_be_made_is_named_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / 'file').touch()
    assert main([str(tmp_path / 'none.mcap'), '--report', str(tmp_path / 'file')]) == 2
    out, error = capsys.readouterr()
    assert out == ''
    assert re.fullmatch(r'identify_load: error: --report .*/file cannot be written: .*\n', error)


@pytest.mark.usefixtures('undrawn')
def test_command_writes_the_report_of_a_recording(
    bag: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / 'new' / 'report'
    assert main([str(bag), '--report', str(folder)]) == 0
    assert f'Written    {folder / "report.html"}' in capsys.readouterr().out.replace('\n', '')
    page = Page((folder / 'report.html').read_text('utf-8'))
    assert 'whole, 11.0 s' in page.text
    assert 'mass identified' in page.text
    # The spectrum is that of raw samples, up to half of their rate.
    assert (folder / 'spectrum.png').exists()
