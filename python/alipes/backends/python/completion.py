"""Asks a model to complete its configuration, in a process that does nothing else and is thrown away.

The model's code must not run inside the server, and an import can take minutes, hang or crash: the wait and the answer
are bounded, and a death is an error with a reason. What the model prints goes to the server's own output.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from alipes.backends.python.program import nameless_file, started, wait_unreaped
from alipes.config.limits import MAX_COMPLETION_BYTES
from alipes.errors import ModelLoadError
from alipes.model_load import Load

__all__ = ["ask_model"]

_SERVER_PID: Final = "ALIPES_SERVER_PID"
"""The variable by which the process knows its server, to end with it."""


def ask_model(
    command: Sequence[str],
    variables: Mapping[str, str],
    setup: Mapping[str, Any],
    timeout_s: float,
    load: Load | None = None,
) -> dict[str, Any]:
    """What `auto_complete_config` of a model makes of its configuration, or what a framework reads in its file.

    Args:
        command: How a process of the model starts.
        variables: Environment variables of the process, above the server's own.
        setup: The setup of the process.
        timeout_s: Longest wait for the answer, in seconds; 0 sets no limit.
        load: The load that this is part of; cancelled, it kills the process.

    Returns:
        The configuration as JSON, as it was where the model completes none; of a framework's file the signature.

    Raises:
        ModelLoadError: If the model's code fails, the process dies or gives no answer in time, or the load is
            cancelled.
    """
    name = str(setup["model_name"])
    load = load or Load()
    variables = {**variables, _SERVER_PID: str(os.getpid())}
    with nameless_file("question") as question, nameless_file("answer") as answer:
        os.write(question, json.dumps(setup).encode())
        files = [f"/proc/self/fd/{descriptor}" for descriptor in (question, answer)]
        try:
            with started([*command, "--complete", *files], variables, load, descriptors=(question, answer)) as process:
                end = _wait(process, name, timeout_s)
        except OSError as error:
            text = f"cannot run {command[0]}: {error.strerror}"
            raise ModelLoadError(text, backend="python").hiding({command[0]: Path(command[0]).name}) from error
        load.check()
        return _read(os.pread(answer, MAX_COMPLETION_BYTES + 1, 0), end, name)


def _wait(process: subprocess.Popen[bytes], name: str, timeout_s: float) -> str:
    """How the process ended; it is not reaped."""
    if not wait_unreaped(process, timeout_s):
        raise ModelLoadError(
            f"auto_complete_config of model '{name}' did not end within {timeout_s:g} s; "
            "--backend-config=python,auto-complete-timeout-seconds=N allows more",
            model=name,
            backend="python",
        )
    state = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    assert state is not None, "its descriptor said that it has ended"
    if state.si_code == os.CLD_EXITED:
        return f"ended with exit code {state.si_status}"
    return f"was killed by {_signal_name(state.si_status)}"


def _read(answer: bytes, end: str, name: str) -> dict[str, Any]:
    """The configuration in an answer; the error for an unreadable answer describes how the process ended."""
    if len(answer) > MAX_COMPLETION_BYTES:
        raise _broken(name, f"answered more than {MAX_COMPLETION_BYTES} bytes")
    try:
        document = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise _broken(name, f"{end} and gave no answer; it may have said more in the server's output") from error
    match document:
        case {"answer": dict(found)}:
            return found
        case {"error": str(text)}:
            raise ModelLoadError(text, model=name, backend="python")
        case _:
            raise _broken(name, "gave an answer of another form")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def _broken(name: str, what: str) -> ModelLoadError:
    return ModelLoadError(
        f"the process that completes the configuration of model '{name}' {what}", model=name, backend="python"
    )
