"""A client that calls a model again and again, one call after the other or many in flight: run as a program of its own.

Every call asks for the same, and every answer is compared with the first. Prints as JSON how many calls were answered
in a second, and the microseconds of this process's processors that one took.
"""

import asyncio
import json
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Calls before the clock starts, of each task.
WARM_UP = 20
TOLERANCE = 1e-3

Samples = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class Task:
    """Calls of a model, so many in flight, for so long."""

    url: str
    model: str
    in_flight: int
    seconds: float
    shape: tuple[int, ...]

    @property
    def row(self) -> Samples:
        """What is sent."""
        return np.random.default_rng(7).random(self.shape, np.float32)


def main() -> None:
    """Runs the loop: `url model in-flight seconds shape...`."""
    url, model, in_flight, seconds, *shape = sys.argv[1:]
    task = Task(url, model, int(in_flight), float(seconds), tuple(map(int, shape)))
    print(json.dumps(waited(task) if task.in_flight == 1 else asyncio.run(awaited(task))))


class Clock:
    """Began when it was made."""

    def __init__(self) -> None:
        """Begins."""
        self._began_s, self._used_s = time.perf_counter(), time.process_time()

    def passed(self) -> float:
        """Seconds since then."""
        return time.perf_counter() - self._began_s

    def figures(self, calls: int) -> dict[str, float]:
        """The figures of so many calls since then."""
        used_s = time.process_time() - self._used_s
        return {"rate": calls / self.passed(), "cpu_us": used_s / calls * 1e6}


def waited(task: Task) -> dict[str, float]:
    """`alipes.client.Client`, one call after the other."""
    from alipes.client import Client

    with Client(task.url) as client:
        row = task.row
        expected = _number(client.infer(task.model, row))
        for _ in range(WARM_UP):
            client.infer(task.model, row)
        calls, clock = 0, Clock()
        while clock.passed() < task.seconds:
            _check(client.infer(task.model, row), expected)
            calls += 1
        return clock.figures(calls)


async def awaited(task: Task) -> dict[str, float]:
    """`alipes.client.AsyncClient`, with a task for each call in flight."""
    from alipes.client import AsyncClient

    async with AsyncClient(task.url) as client:
        row = task.row
        expected = _number(await client.infer(task.model, row))

        async def repeat(clock: Clock, seconds: float, least: int) -> int:
            calls = 0
            while calls < least or clock.passed() < seconds:
                _check(await client.infer(task.model, row), expected)
                calls += 1
            return calls

        await asyncio.gather(*(repeat(Clock(), 0, WARM_UP) for _ in range(task.in_flight)))
        clock = Clock()
        counts = await asyncio.gather(*(repeat(clock, task.seconds, 0) for _ in range(task.in_flight)))
        return clock.figures(sum(counts))


def _number(answer: Samples) -> float:
    return float(answer.flat[0])


def _check(answer: Samples, expected: float) -> None:
    if abs(_number(answer) - expected) > TOLERANCE * max(1.0, abs(expected)):
        raise SystemExit(f"expected {expected}, got {answer}")


if __name__ == "__main__":
    main()
