"""The line of each request that says how long its handlers took, with the text of the SDK.

While a server runs, a thread writes the lines, many at once, so that no request waits for them: with a line by
`logging` for each, a plain handler answered half as many requests.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from itertools import pairwise
from typing import Any, Final, NamedTuple

from alipes.compat.kserve.logging import (
    KSERVE_LOGGER_DATE_FORMAT,
    KSERVE_TRACE_LOGGER_FORMAT,
    KSERVE_TRACE_LOGGER_NAME,
    trace_logger,
)

__all__ = ["LatencyLine", "LatencyWriter", "get_latency_ms", "log"]

_TOGETHER_S: Final = 0.02
"""How long lines wait for others."""

_MOST_WAITING: Final = 10_000
"""Lines that may wait; further ones are written by the request itself, as those of the SDK are."""

_MESSAGE: Final = "requestId: %s, preprocess_ms: %s, explain_ms: %s, predict_ms: %s, postprocess_ms: %s"


class LatencyLine(NamedTuple):
    """What a line says.

    Attributes:
        request_id: The request's own, or `N.A.`.
        is_explanation: Whether it asked for an explanation.
        moments: The four moments between its handlers, in seconds since 1970.
    """

    request_id: str
    is_explanation: bool
    moments: list[float]

    def values(self) -> tuple[Any, ...]:
        """The id, and the milliseconds of preprocess, explain, predict and postprocess."""
        pre, middle, post = (get_latency_ms(begin, end) for begin, end in pairwise(self.moments))
        explain, predict = (middle, 0) if self.is_explanation else (0, middle)
        return self.request_id, pre, explain, predict, post


def get_latency_ms(start: float, end: float) -> float:
    """Milliseconds between two moments in seconds."""
    return round((end - start) * 1000, 9)


class LatencyWriter:
    """Writes lines on a thread of its own, from its making to `stop`."""

    def __init__(self) -> None:
        """Starts the thread."""
        self._lines: deque[LatencyLine] = deque()
        self._wake = threading.Event()
        self._writing = threading.Lock()
        self._is_over = False
        self._texts = _Texts()
        self._thread = threading.Thread(target=self._run, name="alipes-latency-log", daemon=True)
        self._thread.start()
        _writers.append(self)

    def note(self, line: LatencyLine) -> None:
        """Has a line written soon; at once where too many wait."""
        self._lines.append(line)
        if len(self._lines) > _MOST_WAITING:
            self._write()
        elif not self._wake.is_set():
            self._wake.set()

    def stop(self) -> None:
        """Writes what waits, and ends the thread."""
        if self in _writers:
            _writers.remove(self)
        self._is_over = True
        self._wake.set()
        self._thread.join()
        self._write()

    def _run(self) -> None:
        while not self._is_over:
            self._wake.wait()
            time.sleep(_TOGETHER_S)
            # Cleared first: a line that comes now sets it again.
            self._wake.clear()
            self._write()

    def _write(self) -> None:
        with self._writing:
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            if not _is_written(trace_logger):
                return
            handler = _plain_handler()
            if handler is None:
                for line in lines:
                    _log_now(line)
            elif lines:
                _write_text(handler, "".join(map(self._texts.text, lines)))


class _Texts:
    """Lines as the SDK's own formatter writes them, at a tenth of its cost."""

    def __init__(self) -> None:
        self._second = -1
        self._date = ""
        self._middle = f" {os.getpid()} {KSERVE_TRACE_LOGGER_NAME} "

    def text(self, line: LatencyLine) -> str:
        """The line with its end."""
        moment = line.moments[-1]
        second = int(moment)
        if second != self._second:
            self._second = second
            self._date = time.strftime(KSERVE_LOGGER_DATE_FORMAT, time.localtime(second))
        return f"{self._date}.{int((moment - second) * 1000):03d}{self._middle}{_MESSAGE % line.values()}\n"


_writers: Final[list[LatencyWriter]] = []


def log(request_id: str, is_explanation: bool, moments: list[float]) -> None:
    """Log how long the handlers of a request took: soon, while a server runs, and otherwise at once."""
    line = LatencyLine(request_id, is_explanation, moments)
    if _writers:
        _writers[-1].note(line)
    else:
        _log_now(line)


def _log_now(line: LatencyLine) -> None:
    trace_logger.info(_MESSAGE, *line.values())


def _plain_handler() -> logging.StreamHandler[Any] | None:
    """The handler of the loggers as the SDK sets them up; None where a script has set them up otherwise."""
    handlers = trace_logger.handlers
    if len(handlers) != 1 or trace_logger.propagate or trace_logger.filters:
        return None
    (handler,) = handlers
    if not isinstance(handler, logging.StreamHandler) or type(handler) is not logging.StreamHandler or handler.filters:
        return None
    formatter = handler.formatter
    if formatter is None or type(formatter) is not logging.Formatter or handler.level > logging.INFO:
        return None
    is_sdk = formatter._fmt == KSERVE_TRACE_LOGGER_FORMAT and formatter.datefmt == KSERVE_LOGGER_DATE_FORMAT
    return handler if is_sdk else None


def _is_written(logger: logging.Logger) -> bool:
    return not logger.disabled and logger.isEnabledFor(logging.INFO)


def _write_text(handler: logging.StreamHandler[Any], text: str) -> None:
    with handler.lock or threading.RLock():
        try:
            handler.stream.write(text)
            handler.flush()
        except (OSError, ValueError):  # nobody reads it any more, or it is closed: as `logging`, no request fails by it
            return
