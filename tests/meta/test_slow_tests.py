"""The list of slow tests counts a test's own time, and not that of a busy machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

import pytest
from support import selection
from support.stalls import stalled_s


def noted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, took_s: float, waited_s: float, marks: Iterable[str] = ()
) -> bool:
    """Whether a test is noted that took so long and was kept waiting for so much of it."""
    clock = iter([100.0, 100.0 + waited_s])
    monkeypatch.setattr(selection, "stalled_s", lambda: next(clock))
    file = folder / "noted.txt"
    slow = selection.SlowTests(file, limit_s=5.0)
    call = slow.pytest_runtest_call()
    next(call)
    with contextlib.suppress(StopIteration):
        next(call)
    keywords = dict.fromkeys(marks, 1)
    slow.pytest_runtest_logreport(
        pytest.TestReport("test_x.py::test_y@group", ("", 0, ""), keywords, "passed", None, "call", duration=took_s)
    )
    slow.pytest_sessionfinish()
    if file.exists():
        assert file.read_text(encoding="utf-8") == "test_x.py::test_y\n"
    return file.exists()


@pytest.mark.parametrize(
    ("took_s", "waited_s", "marks", "expected"),
    [
        (5.1, 0.0, [], True),
        (4.9, 0.0, [], False),
        (9.0, 4.5, [], False),
        (9.0, 3.5, [], True),
        (9.0, 0.0, ["slow"], False),
    ],
)
def test_a_test_is_noted_for_its_own_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, took_s: float, waited_s: float, marks: list[str], expected: bool
) -> None:
    assert noted(tmp_path, monkeypatch, took_s, waited_s, marks) is expected


def test_the_time_in_which_threads_wait_never_runs_back() -> None:
    assert 0 <= stalled_s() <= stalled_s()
