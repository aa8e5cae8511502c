"""The log pump: writes what the data plane has to say to the server's log, and what the processes of models say.

The data plane collects both; one thread fetches them, so that a model that logs much waits for nobody and the log has
one writer's format.
"""

from __future__ import annotations

import json
import logging
import threading
from typing import TYPE_CHECKING, Any, Final

from alipes.server.log import SUBJECTS, VERBOSE, log

if TYPE_CHECKING:
    from alipes import _core

# How often the thread looks up from the data plane, to see whether it is to end.
WAIT_S = 1.0

# Level of a model's line, most urgent first; the last is what Triton calls verbose.
_LINES: Final = (logging.ERROR, logging.WARNING, logging.INFO, VERBOSE)

# What stands for the id of a request that has none. Source: Triton.
NO_ID: Final = "<id_unknown>"

# State of a process -> level of the line about it. A death is a warning: the process is started again.
_CHANGES: Final = {
    "died": logging.WARNING,
    "restarting": logging.WARNING,
    "ready": logging.INFO,
    "failed": logging.ERROR,
    "unready": logging.WARNING,
}


class LogPump:
    """Fetches events until it is stopped."""

    def __init__(self, core: _core.Server) -> None:
        """Prepares the thread."""
        self._core = core
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="alipes-log", daemon=True)

    def start(self) -> None:
        """Begins to fetch: before the first model is loaded, which may have something to say."""
        self._thread.start()

    def stop(self, timeout_s: float) -> bool:
        """Writes what is left and ends; true if that came in time. For after the data plane has stopped."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            event = self._core.next_event(WAIT_S)
            if event is not None:
                self._write(event)
            elif self._stopping.is_set():
                return

    def _write(self, text: str) -> None:
        try:
            write_event(json.loads(text))
        except Exception:  # a line that cannot be written must not end the log of all models
            log.exception("an event of the data plane cannot be logged")


def write_event(event: dict[str, Any]) -> None:
    """Writes one event: a line of a model, how a request went, what became of a process, or what concerns no model."""
    match event:
        case {"kind": "log", "level": level}:
            _write_line(_LINES[level], event)
        case {"kind": "request"}:
            _write_request(event)
        case {"kind": "refused"}:
            _write_refusal(event)
        case {"kind": "worker", "instance": instance, "state": state, "text": text}:
            log.log(_CHANGES[state], "worker process of '%s' %s", instance, text, extra=_subjects(event))
        case {"kind": "notice", "level": level, "text": text}:
            log.log(_LINES[level], "%s", text)
        case {"kind": "lost", "lines": lines}:
            log.warning("%d lines are lost: models log faster than the log can be written", lines)
        case _:
            raise ValueError(f"unknown event {event}")


def _write_line(level: int, event: dict[str, Any]) -> None:
    if log.isEnabledFor(level):
        text = f"{event['instance']}: {event['text']}"
        extra = _subjects(event)
        log.handle(log.makeRecord(log.name, level, event["file"], event["line"], text, (), None, extra=extra))


def _write_request(event: dict[str, Any]) -> None:
    failure = event["failure"]
    log.debug(
        "[request id: %s] model '%s' version %d %s after %d us%s",
        event["request_id"] or NO_ID,
        event["model"],
        event["version"],
        "answered" if failure is None else "failed",
        event["micros"],
        "" if failure is None else f": {failure}",
        extra=_subjects(event),
    )


def _write_refusal(event: dict[str, Any]) -> None:
    model = f" for model '{event['model']}'" if event["model"] else ""
    version = f" version {event['version']}" if event["version"] else ""
    text = "[request id: %s] a request%s%s was refused: %s"
    given = event["request_id"] or NO_ID
    # The version stands as it was asked for, which need not be a number.
    extra = _subjects(event | {"version": None})
    log.debug(text, given, model, version, event["failure"], extra=extra)


def _subjects(event: dict[str, Any]) -> dict[str, Any]:
    """What an event is about, for formats that have fields for it."""
    return {subject: event[subject] for subject in SUBJECTS if event.get(subject)}
