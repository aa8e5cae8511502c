"""The log pump: writes the events of the data plane and the output of model processes to the server's log.

The data plane collects both and one thread fetches them, so that a model that logs much never waits and the log has one
format.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final

from alipes.server.log import DECIDED, FIELDS, SUBJECTS, VERBOSE, log
from alipes.server.service_thread import ServiceThread
from alipes.server.table import visible

if TYPE_CHECKING:
    from alipes import _core

# The longest wait for an event, and so for the check whether to end.
WAIT_S = 1.0

# Level of a model's line, most urgent first; the last is what Triton calls verbose.
_LINES: Final = (logging.ERROR, logging.WARNING, logging.INFO, VERBOSE)

# Logged for a request without an id. Source: Triton.
NO_ID: Final = "<id_unknown>"

# State of a process -> level of the line about it. A death is a warning: the process is started again.
_CHANGES: Final = {
    "died": logging.WARNING,
    "restarting": logging.WARNING,
    "ready": logging.INFO,
    "failed": logging.ERROR,
    "unready": logging.WARNING,
}

# What the line about a request names where it is known: the word, and the member of the event.
_NAMED: Final = (("model", "model"), ("id", "request_id"))

# The names of gRPC's statuses, by number.
_GRPC_STATUSES: Final = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
]


class LogPump(ServiceThread):
    """Fetches events until it is stopped.

    Start it before the first model is loaded, which may log; stop it after the data plane, and it writes the rest.
    """

    def __init__(self, core: _core.Server) -> None:
        """Prepares the thread."""
        super().__init__("alipes-log")
        self._core = core

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
    """Writes one event: a model's log line, the outcome of a request, a process's change of state, or a notice."""
    match event:
        case {"kind": "log", "level": level}:
            _write_line(_LINES[level], event)
        case {"kind": "request"}:
            _write_request(event)
        case {"kind": "refused"}:
            _write_refusal(event)
        case {"kind": "access"}:
            _write_access(event)
        case {"kind": "worker", "instance": instance, "state": state, "text": text}:
            log.log(_CHANGES[state], "worker process of '%s' %s", instance, text, extra=_subjects(event))
        case {"kind": "notice", "level": level, "text": text}:
            log.log(_LINES[level], "%s", text)
        case {"kind": "lost", "lines": lines}:
            log.warning("%d lines are lost: models log faster than the log can be written", lines)
        case _:
            raise ValueError(f"unknown event {event}")


def _write_line(level: int, event: dict[str, Any]) -> None:
    _write_decided(level, event["file"], event["line"], f"{event['instance']}: {event['text']}", _subjects(event))


def _write_request(event: dict[str, Any]) -> None:
    failure = event["failure"]
    ended = "answered" if failure is None else "failed"
    why = "" if failure is None else f": {failure}"
    request_id, model, version = event["request_id"] or NO_ID, event["model"], event["version"]
    text = f"[request id: {request_id}] model '{model}' version {version} {ended} after {event['micros']} us{why}"
    _write_verbose(text, _subjects(event))


def _write_refusal(event: dict[str, Any]) -> None:
    model = f" for model '{event['model']}'" if event["model"] else ""
    version = f" version {event['version']}" if event["version"] else ""
    text = f"[request id: {event['request_id'] or NO_ID}] a request{model}{version} was refused: {event['failure']}"
    # The version is logged as the request named it, which need not be a number.
    _write_verbose(text, _subjects(event | {"version": None}))


def _write_access(event: dict[str, Any]) -> None:
    """Writes the line about a request; texts of its client are escaped, so that no request looks like two."""
    is_grpc = event["protocol"] == "grpc"
    method = "gRPC" if is_grpc else visible(event["method"])
    status = _GRPC_STATUSES[event["status"]] if is_grpc else event["status"]
    duration_ms = event["micros"] / 1000
    text = f"{method} {visible(event['path'])} {status} in {duration_ms:.3f} ms"
    text += "".join(f", {word} {event[name]!r}" for word, name in _NAMED if event[name])
    fields = {name: event[name] for name in ("protocol", "method", "path", "status", "peer")}
    subjects = {**_subjects(event), FIELDS: {**fields, "duration_ms": duration_ms}}
    _write_verbose(f"{text}, from {event['peer']}", subjects)


def _write_verbose(text: str, subjects: dict[str, Any]) -> None:
    file, line, _, _ = log.findCaller()
    _write_decided(VERBOSE, file, line, text, subjects)


def _write_decided(level: int, file: str, line: int, text: str, subjects: dict[str, Any]) -> None:
    """Writes a line that the data plane let through by the settings of its time, whatever they are by now."""
    extra = {**subjects, DECIDED: True}
    log.handle(log.makeRecord(log.name, level, file, line, text, (), None, extra=extra))


def _subjects(event: dict[str, Any]) -> dict[str, Any]:
    """The event's model, version and request id, for log formats with fields for them."""
    return {subject: event[subject] for subject in SUBJECTS if event.get(subject)}
