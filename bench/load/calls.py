"""Calls a model with Python clients, in processes of their own."""

import json
import sys

from bench.load.tool import LoadFailed, Measurement, run
from bench.models.model import Model


def post(client: str, port: int, model: Model, processes: int, duration_s: float) -> Measurement:
    """Has processes call a model, each one call after the other.

    Args:
        client: Which loop of `bench.load.call_loops`.
        port: Where the server listens.
        model: What is called.
        processes: How many call.
        duration_s: How long they call, in seconds.

    Raises:
        LoadFailed: If a call failed.
    """
    what = [client, f"127.0.0.1:{port}", model.name, processes, duration_s, *model.input_shape]
    printed = run([sys.executable, "-m", "bench.load.call_loops", *map(str, what)], duration_s, interrupt=False)
    try:
        return Measurement(**json.loads(printed.splitlines()[-1]))
    except (json.JSONDecodeError, IndexError) as error:
        raise LoadFailed(f"{client} printed no figures:\n{printed[-2000:]}") from error
