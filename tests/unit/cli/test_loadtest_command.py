"""What `alipes loadtest` reads and shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.cli.app import run
from alipes.cli.loadtest_mix import Entry, data_of, read_entry
from alipes.cli.loadtest_view import sparkline
from alipes.cli.loadtest_words import windows_of


def test_a_sparkline_has_a_bar_for_each_of_the_last_values() -> None:
    assert sparkline([0, 4, 8]) == "▁▅█"
    assert sparkline([1, float("nan"), 1]) == "██"
    assert len(sparkline(list(range(50)))) == 20
    assert sparkline([]) == ""
    assert sparkline([0, 0]) == "▁▁"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "name a model"),
        (["m", "--callers=1", "--rate=1"], "one of --callers, --rate and --intervals"),
        (["m", "--callers=two"], "write --callers as numbers"),
        (["m", "--concurrency=two"], "write --callers as numbers"),
        (["m", "--duration=1", "--count=2"], "give --duration without --count and --compare"),
        (["m", "--rate=1:2:3:4"], "write --rate as numbers"),
        (["m", "--shape=x"], "write --shape INPUT:D,D"),
        (["m", "--shape=x:a"], "write --shape INPUT:D,D"),
        (["--path=/x"], "give --path with --body"),
        (["m", "--compare", "1", "2", "--callers=1,2"], "one level of load"),
        (["m", "--compare", "a", "b"], "leave MODEL out"),
        (["--mix=a", "--mix=b", "--compare", "a", "b"], "neither --count nor --mix"),
        (["m", "--mix=a"], "name models as MODEL or with --mix, not both"),
        (["--mix=a", "--model-version=2"], "write --mix MODEL:VERSION"),
        (["--mix=a", "--data=x.npz"], "with --mix write --data MODEL=FILE such as a=inputs.npz"),
        (["--mix=a", "--data=a="], "with --mix write --data MODEL=FILE"),
        (["--mix=a", "--data==x.npz"], "with --mix write --data MODEL=FILE"),
        (["--mix=a", "--mix=b:2", "--data=c=x.npz"], "--data names 'c', but --mix has a and b:2"),
        (["--mix=a", "--data=a=x.npz", "--data=a=y.npz"], "give --data a once"),
        (["--mix=a", "--data=a=none.npz"], "give --data a file that np.savez wrote"),
        (["--mix=a", "--data=a=x.npz", "--zero"], "give --mix with --zero and --shape where a model"),
        (["--mix=a", "--data=a=x.npz", "--shape=X:2"], "give --mix with --zero and --shape where a model"),
        (["m", "--data=x.npz", "--data=y.npz"], "give --data once: it may be given for each model of --mix alone"),
        (["--mix=a", "--check=x.npz"], "give --mix with --check first"),
        (["--mix=a=no"], "write --mix MODEL[:VERSION]"),
        (["--mix=a=0"], "write --mix MODEL[:VERSION]"),
        (["--mix=a@"], "write --mix MODEL[:VERSION]"),
        (["--mix==2"], "write --mix MODEL[:VERSION]"),
        (["--path=/x", "--body=b", "--stream"], "give --path without"),
        (["--path=/x", "--body=b", "--sequences=3"], "give --path without"),
        (["--path=/x", "--body=b", "--mix=a"], "give --path without"),
        (["m", "--sequences=some"], "write --sequences as LENGTH"),
        (["m", "--sequences=3:"], "write --sequences as LENGTH"),
        (["m", "--shared-outputs=9"], "give --shared-outputs with --shared-memory"),
        (["m", "--shared-memory", "--shared-outputs=9", "--check=first"], "give --check without --shared-outputs"),
        (["m", "--data=x.npz", "--zero"], "give --data without --zero"),
        (["m", "--replay=x.jsonl", "--zero"], "give --replay without other options"),
        (["--replay=x.jsonl", "--mix=a"], "give --replay without other options"),
        (["--replay=x.jsonl", "--path=/x", "--body=b"], "give --replay without other options"),
    ],
)
def test_a_wrong_option_says_what_to_write(words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["loadtest", "--url=http://127.0.0.1:1", *words]) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("duration_s", "window_s", "windows"),
    [(10.0, 1.0, (1.0, 10)), (0.5, 1.0, (0.5, 1)), (2.5, 1.0, (1.25, 2)), (0.8, 0.1, (0.1, 8))],
)
def test_a_duration_is_divided_into_equal_windows(
    duration_s: float, window_s: float, windows: tuple[float, int]
) -> None:
    assert windows_of(duration_s, window_s) == windows


@pytest.mark.parametrize(
    ("word", "entry"),
    [
        ("digits", Entry("digits", "digits", "", 1, "")),
        ("digits=0.5", Entry("digits", "digits", "", 0.5, "")),
        ("a:2=3@grpc://host:8001", Entry("a:2@grpc://host:8001", "a", "2", 3, "grpc://host:8001")),
        ("a:b@host:8000", Entry("a:b@host:8000", "a:b", "", 1, "host:8000")),
    ],
)
def test_an_entry_of_a_mix_has_a_version_a_weight_and_an_address(word: str, entry: Entry) -> None:
    assert read_entry(word) == entry


def test_the_data_of_a_mix_is_found_by_model_and_by_entry() -> None:
    entries = [read_entry(word) for word in ("digits=3", "digits:2", "text@grpc://host:8001", "other")]
    assert data_of(entries, []) == [None, None, None, None]
    words = ["digits=all=x.npz", "digits:2=two.npz", "text@grpc://host:8001=text.npz"]
    assert data_of(entries, words) == [Path("all=x.npz"), Path("two.npz"), Path("text.npz"), None]


def test_the_help_page_has_its_options_under_headings(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["loadtest", "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings[0] == "Arguments:"
    assert headings[-1] == "Others:"
    assert "What is sent:" in headings
    assert lines.index("What is sent:") < next(n for n, line in enumerate(lines) if line.startswith("  --sequences "))
