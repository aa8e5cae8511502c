"""Pictures of records and streams."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from alipes.errors import InvalidArgument, MonitorError, Unsupported
from alipes.monitor.columns import DURATIONS
from alipes.monitor.files import header, write_rows
from alipes.monitor.ledger import Row
from alipes.plots import plot_monitor, plot_stream
from alipes.plots.picture import picture
from alipes.plots.record import curves
from alipes.plots.stream import thinned

pytestmark = pytest.mark.extra("plots")

PNG = b"\x89PNG\r\n\x1a\n"


def row(model: str, timestamp: float, count: int, queue: int, ip: str = "here") -> Row:
    return Row(timestamp, ip, model, 1, count, dict.fromkeys(DURATIONS, 0) | {"queue": queue})


ROWS = [row(model, 100 + tenth / 10, 4, 40 * tenth) for tenth in range(5) for model in ("snapshotter", "my-classifier")]


def test_a_curve_begins_with_the_second_row_of_its_model() -> None:
    first, second = curves(ROWS)
    assert (first.label, second.label) == ("snapshotter", "my-classifier")
    assert first.seconds == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert first.waiting_us == [10, 20, 30, 40]
    assert first.a_second == pytest.approx([40, 40, 40, 40])


def test_servers_have_curves_of_their_own() -> None:
    rows = [row("m", 1.0 + step, 1, 1, ip) for step in range(2) for ip in ("a", "b")]
    assert [curve.label for curve in curves(rows)] == ["m at a", "m at b"]


def test_a_record_becomes_a_picture_with_a_line_for_each_model(tmp_path: Path) -> None:
    file = tmp_path / "stats.csv"
    with file.open("w", newline="") as out:
        out.write(header(()))
        write_rows(out, ROWS, ())
    figure = plot_monitor(file, batch_size=16, sampling_rate=4, path=tmp_path / "stats.png")
    waiting, through = figure.axes
    assert waiting.get_ylabel() == "Average queue latency in interval [us]"
    assert through.get_ylabel() == "Throughput [data s / s]"
    assert list(waiting.lines[0].get_ydata()) == [10, 20, 30, 40]
    assert list(through.lines[0].get_ydata()) == pytest.approx([160] * 4)
    assert (tmp_path / "stats.png").read_bytes().startswith(PNG)
    assert len(plot_monitor(ROWS, models=["snapshotter"]).axes[1].lines) == 1


def test_few_intervals_are_marked_and_so_is_a_single_one() -> None:
    waiting, through = plot_monitor(ROWS[:4]).axes
    assert list(waiting.lines[0].get_xdata()) == pytest.approx([0.1])
    assert (waiting.lines[0].get_marker(), through.lines[0].get_marker()) == ("o", "x")
    assert waiting.get_xlim() == pytest.approx((0, 0.105))
    many = [row("m", 100 + tenth / 10, 4, 40 * tenth) for tenth in range(100)]
    waiting, through = plot_monitor(many).axes
    assert (waiting.lines[0].get_marker(), through.lines[0].get_marker()) == ("None", "None")


def test_a_single_value_of_a_stream_is_a_point() -> None:
    (line,) = plot_stream([[0.5]], sampling_rate=4, start=1).axes[0].lines
    assert (list(line.get_xdata()), list(line.get_ydata()), line.get_marker()) == ([1], [0.5], "o")
    assert plot_stream(np.zeros(1000), sampling_rate=4).axes[0].lines[0].get_marker() == "None"


def test_a_record_without_two_rows_of_a_model_cannot_be_drawn() -> None:
    with pytest.raises(MonitorError, match="nothing to draw"):
        plot_monitor(ROWS[:2])


def test_an_output_becomes_a_picture_against_time(tmp_path: Path) -> None:
    figure = plot_stream(np.arange(8.0).reshape(8, 1), sampling_rate=4, start=2.0, path=tmp_path / "stream.svg")
    (line,) = figure.axes[0].lines
    assert list(line.get_xdata()) == [2 + step / 4 for step in range(8)]
    assert list(line.get_ydata()) == list(range(8))
    assert b"<svg" in (tmp_path / "stream.svg").read_bytes()


def test_several_outputs_stand_under_their_names() -> None:
    figure = plot_stream({"streamed": [1.0, 2.0], "whole": [1.0, 3.0]}, sampling_rate=1)
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["streamed", "whole"]


def test_a_notebook_shows_a_picture_by_itself() -> None:
    assert plot_stream([1.0, 2.0], sampling_rate=1)._repr_png_().startswith(PNG)


def test_drawing_leaves_pyplot_alone() -> None:
    code = (
        "import sys\nfrom alipes.plots import plot_stream\nplot_stream([1, 2], sampling_rate=1)\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize("outputs", [np.zeros((2, 3)), [], 1.0])
def test_what_has_no_value_for_each_moment_cannot_be_drawn(outputs: object) -> None:
    with pytest.raises(InvalidArgument, match="one value for each moment"):
        plot_stream(outputs, sampling_rate=1)  # type: ignore[arg-type]


def test_a_rate_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="more than 0"):
        plot_stream([1.0], sampling_rate=0)


def test_a_long_output_is_thinned_and_keeps_its_peaks() -> None:
    line = np.zeros(1_000_003)
    line[[7, 500_000, 1_000_002]] = [1.0, -2.0, 3.0]
    places, shown = thinned(line, 1000)
    assert len(places) <= 1000
    assert {7, 500_000, 1_000_002} <= set(places)
    assert np.array_equal(shown, line[places])
    assert np.all(np.diff(places) > 0)
    assert np.array_equal(thinned(line[:10], 1000)[1], line[:10])


def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(Unsupported, match=r"alipes\[plots\]"):
        picture()
