"""What the load tools have in common: how a run is stopped and what it yields."""

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

#: Whatever happens, a tool ends this long after it should have.
GRACE_S = 30.0
PACKAGES = {"wrk": "wrk", "h2load": "nghttp2-client"}


class LoadFailed(Exception):
    """A load tool failed, or met answers that were not successes."""


@dataclass(frozen=True)
class Measurement:
    """One run of a load tool."""

    requests: int
    duration_s: float
    p50_us: float
    p99_us: float

    @property
    def rate(self) -> float:
        """Requests answered in a second."""
        return self.requests / self.duration_s

    def as_json(self) -> dict[str, float]:
        """The figures, for the raw data."""
        return {**asdict(self), "rate": self.rate}


def missing() -> list[str]:
    """The load tools that are not installed."""
    return [tool for tool in PACKAGES if shutil.which(tool) is None]


def run(
    command: Sequence[str], duration_s: float, *, interrupt: bool, environment: Mapping[str, str] | None = None
) -> str:
    """Runs a tool for ``duration_s``.

    Args:
        command: The tool and its arguments.
        duration_s: How long it is to run, in seconds.
        interrupt: Whether the tool is to be interrupted after this time (`wrk` counts whole seconds otherwise and
            prints its figures when interrupted), or ends by itself.
        environment: Further environment variables.

    Returns:
        What it printed.

    Raises:
        LoadFailed: If it ends with an error or does not end.
    """
    tool = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    try:
        if interrupt:
            try:
                tool.wait(duration_s)
            except subprocess.TimeoutExpired:
                tool.send_signal(signal.SIGINT)
        printed, _ = tool.communicate(timeout=duration_s + GRACE_S)
    except subprocess.TimeoutExpired as error:
        raise LoadFailed(f"{command[0]} did not end within {duration_s + GRACE_S:.0f} s") from error
    finally:
        if tool.poll() is None:
            tool.kill()
            tool.wait()
    if tool.returncode != 0:
        raise LoadFailed(f"{command[0]} ended with status {tool.returncode}:\n{printed[-2000:]}")
    return printed
