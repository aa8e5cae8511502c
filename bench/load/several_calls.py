"""Threads that call a model at several servers, one call after the other each: run as a program of its own.

Every answer is compared with the first. Prints as JSON how many calls were answered in a second, the microseconds of
this process's processors that one took, how many failed, and the moments of all: begin and latency in seconds, on the
monotonic clock.
"""

import json
import sys
import threading
import time

import numpy as np

from bench.load.checked_calls import TOLERANCE, WARM_UP, Clock

ONE_CLIENT = "one"
CLIENT_EACH = "each"
#: What is printed when the clock starts.
WARM = "warm"


def main() -> None:
    """Runs the threads: `one|each model seconds shape,shape url...`, a thread for each server."""
    from alipes.client import Client

    how, model, seconds, shape, *urls = sys.argv[1:]
    row = np.random.default_rng(7).random(tuple(map(int, shape.split(","))), np.float32)
    clients = [Client(urls)] * len(urls) if how == ONE_CLIENT else [Client(url) for url in urls]
    expected = float(clients[0].infer(model, row).flat[0])
    moments: list[tuple[float, float]] = []
    failures: list[str] = []

    def call(client: Client, until_s: float, least: int) -> None:
        made = 0
        while made < least or time.monotonic() < until_s:
            began_s = time.monotonic()
            try:
                answer = float(client.infer(model, row).flat[0])
            except Exception as error:
                failures.append(repr(error))
                answer = expected
            if abs(answer - expected) > TOLERANCE * max(1.0, abs(expected)):
                failures.append(f"expected {expected}, got {answer}")
            moments.append((began_s, time.monotonic() - began_s))
            made += 1

    def together(until_s: float, least: int) -> None:
        threads = [threading.Thread(target=call, args=(client, until_s, least)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    together(0.0, WARM_UP)
    moments.clear()
    print(WARM, flush=True)
    clock = Clock()
    together(time.monotonic() + float(seconds), 0)
    figures = clock.figures(len(moments))
    print(json.dumps({**figures, "failed": failures, "moments": moments}))


if __name__ == "__main__":
    main()
