"""The text of an exception: its type, its message and its frames, in the form that Triton's users know.

The form is pybind11's: ``<type>: <message>``, an empty line, ``At:``, then one line a frame, the innermost first::

    ValueError: went wrong

    At:
      /models/fails/1/model.py(17): execute
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final

from alipes.worker.current import current

__all__ = ["MOST_FRAMES", "describe", "forget", "log_trace"]

# As `Logger` numbers its levels on the link.
_ERROR: Final = 0

# Where frames of others lie, which are no place to look for a model's mistake.
_LIBRARIES: Final = (f"{Path(os.__file__).parent}{os.sep}", f"{os.sep}site-packages{os.sep}")

# Frames in an error, half from either end: endless recursion has a thousand, and gRPC carries errors in headers.
MOST_FRAMES: Final = 40

# Frames of these are how the model was called, not what it did. They are left out where they come first.
_CALLERS: Final = (
    "alipes.worker.",
    "alipes.attached.",
    "alipes.compat.pytriton.",
    "asyncio.",
    "concurrent.futures.",
    "threading.",
)
# Frames of these are how one file imports another. They are left out everywhere, as Python itself does.
_IMPORTS: Final = ("alipes.worker.sources", "importlib._bootstrap", "importlib._bootstrap_external")


def describe(error: BaseException) -> str:
    """Type, message and frames of an exception."""
    try:
        text = f"{type(error).__name__}: {_message(error)}"
        places = _places(error)
        return f"{text}\n\nAt:\n{''.join(places)}" if places else text
    except MemoryError:  # the error itself, or one of its description
        return type(error).__name__


def log_trace(error: BaseException) -> None:
    """Writes an exception with its frames into the server's log, where the model's own line stands as the place."""
    if current.link is None:
        return
    try:
        first = _first_of_model(error.__traceback__)
        lines = "".join(traceback.format_exception(type(error), error, first)).rstrip()
        frames = [(file, line) for file, line, _ in _frames(error.__traceback__)]
        own = [one for one in frames if not any(part in one[0] for part in _LIBRARIES)]
        file, line = (own or frames or [("", 0)])[-1]
        message = f"{type(error).__name__}: {_message(error)}".partition("\n")[0]
        current.link.log(_ERROR, file, line, f"{message}\n{lines}")
    except MemoryError:  # the error itself, or one of its description
        return


def forget(error: BaseException) -> None:
    """Drops what the frames of an exception hold.

    A frame that keeps its exception in a variable is a cycle, and views of a request in it would occupy the request's
    memory until the garbage collector comes by.
    """
    seen: set[int] = set()
    queue: list[BaseException | None] = [error]
    while queue:
        one = queue.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        traceback.clear_frames(one.__traceback__)
        queue += [one.__cause__, one.__context__]


def _first_of_model(trace: TracebackType | None) -> TracebackType | None:
    """The frames from the first that is no caller's; all of them where there is none."""
    first = trace
    while first is not None:
        if not f"{first.tb_frame.f_globals.get('__name__', '')}.".startswith(_CALLERS):
            return first
        first = first.tb_next
    return trace


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except MemoryError:
        raise
    except Exception as broken:
        return f"<its message cannot be shown: {type(broken).__name__}>"


def _places(error: BaseException) -> list[str]:
    lines = [f"  {file}({line}): {function}\n" for file, line, function in _frames(error.__traceback__)]
    if not lines and isinstance(error, SyntaxError) and error.filename is not None:
        return [f"  {error.filename}({error.lineno}): <module>\n"]
    lines.reverse()
    left_out = len(lines) - MOST_FRAMES
    if left_out > 0:
        lines[MOST_FRAMES // 2 : -MOST_FRAMES // 2] = [f"  ({left_out} more)\n"]
    return lines


def _frames(trace: TracebackType | None) -> Iterator[tuple[str, int, str]]:
    """Frames from the outermost to the innermost, from the first that is the model's on; each function once."""
    last = None
    begun = False
    while trace is not None:
        frame = trace.tb_frame
        module = str(frame.f_globals.get("__name__", ""))
        imports = module in _IMPORTS or frame.f_code.co_filename.startswith("<frozen importlib")
        begun = begun or not (imports or f"{module}.".startswith(_CALLERS))
        # An exception that is raised again in the function that caught it has two entries for it.
        if begun and not imports and frame is not last:
            yield frame.f_code.co_filename, trace.tb_lineno, frame.f_code.co_name
        last = frame
        trace = trace.tb_next
