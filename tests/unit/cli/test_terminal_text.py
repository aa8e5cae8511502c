"""Tables and sentences fit a terminal, and are whole in a pipe."""

from __future__ import annotations

import io

import pytest
from alipes.cli.columns import print_columns
from alipes.cli.sentences import print_sentence
from rich.console import Console

SENTENCE = "the rates show no difference that could be seen on this machine"
HEADINGS = ("load", "p50", "p99.9", "max", "state")
ROW = ("8 in flight", "0.12 ms", "0.34 ms", "0.56 ms", "not settled")


class Terminal(io.StringIO):
    """A terminal that keeps what it shows."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def forty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.usefixtures("forty_columns")
def test_a_sentence_is_broken_between_words_on_a_terminal() -> None:
    shown = Terminal()
    print_sentence(SENTENCE, file=shown)
    lines = shown.getvalue().splitlines()
    assert all(len(line) <= 40 for line in lines)
    assert lines[1].startswith("  ")
    assert [word for line in lines for word in line.split()] == SENTENCE.split()


@pytest.mark.usefixtures("forty_columns")
def test_a_sentence_is_one_line_in_a_pipe() -> None:
    shown = io.StringIO()
    print_sentence(SENTENCE, file=shown)
    assert shown.getvalue() == f"{SENTENCE}\n"


@pytest.mark.parametrize(
    ("width", "headings"),
    [(80, HEADINGS), (50, ("load", "p50", "max", "state")), (40, ("load", "p50", "state"))],
)
def test_a_narrow_terminal_does_without_spare_columns(width: int, headings: tuple[str, ...]) -> None:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=True, color_system=None)
    print_columns(HEADINGS, [ROW], spare=("p99.9", "max"), console=console)
    first, second = file.getvalue().splitlines()
    assert tuple(first.split()) == headings
    assert second.rstrip().endswith("not settled")


def test_a_pipe_has_all_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_columns(HEADINGS, [ROW], spare=("p99.9", "max"))
    assert tuple(capsys.readouterr().out.splitlines()[0].split()) == HEADINGS
