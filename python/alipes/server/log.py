"""The server's log: Triton's line format, because scripts and dashboards read it.

Source: Triton's ``--log-*`` flags. A line is a level letter, the time, the process, the place, the message as JSON::

    I0520 20:03:25.829575 3355 server.py:41] "Started HTTPService at 0.0.0.0:8000"
    2024-05-20T20:03:25Z I 3355 server.py:41] "Started HTTPService at 0.0.0.0:8000"
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Literal, TextIO

from alipes.config.options import LogOptions

LOGGER_NAME = "alipes"

# Messages that Triton calls verbose: shown from `--log-verbose=1`.
VERBOSE = logging.DEBUG

_LETTERS = {logging.DEBUG: "I", logging.INFO: "I", logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}

log = logging.getLogger(LOGGER_NAME)


def shows(options: LogOptions, level: int) -> bool:
    """Whether a line of this level is written. Each level has its own switch: errors alone can be silenced."""
    if level < logging.INFO:
        return options.verbose_level > 0
    if level < logging.WARNING:
        return options.info
    return options.warning if level < logging.ERROR else options.error


class LineFormatter(logging.Formatter):
    """Writes one record as one line; a record's ``table`` follows as it is, on lines of its own."""

    def __init__(self, style: Literal["default", "ISO8601"]) -> None:
        """Takes the form of the time, as ``--log-format`` names it."""
        super().__init__()
        self._time = _iso_time if style == "ISO8601" else _default_time

    def format(self, record: logging.LogRecord) -> str:
        """The line without its end. Quotes and line breaks in the message are escaped: one message stays one line."""
        table = getattr(record, "table", None)
        message = record.getMessage()
        if record.exc_info:
            message = f"{message}\n{self.formatException(record.exc_info)}"
        text = f"\n{table}\n" if table is not None else json.dumps(message, ensure_ascii=False)
        start = self._time(record.created, _LETTERS.get(record.levelno, "I"))
        return f"{start} {record.process} {record.filename}:{record.lineno}] {text}"


def configure(options: LogOptions) -> None:
    """Sends the log where ``options`` say, in place of what was set before.

    Raises:
        OSError: If the file cannot be opened for appending.
    """
    handler: logging.Handler
    handler = logging.FileHandler(options.file, encoding="utf-8") if options.file else _StderrHandler()
    handler.setFormatter(LineFormatter(options.format))
    handler.addFilter(lambda record: shows(options, record.levelno))
    for old in log.handlers[:]:
        log.removeHandler(old)
        old.close()
    log.addHandler(handler)
    log.setLevel(VERBOSE if options.verbose_level > 0 else logging.INFO)
    log.propagate = False


def log_table(table: str) -> None:
    """Writes a table of text as one informative record."""
    log.info("", extra={"table": table}, stacklevel=2)


class _StderrHandler(logging.StreamHandler[TextIO]):
    """Standard error; a reader that closed its end must not stop the server."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)

    def handleError(self, record: logging.LogRecord) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


def _default_time(created: float, letter: str) -> str:
    moment = time.gmtime(created)
    micros = int(created % 1 * 1_000_000)
    return f"{letter}{moment.tm_mon:02}{moment.tm_mday:02} {time.strftime('%H:%M:%S', moment)}.{micros:06}"


def _iso_time(created: float, letter: str) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(created))} {letter}"
