"""Plays a day of texts to several models of a server at once, by the same arrivals: run as a program of its own.

Prints for each model how often its objective was kept, as JSON.
"""

import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import numpy as np
from alipes._core import LoadTestEngine, LoadTestRecord, LoadTestRequests
from alipes.loadtest import Check, ModelRequests, RequestLog
from alipes.loadtest.check import Checker
from alipes.loadtest.measure import prepare

from bench.load.day import Arrivals, Numbers, arrivals

#: Requests that are judged together, by the moments at which they are due.
STRETCH_S = 2.0
#: Requests of a hundred that may be late.
ALLOWED = 1
#: From one model's day to the next one's: groups of all models at once would wait for the machine and not for a queue.
APART_S = 0.009
#: Answers of each model that are checked in a second.
CHECKED = 64
PART_S = 1.0
GRACE_S = 30.0


@dataclass(frozen=True)
class Outcome:
    """What a model's clients saw."""

    #: From the moment a request was due, in milliseconds, in the order of the day; shape `[N]`.
    latencies_ms: Numbers
    #: From the first moment at which a request was due to the last answer.
    seconds: float
    #: Answers that were checked.
    checked: int


def main() -> None:
    """Runs one day: `port seed seconds objective-ms model...`."""
    port, seed, seconds, objective_ms, *models = sys.argv[1:]
    day = arrivals(int(seed)).until(float(seconds))
    outcomes = play(f"127.0.0.1:{port}", models, day)
    print(json.dumps({model: figures(day, outcomes[model], float(objective_ms)) for model in models}))


def play(address: str, models: Sequence[str], day: Arrivals) -> dict[str, Outcome]:
    """Sends the day's requests to each model.

    Raises:
        SystemExit: If a request failed, was never sent or was answered wrongly.
    """
    values = np.stack([np.arange(len(day.moments_s)), day.texts_ms], axis=1).astype(np.float32)[:, None, :]
    prepared = [prepare(ModelRequests(model, data={"x": values}), f"grpc://{address}") for model in models]
    expected = Check({"y": 2 * values[:, :, :1]}, samples=CHECKED)
    with ExitStack() as stack:
        listeners = [
            _Listener(stack, model, requests, _intervals(day, number * APART_S), expected)
            for number, (model, requests) in enumerate(zip(models, prepared, strict=True))
        ]
        end = time.monotonic() + day.moments_s[-1] + GRACE_S
        while not all(listener.is_done for listener in listeners) and time.monotonic() < end:
            time.sleep(PART_S)
            for listener in listeners:
                listener.listen()
    return {listener.model: listener.outcome(len(values)) for listener in listeners}


def figures(day: Arrivals, outcome: Outcome, objective_ms: float) -> dict[str, float]:
    """In how many stretches 99 of 100 requests were answered in time, and more."""
    is_late = outcome.latencies_ms > objective_ms
    stretches = (day.moments_s // STRETCH_S).astype(int)
    requests, late = np.bincount(stretches), np.bincount(stretches, weights=is_late)
    is_used = requests > 0
    return {
        "stretches": int(is_used.sum()),
        "kept": int((is_used & (100 * late <= ALLOWED * requests)).sum()),
        "late": int(is_late.sum()),
        "answered": len(is_late),
        "checked": outcome.checked,
        "seconds": outcome.seconds,
        "p50_ms": float(np.percentile(outcome.latencies_ms, 50)),
        "p99_ms": float(np.percentile(outcome.latencies_ms, 99)),
    }


def _intervals(day: Arrivals, later_s: float) -> list[float]:
    intervals: list[float] = np.diff(day.moments_s + later_s, prepend=0.0).tolist()
    return intervals


class _Listener:
    """The load of one model, and what it has brought so far."""

    def __init__(
        self, stack: ExitStack, model: str, requests: LoadTestRequests, intervals_s: Sequence[float], expected: Check
    ) -> None:
        """Begins the load; the stack ends it."""
        self.model = model
        count = len(intervals_s)
        self._engine = LoadTestEngine(
            requests, intervals_s=intervals_s, count=count, samples=expected.samples, log=count, timeout_s=GRACE_S
        )
        stack.callback(partial(self._engine.stop, 0.0))
        self._checker = Checker(expected, "grpc")
        self._checked = 0
        self._logs: list[RequestLog] = []
        self.is_done = False

    def listen(self) -> None:
        """Takes what came since the last time.

        Raises:
            SystemExit: If an answer is wrong, or a request failed.
        """
        self.is_done = self._engine.is_done()
        record: LoadTestRecord = self._engine.cut()
        checked, wrong = self._checker.check(record.samples)
        if wrong or record.failures or record.dropped:
            failed = {**record.failures, **wrong, "never sent": record.dropped}
            raise SystemExit(f"{self.model}: {failed}")
        self._checked += checked
        self._logs.append(RequestLog.read(record))

    def outcome(self, count: int) -> Outcome:
        """What all of it showed.

        Raises:
            SystemExit: If not each of so many requests was answered once.
        """
        log = RequestLog.merged(self._logs)
        order = np.argsort(log.request)
        if not np.array_equal(log.request[order], np.arange(count)):
            raise SystemExit(f"{self.model}: {len(log)} of {count} requests were answered")
        latencies_ms = (log.end_ns - log.due_ns)[order] / 1e6
        seconds = float(log.end_ns.max() - log.due_ns.min()) / 1e9
        return Outcome(latencies_ms, seconds, self._checked)


if __name__ == "__main__":
    main()
