"""What `alipes loadtest` reads and shows."""

from __future__ import annotations

import pytest
from alipes.cli.app import run
from alipes.cli.loadtest_mix import Entry, read_entry
from alipes.cli.loadtest_view import sparkline


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
        (["m", "--rate=1:2:3:4"], "write --rate as numbers"),
        (["m", "--shape=x"], "write --shape INPUT:D,D"),
        (["m", "--shape=x:a"], "write --shape INPUT:D,D"),
        (["--path=/x"], "give --path with --body"),
        (["m", "--compare", "1", "2", "--callers=1,2"], "one level of load"),
        (["m", "--compare", "a", "b"], "leave MODEL out"),
        (["--mix=a", "--mix=b", "--compare", "a", "b"], "neither --count nor --mix"),
        (["m", "--mix=a"], "name models as MODEL or with --mix, not both"),
        (["--mix=a", "--model-version=2"], "write --mix MODEL:VERSION"),
        (["--mix=a", "--data=x.npz"], "give --mix without --data"),
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
    ],
)
def test_a_wrong_option_says_what_to_write(words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["loadtest", "--url=http://127.0.0.1:1", *words]) == 2
    assert text in capsys.readouterr().err


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


def test_the_help_page_has_its_options_under_headings(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["loadtest", "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings[0] == "Arguments:"
    assert headings[-1] == "Others:"
    assert "What is sent:" in headings
    assert lines.index("What is sent:") < next(n for n, line in enumerate(lines) if line.startswith("  --sequences "))
