"""The bare timer loop of the floors: how late a program is that does nothing but wait for moments at even spans."""

import json

from bench.load.tool import LoadFailed, run
from bench.paths import compiled


def late(rate: float, duration_s: float) -> dict[str, float]:
    """Waits for so many moments a second.

    Args:
        rate: Moments in a second.
        duration_s: How long, in seconds.

    Returns:
        Moments in a second (`rate`), and by how many microseconds they were missed (`late_p50_us`, `late_p99_us`).

    Raises:
        LoadFailed: If the program is not there, or fails.
    """
    command = [str(compiled("timer-floor")), str(rate), str(1000 * duration_s)]
    try:
        printed = run(command, duration_s, interrupt=False)
    except FileNotFoundError as error:
        raise LoadFailed(f"{command[0]} does not exist: compile the floors first") from error
    return {name: float(value) for name, value in json.loads(printed).items()}
