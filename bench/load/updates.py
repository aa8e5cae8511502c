"""Streams updates of one sequence with a Python client in a process of its own."""

import json
import sys

from bench.load.tool import LoadFailed, Measurement, run


def post(
    client: str, port: int, model: str, tensor: tuple[str, tuple[int, ...]], in_flight: int, duration_s: float
) -> Measurement:
    """Keeps a number of updates under way on one stream.

    Args:
        client: Which loop of `bench.load.update_loops`.
        port: Where the server listens.
        model: A model that keeps the state of sequences.
        tensor: Name and shape of its input.
        in_flight: Updates under way at any time.
        duration_s: How long updates are sent, in seconds.

    Returns:
        Answered updates; nothing is known of single ones.

    Raises:
        LoadFailed: If an answer was an error, or out of order.
    """
    name, shape = tensor
    what = [client, f"127.0.0.1:{port}", model, name, duration_s, in_flight, *shape]
    printed = run([sys.executable, "-m", "bench.load.update_loops", *map(str, what)], duration_s, interrupt=False)
    try:
        figures = json.loads(printed.splitlines()[-1])
    except (json.JSONDecodeError, IndexError) as error:
        raise LoadFailed(f"{client} printed no figures:\n{printed[-2000:]}") from error
    return Measurement(figures["requests"], figures["duration_s"], 0.0, 0.0)
