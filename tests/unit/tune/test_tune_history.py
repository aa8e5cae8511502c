"""The file of trials: what is found again, and what a damaged one does."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes import ConfigError
from alipes.tune import Machine, Outcome, Point
from alipes.tune.history import History

HERE = Machine("a processor", 2, 8 << 30)
POINT = Point.of({"m": {"instances": 2, "preferred": (4, 8)}})
OUTCOME = Outcome(POINT, {"rate": 100.0, "p99_ms": 2.0}, notes=("a note",), details={"queue_ms": 0.5})


def test_what_was_written_is_found_again(tmp_path: Path) -> None:
    failed = Outcome(Point.of({"m": {"instances": 9}}), failure="it crashed")
    with History(tmp_path / "new" / "file", HERE, "w") as history:
        history.add(OUTCOME)
        history.add(failed)
    with History(tmp_path / "new" / "file", HERE, "w") as history:
        assert history.find(POINT) == OUTCOME
        assert history.find(failed.point) == failed
        assert history.find(Point.of({"m": {"instances": 1}})) is None
        assert history.outcomes() == [OUTCOME, failed]


def test_trials_of_another_machine_or_workload_are_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with History(file, HERE, "w") as history:
        history.add(OUTCOME)
    for machine, workload in ((Machine("a processor", 4, 8 << 30), "w"), (HERE, "v")):
        with History(file, machine, workload) as history:
            assert history.find(POINT) is None
            history.add(Outcome(POINT, failure="slow"))
    with History(file, HERE, "w") as history:
        assert history.find(POINT) == OUTCOME


def test_repeated_trials_are_one_mean(tmp_path: Path) -> None:
    with History(tmp_path / "file", HERE, "w") as history:
        history.add(OUTCOME)
        history.add(Outcome(POINT, {"rate": 200.0, "p99_ms": 4.0}, notes=("a note", "another")))
        found = history.find(POINT)
        assert found is not None
        assert (found.figures, found.notes, found.repeats) == (
            {"rate": 150.0, "p99_ms": 3.0},
            ("a note", "another"),
            2,
        )
        history.add(Outcome(POINT, failure="it crashed"))
        assert history.find(POINT) == Outcome(POINT, failure="it crashed")


def test_figures_that_are_none_are_left_out(tmp_path: Path) -> None:
    with History(tmp_path / "file", HERE, "w") as history:
        history.add(Outcome(POINT, {"rate": 1.0, "p99_ms": float("nan")}))
    with History(tmp_path / "file", HERE, "w") as history:
        found = history.find(POINT)
        assert found is not None
        assert found.figures == {"rate": 1.0}


def test_a_line_that_was_not_finished_is_written_anew(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with History(file, HERE, "w") as history:
        history.add(OUTCOME)
    whole = file.read_bytes()
    file.write_bytes(whole + whole[:40])
    with History(file, HERE, "w") as history:
        assert history.find(POINT) == OUTCOME
        history.add(Outcome(Point.of({"m": {"instances": 9}}), failure="slow"))
    with History(file, HERE, "w") as history:
        assert len(history.outcomes()) == 2


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "{",
        '{"format": 2}',
        '{"format": 1, "machine": "x"}',
        '{"format": 1, "machine": "a processor, 2 cores, 8 GiB", "workload": "w", "point": 3}',
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, line: str) -> None:
    file = tmp_path / "file"
    file.write_text(line + "\n")
    with pytest.raises(ConfigError, match="line 1 is no trial"):
        History(file, HERE, "w")
    assert file.read_text() == line + "\n"


def test_two_searches_do_not_write_one_file(tmp_path: Path) -> None:
    with (
        History(tmp_path / "file", HERE, "w"),
        pytest.raises(ConfigError, match="written by another search"),
    ):
        History(tmp_path / "file", HERE, "w")


def test_without_a_file_it_remembers() -> None:
    with History(None, HERE, "w") as history:
        history.add(OUTCOME)
        assert history.find(POINT) == OUTCOME
