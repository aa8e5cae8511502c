"""Clients that call a model again and again, each the way its users write it: run as a program of its own.

Prints the answered calls, the seconds that they took and the quantiles of their times as JSON.
"""

import json
import multiprocessing
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Calls before the clock starts: connections, metadata and the server's first executions.
WARM_UP = 100

Samples = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class Task:
    """Calls of a model with one input and one output, for so long."""

    address: str
    model: str
    seconds: float
    shape: tuple[int, ...]


def main() -> None:
    """Runs one loop: `client address model processes seconds shape...`."""
    client, address, model, processes, seconds, *shape = sys.argv[1:]
    task = Task(address, model, float(seconds), tuple(map(int, shape)))
    times = _alone(client, task) if processes == "1" else _together(client, task, int(processes))
    p50, p99 = (float(quantile) * 1e6 for quantile in np.quantile(times, (0.5, 0.99)))
    print(json.dumps({"requests": len(times), "duration_s": task.seconds, "p50_us": p50, "p99_us": p99}))


def _together(client: str, task: Task, processes: int) -> list[float]:
    # Processes of their own interpreters: what they measure is not what a fork leaves them.
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes) as pool:
        return [seconds for times in pool.starmap(_alone, [(client, task)] * processes, 1) for seconds in times]


def _alone(client: str, task: Task) -> list[float]:
    call = LOOPS[client](task)
    for _ in range(WARM_UP):
        call()
    times, end = [], time.perf_counter() + task.seconds
    before = time.perf_counter()
    while before < end:
        call()
        after = time.perf_counter()
        times.append(after - before)
        before = after
    return times


def grpc(task: Task) -> Callable[[], object]:
    """`alipes.client.Client` over gRPC."""
    return _alipes("grpc", task)


def http(task: Task) -> Callable[[], object]:
    """The same over HTTP."""
    return _alipes("http", task)


def _alipes(wire: str, task: Task) -> Callable[[], object]:
    from alipes.client import Client

    client, row = Client(f"{wire}://{task.address}"), _row(task)
    return lambda: client.infer(task.model, row)


def tritonclient(task: Task) -> Callable[[], object]:
    """The same with `tritonclient.grpc`: an input that is filled for each call."""
    import tritonclient.grpc as triton

    client, row = triton.InferenceServerClient(task.address), _row(task)
    tensor = triton.InferInput("x", list(task.shape), "FP32")

    def call() -> object:
        tensor.set_data_from_numpy(row)
        return client.infer(task.model, [tensor]).as_numpy("y")

    return call


def _row(task: Task) -> Samples:
    return np.random.default_rng(7).random(task.shape, np.float32)


LOOPS: dict[str, Callable[[Task], Callable[[], object]]] = {"grpc": grpc, "http": http, "tritonclient": tritonclient}


if __name__ == "__main__":
    main()
