"""What `alipes deploy simulate` reads and shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from alipes.cli.app import run
from support.browser import broken_words, browser, letter_heights, overflow

DAY = "time,count\n" + "".join(f"{second},{20 if 30 <= second < 60 else 4}\n" for second in range(120))


@pytest.fixture
def day(tmp_path: Path) -> str:
    path = tmp_path / "day.csv"
    path.write_text(DAY, encoding="utf-8")
    return str(path)


def test_both_scalers_are_shown_as_a_table(day: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--start-up=5", "--service-time=0.2", "--concurrency=4", "--max=9", "--replica-hour=2"]
    assert run(["deploy", "simulate", day, *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "960 requests in 0.0 hours."
    assert lines[1].endswith("works on 4 requests at a time and answers 20 requests per second.")
    assert lines[2].split()[:3] == ["scaler", "median", "99"]
    assert [line.split("  ")[0] for line in lines[3:]] == ["Knative", "start-up aware"]


def test_figures_as_json_know_the_settings(day: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--start-up=5", "--service-time=0.2", "--json", "--knative=target=0.1", "--knative=max-scale=50"]
    assert run(["deploy", "simulate", day, *words]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["Knative"]["most_replicas"] == 50
    assert figures["start-up aware"]["requests"] == 960
    assert figures["Knative"]["cost"] is None


def test_a_measured_curve_says_how_many_requests_at_a_time(
    day: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"point": {"m": {"callers": callers}}, "figures": {"rate": rate}, "failure": "", "notes": [], "details": {},
         "is_settled": True}
        for callers, rate in ((1, 50), (2, 95), (4, 100))
    ]  # fmt: skip
    history = tmp_path / "history.jsonl"
    history.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(["deploy", "simulate", day, "--start-up=5", f"--sized-by={history}"]) == 0
    assert "works on 2 requests at a time and answers 95 requests" in capsys.readouterr().out


def test_the_page_has_the_table_and_says_where_it_is(
    day: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "day.html"
    assert run(["deploy", "simulate", day, "--start-up=5", "--service-time=0.2", f"--output={page}"]) == 0
    assert f"{page}: open it in a browser" in capsys.readouterr().out
    text = page.read_text(encoding="utf-8")
    assert "<td>start-up aware</td>" in text
    assert text.count("<svg") == 3 or "pictures need matplotlib" in text


@pytest.mark.extra("plots")
def test_the_page_of_a_day_fits_the_window_of_a_telephone(day: str, tmp_path: Path) -> None:
    page = tmp_path / "day.html"
    assert run(["deploy", "simulate", day, "--start-up=5", "--service-time=0.2", f"--output={page}"]) == 0
    with browser() as shown:
        assert overflow(shown, page.as_uri()) <= 0
        assert broken_words(shown) == []
        assert min(letter_heights(shown)) >= 8, "letters of the pictures can be read"


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ([], 2, "either --service-time SECONDS or --sized-by FILE"),
        (["--service-time=1", "--sized-by=x"], 2, "either --service-time SECONDS or --sized-by FILE"),
        (["--sized-by=none.json"], 1, "cannot be read as a result of alipes tune"),
        (["--service-time=1", "--knative=window"], 2, "write --knative NAME=VALUE"),
        (["--service-time=1", "--knative=windows=3s"], 1, "Knative's scaler has no setting 'windows'"),
        (["--service-time=1", "--output=/none/page.html"], 1, "choose another --output"),
    ],
)
def test_a_wrong_simulation_says_what_to_write(
    words: list[str], code: int, text: str, day: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["deploy", "simulate", day, "--start-up=5", *words]) == code
    assert text in " ".join(capsys.readouterr().err.split())
