"""Clients that stream the updates of one sequence, each the way its users write it: run as a program of its own.

Prints the answered updates and the seconds that they took as JSON. Every answer is checked to be the next one.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

SEQUENCE = 1001
#: Updates before the clock starts: connections, threads and the server's first executions.
WARM_UP = 200

Samples = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class Task:
    """What a loop does: updates of this shape to an input of a model, so many under way, for so long."""

    address: str
    model: str
    name: str
    seconds: float
    in_flight: int
    shape: tuple[int, ...]


def main() -> None:
    """Runs one loop: `client address model input seconds in-flight shape...`."""
    client, address, model, name, seconds, in_flight, *shape = sys.argv[1:]
    task = Task(address, model, name, float(seconds), int(in_flight), tuple(map(int, shape)))
    answered, duration_s = LOOPS[client](task)
    print(json.dumps({"requests": answered, "duration_s": duration_s}))


def alipes(task: Task) -> tuple[int, float]:
    """`alipes.client.InferenceClient`, with a callback."""
    from alipes.client import InferenceClient

    count = _Count()
    with InferenceClient(
        task.address, task.model, callback=lambda _, number, __: count.note(number), max_in_flight=task.in_flight
    ) as client:
        for number, update, last in _updates(task, count):
            client.infer(update, number, SEQUENCE, number == 0, last)
    client.get()
    return count.result()


def tritonclient(task: Task) -> tuple[int, float]:
    """The same loop with `tritonclient`: an input that is filled for each update, a stream and a callback."""
    import tritonclient.grpc as triton

    count, places = _Count(), threading.Semaphore(task.in_flight)

    def callback(result: Any, error: Exception | None) -> None:
        if error is not None:
            raise error
        result.as_numpy("OUT")
        count.note(int(result.get_response().id.split("_")[0]))
        places.release()

    client = triton.InferenceServerClient(task.address)
    tensor = triton.InferInput(task.name, task.shape, "FP32")
    client.start_stream(callback)
    for number, update, last in _updates(task, count):
        places.acquire()
        tensor.set_data_from_numpy(update[None])
        client.async_stream_infer(
            task.model,
            [tensor],
            request_id=f"{number}_{SEQUENCE}",
            sequence_id=SEQUENCE,
            sequence_start=number == 0,
            sequence_end=last,
        )
    client.stop_stream()
    client.close()
    return count.result()


class _Count:
    """Counts answers, and when they came."""

    def __init__(self) -> None:
        self._next = 0
        self._began_s = 0.0
        self._last_s = 0.0

    def note(self, number: int) -> None:
        if number != self._next:
            raise SystemExit(f"the answer to update {number} came where that to {self._next} was due")
        self._next += 1
        if number == WARM_UP:
            self._began_s = time.perf_counter()
        self._last_s = time.perf_counter()

    def over(self, seconds: float) -> bool:
        return self._next > WARM_UP and self._last_s - self._began_s >= seconds

    def result(self) -> tuple[int, float]:
        return self._next - 1 - WARM_UP, self._last_s - self._began_s


def _updates(task: Task, count: _Count) -> Iterator[tuple[int, Samples, bool]]:
    """Number, update and whether it is the last one, until answers have come for so long.

    Updates are slices of one array, as scripts have them, which begins again at its end.
    """
    size, pieces = task.shape[-1], 64
    samples = np.random.default_rng(7).standard_normal((*task.shape[1:-1], size * pieces), np.float32)
    number, last = 0, False
    while not last:
        last = count.over(task.seconds)
        start = number % pieces * size
        yield number, samples[..., start : start + size], last
        number += 1


LOOPS: dict[str, Callable[[Task], tuple[int, float]]] = {"alipes": alipes, "tritonclient": tritonclient}


if __name__ == "__main__":
    main()
