"""Calls a model with Python clients, in processes of their own."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

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
    return Measurement(**figures("bench.load.call_loops", what, duration_s))


def figures(
    module: str, what: Sequence[object], duration_s: float, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Runs a program that calls a model, and reads the figures that it prints.

    Args:
        module: The program.
        what: Its arguments.
        duration_s: How long it calls, in seconds.
        environment: Further environment variables.

    Raises:
        LoadFailed: If a call failed.
    """
    command = [sys.executable, "-m", module, *map(str, what)]
    printed = run(command, duration_s, interrupt=False, environment=environment)
    try:
        return dict(json.loads(printed.splitlines()[-1]))
    except (ValueError, IndexError) as error:
        raise LoadFailed(f"{module} {what[0]} printed no figures:\n{printed[-2000:]}") from error
