"""Runs an interpreter once, to see whether it can run models: CPython of a known version, with numpy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from alipes.backends.python.program import run_program
from alipes.errors import ModelLoadError
from alipes.model_load import Load

__all__ = ["check_interpreter"]

_OLDEST: Final = (3, 11)
"""What `alipes._core` is built for; every later version takes the same file."""

_TIMEOUT_S: Final = 120.0
"""How long the first start may take: from a slow disk, with numpy."""

# Any Python must be able to run it, however old. The current folder, where `-c` looks first, is not the model's.
_QUESTION: Final = """
import json, sys
sys.path[:] = [place for place in sys.path if place]
import platform, sysconfig
answer = {
    "implementation": platform.python_implementation(),
    "version": list(sys.version_info[:3]),
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "numpy": "",
}
try:
    import numpy
except Exception:
    answer["numpy"] = "%s: %s" % (sys.exc_info()[0].__name__, str(sys.exc_info()[1]).split("\\n")[0])
print("")
print(json.dumps(answer))
"""


def check_interpreter(python: Path, variables: Mapping[str, str], name: str, load: Load | None = None) -> None:
    """Raise where an interpreter cannot run models.

    Args:
        python: The interpreter.
        variables: Environment variables that it runs with, above the server's own.
        name: The model's name, for messages.
        load: The load that this is part of; cancelled, it kills the interpreter.

    Raises:
        ModelLoadError: If it does not start, is of another kind or version, or lacks numpy; the text says what was
            found, what is needed and what to do.
    """
    answer = _ask(python, variables, name, load or Load())
    version = ".".join(map(str, answer["version"]))
    found = f"{answer['implementation']} {version}" + (" (free-threaded)" if answer["free_threaded"] else "")
    is_known = answer["implementation"] == "CPython" and tuple(answer["version"]) >= _OLDEST
    if not is_known or answer["free_threaded"]:
        raise _unfit(
            python, name, f"is {found}; models run on CPython {'.'.join(map(str, _OLDEST))} or newer, not free-threaded"
        )
    if answer["numpy"]:
        raise _unfit(
            python, name, f"has no working numpy ({answer['numpy']}); install it with: {python} -m pip install numpy"
        )


def _ask(python: Path, variables: Mapping[str, str], name: str, load: Load) -> dict[str, Any]:
    try:
        done = run_program([str(python), "-c", _QUESTION], load, variables=variables, timeout_s=_TIMEOUT_S)
    except OSError as error:
        raise _unfit(python, name, f"cannot be run: {error.strerror}") from error
    if done is None:
        raise _unfit(python, name, f"gave no answer within {_TIMEOUT_S:g} s")
    # The last line: what a `sitecustomize` prints comes before.
    line = (done.output.splitlines() or [b""])[-1]
    answer = _read(line)
    if answer is None:
        lines = done.errors.decode(errors="replace").strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        raise _unfit(python, name, f"does not work, exit code {done.exit_code}{last}")
    return answer


def _read(line: bytes) -> dict[str, Any] | None:
    """The answer to the question; None where a program answers that is no interpreter."""
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match answer:
        case {"implementation": str(), "version": [int(), int(), int()], "free_threaded": bool(), "numpy": str()}:
            return dict(answer)
        case _:
            return None


def _unfit(python: Path, name: str, what: str) -> ModelLoadError:
    text = f"the interpreter {python} of model '{name}' {what}"
    return ModelLoadError(text, model=name, backend="python", code="INVALID_ARG").hiding({str(python): python.name})
