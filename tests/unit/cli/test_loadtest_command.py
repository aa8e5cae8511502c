"""What `alipes loadtest` reads and shows."""

from __future__ import annotations

import pytest
from alipes.cli.app import run
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
    ],
)
def test_a_wrong_option_says_what_to_write(words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["loadtest", "--url=http://127.0.0.1:1", *words]) == 2
    assert text in capsys.readouterr().err
