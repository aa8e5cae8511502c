"""Processes that hand packages on."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import traceback
from collections.abc import Iterator

import pytest
from alipes.monitor import Pipeline, PipelineProcess

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
        adds.in_q.put((1, 2))
        assert next(adds) == 3
    with Whole("whole") as whole:
        for package in ((1, 2), [1, 2], {"a": 1}, "ab"):
            whole.in_q.put(package)
        assert [next(whole) for _ in range(4)] == ["tuple", "list", "dict", "str"]


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
