"""Processes that hand packages on."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from multiprocessing.connection import wait
from pathlib import Path

import numpy as np
import pytest
from alipes.errors import MonitorError
from alipes.monitor import Pipeline, PipelineProcess
from support.waiting import TIMEOUT_S

# The runner of the tests has threads of its own; what is forked here uses nothing of theirs.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


class Numbers(PipelineProcess):
    """Gives the numbers up to five."""

    def __init__(self, name: str = "numbers", rate: float | None = None) -> None:
        super().__init__(name, rate, join_timeout=60)
        self._left = iter(range(1, 6))

    def get_package(self) -> int:
        return next(self._left)


class Doubles(PipelineProcess):
    """Doubles what comes."""

    def __init__(self, name: str = "doubles") -> None:
        super().__init__(name, join_timeout=60)

    def process(self, number: int) -> None:
        self.out_q.put(2 * number)


class Fails(PipelineProcess):
    """Fails at three."""

    def process(self, number: int) -> None:
        if number == 3:
            raise ZeroDivisionError("at three")
        self.out_q.put(number)


class Adds(PipelineProcess):
    """Adds two numbers."""

    def process(self, one: int, other: int) -> None:
        self.out_q.put(one + other)


class Whole(PipelineProcess):
    """Takes a package as one."""

    def process(self, package: object) -> None:
        self.out_q.put(type(package).__name__)


class Deaf(PipelineProcess):
    """Ignores the request to stop, so that it has to be terminated."""

    def get_package(self) -> None:
        self.out_q.put("here")
        while True:
            signal.pause()


class Gaps(PipelineProcess):
    """Gives nothing every other time."""

    def __init__(self) -> None:
        super().__init__("gaps", join_timeout=60)
        self._left = iter([None, 1, None, 2])

    def get_package(self) -> int | None:
        return next(self._left)


class Cleans(Fails):
    """Says in its own words that it has failed."""

    def cleanup(self, exc: BaseException) -> None:
        self.out_q.put(f"{type(exc).__name__}: {exc}")


class Tells(PipelineProcess):
    """Says what it knows of itself, and asks itself to stop."""

    def process(self, package: object) -> None:
        self.out_q.put((self.pid, self.logger.name, self.stopped))
        self.stop()


class Waits(PipelineProcess):
    """Takes packages as subclasses of hermes do."""

    def get_package(self) -> object:
        return self._impatient_get(self.in_q)


class Runs(PipelineProcess):
    """Does something else than take packages, as some subclasses of hermes do."""

    def run(self) -> None:
        self.out_q.put(1)


class Starts(PipelineProcess):
    """Has a process of its own."""

    def process(self, package: object) -> None:
        child = multiprocessing.Process(target=os.getpid)
        child.start()
        child.join()
        self.out_q.put(child.exitcode)


@pytest.fixture(autouse=True)
def by_fork() -> Iterator[None]:
    """Classes of a test file can be found by a process that was forked, and by no other."""
    before = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method("fork", force=True)
    yield
    multiprocessing.set_start_method(before, force=True)


def test_what_a_process_makes_comes_out_until_it_says_that_no_more_will() -> None:
    with Numbers() as numbers:
        assert list(numbers) == [1, 2, 3, 4, 5]


def test_processes_are_joined_in_any_grouping() -> None:
    for pipeline in (
        Numbers() >> Doubles("a") >> Doubles("b"),
        Numbers() >> (Doubles("a") >> Doubles("b")),
        (Numbers() >> Doubles("a")) >> (Doubles("b") >> Doubles("c")),
    ):
        factor = 2 ** (len(pipeline.processes) - 1)
        with pipeline as running:
            assert list(running) == [factor * number for number in range(1, 6)]


def test_what_is_no_process_cannot_be_joined() -> None:
    with pytest.raises(TypeError, match="int is no PipelineProcess"):
        Numbers() >> 3  # type: ignore[operator]
    with pytest.raises(TypeError):
        Pipeline([Numbers()]) >> "x"  # type: ignore[operator]


def test_an_exception_of_a_process_keeps_its_traceback() -> None:
    with Numbers() >> Fails("fails") >> Doubles() as pipeline:
        packages = iter(pipeline)
        assert [next(packages), next(packages)] == [2, 4]
        with pytest.raises(ZeroDivisionError, match="at three") as caught:
            next(packages)
    assert 'raise ZeroDivisionError("at three")' in "".join(traceback.format_exception(caught.value))


def test_a_tuple_is_passed_as_arguments_where_they_fit() -> None:
    with Adds("adds") as adds:
        for package in ((1, 2), np.array([1, 2])):
            adds.in_q.put(package)
            assert next(adds) == 3
    with Whole("whole") as whole:
        for package in ((1, 2), [1, 2], {"a": 1}, "ab", np.array([[1, 2]])):
            whole.in_q.put(package)
        assert [next(whole) for _ in range(5)] == ["tuple", "list", "dict", "str", "ndarray"]


def test_a_process_is_over_when_its_block_ends() -> None:
    with Doubles() as doubles:
        assert doubles.is_alive()
    with pytest.raises(ValueError, match="closed"):
        doubles.is_alive()


def test_a_process_that_does_not_end_is_terminated_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), Deaf("deaf", join_timeout=0.1) as deaf:
        assert next(deaf) == "here"
    assert "the process deaf did not end within 0.1 seconds" in caplog.text


def test_a_process_may_have_a_rate() -> None:
    with Numbers(rate=1000) as numbers:
        assert list(numbers) == [1, 2, 3, 4, 5]


def test_a_process_that_is_terminated_has_ended_and_stopped() -> None:
    with Doubles() as doubles:
        assert not doubles.stopped
        doubles.terminate()
        assert wait([doubles.sentinel], TIMEOUT_S)
        doubles.join(TIMEOUT_S)
        assert doubles.stopped
        assert (doubles.is_alive(), doubles.exitcode) == (False, -signal.SIGTERM)
        assert list(doubles) == []


def test_a_process_that_others_have_ended_is_an_error_for_its_reader() -> None:
    with Doubles() as doubles:
        assert doubles.pid is not None
        os.kill(doubles.pid, signal.SIGKILL)
        with pytest.raises(MonitorError, match="the process doubles has ended with exit status -9"):
            next(doubles)


def test_a_process_in_the_midst_of_others_that_was_ended_is_an_error() -> None:
    first, last = Doubles("first"), Doubles("last")
    with first >> Doubles("second") >> last as pipeline:
        first.in_q.put(1)
        packages = iter(pipeline)
        assert next(packages) == 8
        assert first.pid is not None
        os.kill(first.pid, signal.SIGKILL)
        with pytest.raises(MonitorError, match="the process first has ended with exit status -9"):
            next(packages)


def test_a_run_of_its_own_that_is_over_ends_its_packages() -> None:
    with Runs("runs") as runs:
        assert list(runs) == [1]


def test_a_process_may_be_stopped_before_its_block_ends() -> None:
    with Doubles() as doubles:
        doubles.stop()
        doubles.stop()
        doubles.join()
        assert (doubles.stopped, doubles.is_alive(), doubles.exitcode) == (True, False, 0)
    doubles.stop()


def test_an_exception_ends_the_process_with_a_status() -> None:
    with Fails("fails") as fails:
        fails.in_q.put(3)
        with pytest.raises(ZeroDivisionError):
            next(fails)
        fails.join(TIMEOUT_S)
        assert (fails.exitcode, fails.stopped) == (1, True)
    with Numbers() as numbers:
        assert sum(numbers) == 15
        numbers.join(TIMEOUT_S)
        assert (numbers.exitcode, numbers.stopped) == (0, True)


def test_what_is_done_with_an_exception_can_be_overridden() -> None:
    with Cleans("cleans") as cleans:
        cleans.in_q.put(3)
        assert next(cleans) == "ZeroDivisionError: at three"


def test_no_package_is_passed_over() -> None:
    with Gaps() as gaps:
        assert list(gaps) == [1, 2]


def test_a_process_knows_itself_and_may_stop_itself() -> None:
    with Tells("tells") as tells:
        tells.in_q.put(0)
        pid = tells.pid
        assert next(tells) == (pid, f"alipes.monitor.tells.{pid}", False)
        tells.join(TIMEOUT_S)
        assert (tells.stopped, tells.exitcode) == (True, 0)


def test_a_wait_in_a_process_ends_when_it_is_stopped() -> None:
    with Numbers() >> Waits("waits") as pipeline:
        assert list(pipeline) == [1, 2, 3, 4, 5]
    with Waits("waits", join_timeout=60) as waits:
        waits.stop()
        assert waits.exitcode == 0


def test_turns_end_once_the_process_is_to_stop() -> None:
    for process in (Doubles(), Numbers(rate=1000)):
        turns = iter(process.throttle)
        next(turns)
        process._stop_event.set()
        assert next(turns, "over") == "over"


def test_only_what_is_no_daemon_has_processes_of_its_own() -> None:
    starts = Starts("starts")
    assert starts.daemon
    with starts:
        starts.in_q.put(0)
        with pytest.raises(AssertionError, match="daemonic"):
            next(starts)
        with pytest.raises(RuntimeError, match="has started"):
            starts.daemon = False
    starts = Starts("starts")
    starts.daemon = False
    with starts:
        starts.in_q.put(0)
        assert next(starts) == 0


SCRIPT = """
import multiprocessing, sys
from alipes.monitor import PipelineProcess

class Ends(PipelineProcess):
    def process(self, package):
        raise StopIteration

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    for rate in (None, 1000):
        with Ends("ends", rate) as ends:
            for _ in range(20):
                ends.in_q.put(bytes(100_000))
            print(list(ends))
"""


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_packages_that_nobody_took_do_not_hold_the_script_up(tmp_path: Path, method: str) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), method]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n[]\n", "")


def test_a_process_that_runs_cannot_be_closed_and_stays_open() -> None:
    with Gaps() as gaps:
        deaf = Deaf("deaf", join_timeout=0)
        deaf.start()
        try:
            with pytest.raises(ValueError, match="Cannot close a process while it is still running"):
                deaf.close()
        finally:
            deaf.stop()
        assert not deaf.is_alive()
        assert next(gaps) == 1
