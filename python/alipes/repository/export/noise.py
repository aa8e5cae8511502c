"""What frameworks print, log and warn of while they export: nobody's business, unless the export fails.

What the user's own model prints and warns of is shown as ever. Who speaks is told by the module that does.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final, TextIO

__all__ = ["caught_noise"]

_FRAMEWORKS: Final = (
    "torch",
    "torchvision",
    "torchaudio",
    "functorch",
    "onnx",
    "onnxscript",
    "onnx_ir",
    "onnxruntime",
    "skl2onnx",
    "onnxconverter_common",
    "sklearn",
    "tensorflow",
    "absl",
    "keras",
    "tf_keras",
)

_ATTRIBUTED: Final = ("alipes.repository.export", "copyreg")
"""Modules that frameworks' warnings name, which point at their caller."""

_MOST_LINES: Final = 200
"""The last so many lines are shown with a failure."""

# Streams, loggers and warnings belong to the process: what an export swaps it gives back before the next one swaps it.
# The same thread may enter again, for an exporter may export a part by another.
_swapped = threading.RLock()


def _renew() -> None:
    """Makes the lock anew in a process that was forked while a thread held it that is not there."""
    global _swapped  # noqa: PLW0603
    _swapped = threading.RLock()


os.register_at_fork(after_in_child=_renew)


@contextmanager
def caught_noise(verbose: bool) -> Iterator[None]:
    """Keeps the noise of frameworks; an exception that leaves the block has it as a note.

    Blocks of several threads run one after the other.

    Args:
        verbose: Whether all of it may be seen as it comes.
    """
    if verbose:
        with _swapped, _shown_warnings():
            yield
        return
    noise: list[str] = []
    try:
        with ExitStack() as stack:
            stack.enter_context(_swapped)
            stack.enter_context(_shown_warnings())
            stack.enter_context(_caught_warnings(noise))
            stack.enter_context(_caught_logs(noise))
            stack.enter_context(_caught_prints(noise))
            yield
    except BaseException as error:
        lines = "".join(noise).strip().splitlines()[-_MOST_LINES:]
        if lines:
            error.add_note("\n".join(["Output of the frameworks during the export:", *lines]))
        raise


@contextmanager
def _shown_warnings() -> Iterator[None]:
    """Warnings of frameworks end nothing, and each is seen, whatever is said of warnings elsewhere."""
    with warnings.catch_warnings():
        roots = "|".join(map(re.escape, (*_FRAMEWORKS, *_ATTRIBUTED)))
        warnings.filterwarnings("always", module=rf"({roots})(\.|$)")
        for category in _own_categories():
            warnings.simplefilter("always", category)
        yield


@contextmanager
def _caught_warnings(noise: list[str]) -> Iterator[None]:
    with warnings.catch_warnings():
        show = warnings.showwarning

        def keep(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if category.__module__.partition(".")[0] in _FRAMEWORKS or _is_of_framework(filename):
                noise.append(warnings.formatwarning(message, category, filename, lineno, line))
            else:
                show(message, category, filename, lineno, file, line)

        warnings.showwarning = keep
        yield


def _own_categories() -> list[type[Warning]]:
    """Kinds of warnings that a framework has for itself, though it gives them the place of the user's line."""
    torch: Any = sys.modules.get("torch")
    return [] if torch is None else [torch.jit.TracerWarning]


def _is_of_framework(filename: str) -> bool:
    folders = (getattr(sys.modules.get(name), "__file__", None) for name in (*_FRAMEWORKS, *_ATTRIBUTED))
    path = Path(filename)
    places = [Path(file) for file in folders if file]
    return any(path == place or (place.name == "__init__.py" and path.is_relative_to(place.parent)) for place in places)


@contextmanager
def _caught_logs(noise: list[str]) -> Iterator[None]:
    collector = _Collector(noise)
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in _FRAMEWORKS]
    loggers = [logging.getLogger(name) for name in {*names, *_FRAMEWORKS}]
    before = [(one, one.handlers[:], one.propagate) for one in loggers]
    for one, handlers, _ in before:
        root = one.name in _FRAMEWORKS
        # Those below hand on to their framework's own.
        one.handlers[:] = [collector] if root else [each for each in handlers if not _is_terminal(each)]
        one.propagate = not root
    try:
        yield
    finally:
        for one, handlers, propagate in before:
            one.handlers[:] = handlers
            one.propagate = propagate


def _is_terminal(handler: logging.Handler) -> bool:
    return isinstance(handler, logging.StreamHandler) and not isinstance(handler, logging.FileHandler)


class _Collector(logging.Handler):
    def __init__(self, noise: list[str]) -> None:
        super().__init__()
        self._noise = noise

    def emit(self, record: logging.LogRecord) -> None:
        self._noise.append(f"{record.levelname} {record.name}: {record.getMessage()}\n")


@contextmanager
def _caught_prints(noise: list[str]) -> Iterator[None]:
    sieves = {name: _Sieve(getattr(sys, name), noise) for name in ("stdout", "stderr")}
    for name, sieve in sieves.items():
        setattr(sys, name, sieve)
    try:
        yield
    finally:
        for name, sieve in sieves.items():
            if getattr(sys, name) is sieve:
                setattr(sys, name, sieve.stream)


class _Sieve:
    """A stream that keeps what frameworks write, and hands on the rest."""

    def __init__(self, stream: TextIO, noise: list[str]) -> None:
        self.stream = stream
        self._noise = noise

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        if _speaker(sys._getframe(1)) in _FRAMEWORKS:
            self._noise.append(text)
            return len(text)
        return self.stream.write(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)


def _speaker(frame: FrameType | None) -> str:
    """The package that writes; what it uses of Python for that does not count."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in sys.stdlib_module_names or package == "__main__":
            return package
        frame = frame.f_back
    return ""
