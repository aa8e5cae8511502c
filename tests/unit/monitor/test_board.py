"""What a screen shows of a record."""

from __future__ import annotations

import io

import pytest
from alipes.monitor.board import Board
from alipes.monitor.columns import DURATIONS
from alipes.monitor.judge import Verdict
from alipes.monitor.ledger import Row
from alipes.monitor.screen import Screen, picture_of
from rich.console import Console

IDLE = Verdict("idle", None, "nothing was executed")


def row(timestamp: float, count: int = 10, queue: int = 100, ip: str = "here", model: str = "m") -> Row:
    durations = dict.fromkeys(DURATIONS, 0) | {"queue": queue, "compute_infer": 20 * count}
    return Row(timestamp, ip, model, 1, count, durations)


def printed(board: Board, now: float) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(picture_of(board, IDLE, now))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_figures_are_means_over_the_last_seconds() -> None:
    board = Board(100.0)
    board.add([row(101.0), row(102.0, count=30, queue=300)])
    (line,) = board.lines(102.0)
    assert (line.a_second, line.queue_us, line.compute_us, line.total) == (20.0, 10.0, 20.0, 40)


def test_what_is_long_ago_counts_in_the_total_alone() -> None:
    board = Board(100.0)
    board.add([row(101.0), row(109.0, count=5)])
    (line,) = board.lines(110.0)
    assert (line.a_second, line.total) == (1.0, 15)
    (line,) = board.lines(200.0)
    assert (line.a_second, line.queue_us, line.total) == (0.0, 0.0, 15)


def test_a_server_is_named_where_there_are_several() -> None:
    board = Board(100.0)
    board.add([row(101.0)])
    assert "server" not in printed(board, 101.0)
    board.add([row(101.0, ip="there")])
    assert "there" in printed(board, 101.0)


def test_a_name_that_looks_like_markup_is_shown_as_it_is() -> None:
    board = Board(100.0)
    board.add([row(101.0, model="[red]m[/red]")])
    assert "[red]m[/red]" in printed(board, 101.0)


@pytest.mark.parametrize("terminal", [True, False])
def test_the_last_state_stays_on_the_screen(terminal: bool) -> None:
    file = io.StringIO()
    board = Board(100.0)
    with Screen(board, lambda: IDLE, Console(file=file, force_terminal=terminal, width=100)):
        board.add([row(101.0, model="classifier")])
    assert "classifier" in file.getvalue()
    assert "nothing was executed" in file.getvalue()
