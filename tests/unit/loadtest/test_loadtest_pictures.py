"""Results as pictures, pages and tables of libraries."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from alipes import ConfigError
from alipes.loadtest import Candidate, Closed, Comparison, Level, Report
from support.browser import broken_words, browser, letter_heights, overflow
from support.load_windows import report, window

pytestmark = pytest.mark.extra("plots")

PNG = b"\x89PNG\r\n\x1a\n"


def comparison(rounds: int = 4) -> Comparison:
    random = np.random.default_rng(1)
    sides = [[window(1000, mean * float(random.normal(1, 0.01))) for _ in range(rounds)] for mean in (10.0, 12.0)]
    names = [Candidate(f"<{name}>", "http://localhost:8000", "m") for name in ("old", "new")]
    return Comparison((names[0], names[1]), Closed(1), (sides[0], sides[1]))


class Page(HTMLParser):
    """What a page has: its tags with their attributes, and the figures inside of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.figures = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in {"src", "href", "xlink:href"}]

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script":
            self.figures += data


@pytest.mark.parametrize("result", [report(), comparison()], ids=["report", "comparison"])
def test_a_page_needs_no_other_file(result: Report | Comparison, tmp_path: Path) -> None:
    result.save(tmp_path / "page.html", "A <title>")
    text = (tmp_path / "page.html").read_text()
    page = Page(text)
    assert page.tags.count("svg") == (4 if isinstance(result, Report) else 3)
    assert all(link.startswith("#") for link in page.links)
    assert "A &lt;title&gt;" in text
    assert not re.search(r"url\((?!#)", text)
    assert json.loads(page.figures) == result.to_dict()


@pytest.mark.parametrize("result", [report(), comparison()], ids=["report", "comparison"])
def test_a_page_of_results_fits_the_window_of_a_telephone(result: Report | Comparison, tmp_path: Path) -> None:
    result.save(tmp_path / "page.html", "A title")
    with browser() as shown:
        assert overflow(shown, (tmp_path / "page.html").as_uri()) <= 0
        assert min(letter_heights(shown)) >= 8, "letters of the pictures can be read"
        assert broken_words(shown) == []


def test_every_axis_of_a_report_has_two_labels_at_least() -> None:
    for axis in (axis for result in (report(), comparison()) for axis in result.plot().axes):
        for side in (axis.xaxis, axis.yaxis):
            low, high = sorted(side.get_view_interval())
            assert sum(low <= place <= high for place in side.get_majorticklocs()) >= 2, (axis.get_title(), side)


def test_the_same_figures_give_the_same_page() -> None:
    result = report()
    assert result.to_html() == result.to_html()


@pytest.mark.parametrize("result", [report(), comparison()], ids=["report", "comparison"])
def test_a_picture_is_a_file_of_the_format_that_it_is_named(result: Report | Comparison, tmp_path: Path) -> None:
    result.save(tmp_path / "levels.png")
    result.save(tmp_path / "levels.svg")
    assert (tmp_path / "levels.png").read_bytes().startswith(PNG)
    assert ElementTree.parse(tmp_path / "levels.svg").getroot().tag.endswith("svg")


def test_a_report_s_lines_are_its_figures() -> None:
    rates, latencies, tails, windows = report().plot().axes
    assert list(rates.lines[0].get_ydata()) == [101, 200]
    assert list(latencies.lines[0].get_ydata()) == [11, 20]
    assert [line.get_label() for line in tails.lines] == ["1 in flight", "8 in flight"]
    assert list(windows.lines[0].get_ydata()) == [50, 100, 101, 102]
    assert list(windows.lines[1].get_ydata()) == [100, 101, 102]


def test_a_comparison_s_lines_are_its_ratios() -> None:
    ratios, rounds, tails = comparison().plot().axes
    assert [tick.get_text() for tick in ratios.get_yticklabels()] == ["rate", "p50", "p90", "p99"]
    assert len(rounds.lines) == len(tails.lines) == 2
    low, high = ratios.get_xlim()
    assert low * high == pytest.approx(1)


@pytest.mark.parametrize("result", [Report("a", []), Report("a", [Level(Closed(1), [window(0)], 1, False, 1)])])
def test_without_answers_there_is_a_page_and_no_picture(result: Report) -> None:
    with pytest.raises(ConfigError, match="nothing to draw"):
        result.plot()
    assert "<svg" not in result.to_html()


def test_tables_have_the_figures(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    result = report()
    result.save(tmp_path / "levels.parquet")
    table = parquet.read_table(tmp_path / "levels.parquet")
    assert table.column("load").to_pylist() == [1, 8]
    assert table.column("rate").to_pylist() == [101, 200]
    frame = result.to_pandas()
    assert list(frame["answers"]) == [303, 200]
    assert list(frame.columns) == table.column_names
    assert list(result.to_pandas("windows")["is_used"]) == [False, True, True, True, True]
    assert list(comparison().to_pandas()["measure"]) == ["rate", "p50_ms", "p90_ms", "p99_ms", "p99.9_ms"]
    assert len(comparison().to_pandas("rounds")) == 8


def test_a_browser_shows_the_whole_page(tmp_path: Path) -> None:
    comparison().save(tmp_path / "page.html")
    with browser() as shown:
        shown.get((tmp_path / "page.html").as_uri())
        picture = shown.find_element("css selector", "svg")
        width = shown.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
        assert picture.size["width"] > 400
        assert picture.size["height"] > 100
        assert width <= 0
        assert "<new> / <old>" in picture.text
        assert "<new> takes" in shown.find_element("css selector", "ul").text
