"""The server's log: Triton's line format, because scripts and dashboards read it, or JSON for machines.

Source: Triton's ``--log-*`` flags. A line is a level letter, the time, the process, the place, the message as JSON::

    I0520 20:03:25.829575 3355 server.py:41] "Started HTTPService at 0.0.0.0:8000"
    2024-05-20T20:03:25Z I 3355 server.py:41] "Started HTTPService at 0.0.0.0:8000"
    {"time": "2024-05-20T20:03:25.829575Z", "level": "info", "pid": 3355, "file": "server.py", "line": 41, "message": …}
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TextIO

from alipes.config.record_options import LogOptions
from alipes.disclosure import readable

LOGGER_NAME = "alipes"

# Messages that Triton calls verbose: shown from `--log-verbose=1`.
VERBOSE = logging.DEBUG

_LETTERS = {logging.DEBUG: "I", logging.INFO: "I", logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}
_WORDS = {logging.DEBUG: "verbose", logging.INFO: "info", logging.WARNING: "warning", logging.ERROR: "error"}

# What a record may carry besides its message: fields of their own in JSON, part of the message elsewhere.
SUBJECTS: Final = ("model", "version", "instance", "request_id")

# The attribute of a record with further fields of its document; elsewhere the message says the same.
FIELDS: Final = "fields"

# The attribute of a record that is written whatever the levels are by now: they let it through when it was made.
DECIDED: Final = "decided"

# What JSON leaves as it is although a terminal obeys it: further controls, ends of lines, and turns of direction.
_UNSEEN: Final = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

# What stands between the message of an exception and its frames.
TRACE: Final = "\nTraceback (most recent call last):\n"

# Most characters of a message: what a client sends may stand in it, and a long traceback has a tenth of that.
LONGEST_MESSAGE: Final = 64 * 1024

log = logging.getLogger(LOGGER_NAME)


def shows(options: LogOptions, level: int) -> bool:
    """Whether a line of this level is written. Each level has its own switch: errors alone can be silenced."""
    if level < logging.INFO:
        return options.verbose_level > 0
    if level < logging.WARNING:
        return options.info
    return options.warning if level < logging.ERROR else options.error


class LineFormatter(logging.Formatter):
    """Writes one record as one line; a record's ``table`` follows as it is, on lines of its own.

    The frames of an exception follow its message on lines of their own, each with the same start and two blanks:
    none can be taken for another record.
    """

    def __init__(self, style: Literal["default", "ISO8601"]) -> None:
        """Takes the form of the time, as ``--log-format`` names it."""
        super().__init__()
        self._time = _iso_time if style == "ISO8601" else _default_time

    def format(self, record: logging.LogRecord) -> str:
        """The line without its end. Quotes and line breaks in the message are escaped: one message stays one line."""
        start = self._time(record.created, _LETTERS.get(record.levelno, "I"))
        start = f"{start} {record.process} {record.filename}:{record.lineno}] "
        table = getattr(record, "table", None)
        if table is not None:
            return f"{start}\n{table}\n"
        message, has_trace, trace = _message(self, record).partition(TRACE)
        if not has_trace:
            return start + _json(message)
        lines = (TRACE.strip() + "\n" + trace).splitlines()
        return "\n".join([start + _json(message), *(f"{start}  {_unquoted(line)}" for line in lines)])


class JsonFormatter(logging.Formatter):
    """Writes one record as one JSON document on one line; a table as one such line for each of its rows."""

    def format(self, record: logging.LogRecord) -> str:
        """The lines without the last end; what the record is about stands in fields of its own."""
        rows: Sequence[Mapping[str, Any]] | None = getattr(record, "rows", None)
        if rows is not None:
            return "\n".join(self._document(record, row) for row in rows)
        subjects = {subject: getattr(record, subject) for subject in SUBJECTS if hasattr(record, subject)}
        return self._document(record, {"message": _message(self, record), **subjects, **getattr(record, FIELDS, {})})

    def _document(self, record: logging.LogRecord, says: Mapping[str, Any]) -> str:
        document = {
            "time": f"{_seconds(record.created)}.{_micros(record.created):06}Z",
            "level": _WORDS.get(record.levelno, "error"),
            "pid": record.process,
            "file": record.filename,
            "line": record.lineno,
            **says,
        }
        return _json(document)


def configure(options: LogOptions) -> None:
    """Sends the log where ``options`` say, in place of what was set before.

    Raises:
        OSError: If the file cannot be opened for appending.
    """
    handler: logging.Handler = _File(options.file) if options.file else _StderrHandler()
    for old in log.handlers[:]:
        log.removeHandler(old)
        old.close()
    log.addHandler(handler)
    log.propagate = False
    change(options)


def change(options: LogOptions) -> None:
    """Writes by other levels and in another form from now on, to where the log goes already."""
    formatter = JsonFormatter() if options.format == "JSON" else LineFormatter(options.format)
    for handler in log.handlers:
        handler.setFormatter(formatter)
        handler.filters = [_Switches(options)]
    log.setLevel(VERBOSE if options.verbose_level > 0 else logging.INFO)


def reopen() -> None:
    """Goes on in a new file where the log's was moved away; standard error stays what it is.

    Raises:
        OSError: If the file cannot be opened; the log goes on in the old one.
    """
    for handler in log.handlers:
        if isinstance(handler, _File):
            handler.reopen()


def log_table(table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes a table as one informative record.

    Args:
        table: The table as text.
        rows: What a log of documents has in its place: the fields of one document for each row, with its ``message``.
            At least one.
    """
    log.info("", extra={"table": table, "rows": rows}, stacklevel=2)


class _Switches(logging.Filter):
    """Lets through what is to be written."""

    def __init__(self, options: LogOptions) -> None:
        super().__init__()
        self._options = options

    def filter(self, record: logging.LogRecord) -> bool:
        return hasattr(record, DECIDED) or shows(self._options, record.levelno)


class _File(logging.FileHandler):
    """The file of ``--log-file``."""

    def __init__(self, path: str) -> None:
        super().__init__(path, encoding="utf-8")

    def reopen(self) -> None:
        """Opens the path again, which may name another file by now."""
        old = self.setStream(self._open())
        if old is not None:
            old.close()


class _StderrHandler(logging.StreamHandler[TextIO]):
    """Standard error; a reader that closed its end must not stop the server."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)

    def handleError(self, record: logging.LogRecord) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


def _message(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    message = record.getMessage()
    text = f"{message}\n{formatter.formatException(record.exc_info)}" if record.exc_info else message
    if len(text) > LONGEST_MESSAGE:
        text = f"{text[:LONGEST_MESSAGE]}... ({len(text)} characters in all)"
    return readable(text)


def _json(document: object) -> str:
    """The document on one line, also for readers that end a line at more than a line feed, and in its own order."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(document, ensure_ascii=False))


def _unquoted(line: str) -> str:
    """A line of frames with its quotes as they are; what a terminal would obey is escaped."""
    return _json(line)[1:-1].replace('\\"', '"')


def _default_time(created: float, letter: str) -> str:
    moment = time.gmtime(created)
    clock = time.strftime("%H:%M:%S", moment)
    return f"{letter}{moment.tm_mon:02}{moment.tm_mday:02} {clock}.{_micros(created):06}"


def _iso_time(created: float, letter: str) -> str:
    return f"{_seconds(created)}Z {letter}"


def _seconds(created: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(created))


def _micros(created: float) -> int:
    return int(created % 1 * 1_000_000)
