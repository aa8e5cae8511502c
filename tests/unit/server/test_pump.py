"""What the processes of models say ends up in the server's log."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from alipes.config.record_options import LogOptions
from alipes.server.log import JsonFormatter, LineFormatter, configure, log
from alipes.server.pump import LogPump, write_event
from support.data_plane import DataPlane

TIMEOUT_S = 30
SPEAKER = {"model": "m", "version": 1, "instance": "m_0_0"}


class Lines(logging.Handler):
    """Keeps what is written, and tells when."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(LineFormatter("default"))
        self.written: list[str] = []
        self.levels: list[int] = []
        self.whole = False  # or without level, time and process
        self.more = threading.Semaphore(0)

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        self.written.append(line if self.whole else line.split(" ", 3)[3])
        self.levels.append(record.levelno)
        self.more.release()


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler = Lines()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield handler
    log.setLevel(level)
    log.removeHandler(handler)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "log"
    for handler in log.handlers[:]:
        log.removeHandler(handler)
        handler.close()


def line(**changes: Any) -> dict[str, Any]:
    return {
        "kind": "log",
        **SPEAKER,
        "level": 2,
        "file": "/models/m/1/model.py",
        "line": 12,
        "text": "hello",
        **changes,
    }


@pytest.mark.parametrize(("level", "expected"), [(0, logging.ERROR), (1, logging.WARNING), (2, logging.INFO)])
def test_a_models_line_has_its_place_and_its_instance(lines: Lines, level: int, expected: int) -> None:
    write_event(line(level=level))
    assert lines.written == ['model.py:12] "m_0_0: hello"']
    assert lines.levels == [expected]


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_a_line_that_was_let_through_is_written_whatever_is_set_now(file: Path, level: int) -> None:
    configure(LogOptions(verbose_level=0, info=False, warning=False, error=False, format="default", file=str(file)))
    write_event(line(level=level))
    write_event({"kind": "notice", "level": level, "text": "no line of a model"})
    assert file.read_text().endswith('model.py:12] "m_0_0: hello"\n')


@pytest.mark.parametrize(
    ("failure", "request_id", "expected"),
    [
        (None, "7", "[request id: 7] model 'm' version 1 answered after 12 us"),
        ("no %s", "", "[request id: <id_unknown>] model 'm' version 1 failed after 12 us: no %s"),
    ],
)
def test_a_verbose_log_has_a_line_for_a_request(
    lines: Lines, failure: str | None, request_id: str, expected: str
) -> None:
    event = {"kind": "request", "model": "m", "version": 1, "request_id": request_id, "micros": 12, "failure": failure}
    write_event(event)
    assert lines.written[0].endswith(f'] "{expected}"')


@pytest.mark.parametrize(
    ("model", "version", "request_id", "expected"),
    [
        ("m", "3", "7", "[request id: 7] a request for model 'm' version 3 was refused: no %s"),
        ("m", "", "", "[request id: <id_unknown>] a request for model 'm' was refused: no %s"),
        ("", "", "", "[request id: <id_unknown>] a request was refused: no %s"),
    ],
)
def test_a_verbose_log_has_a_line_for_a_request_that_no_model_had(
    lines: Lines, model: str, version: str, request_id: str, expected: str
) -> None:
    event = {"kind": "refused", "model": model, "version": version, "request_id": request_id, "failure": "no %s"}
    write_event(event)
    assert lines.written[0].endswith(f'] "{expected}"')


def access(**changes: object) -> dict[str, Any]:
    return {
        "kind": "access",
        "protocol": "http",
        "method": "POST",
        "path": "/v2/models/m/infer",
        "model": "m",
        "request_id": "7",
        "status": 200,
        "micros": 1204,
        "peer": "203.0.113.9",
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "POST /v2/models/m/infer 200 in 1.204 ms, model 'm', id '7', from 203.0.113.9"),
        ({"model": "", "request_id": "", "status": 404}, "POST /v2/models/m/infer 404 in 1.204 ms, from 203.0.113.9"),
        (
            {"protocol": "grpc", "path": "/inference.GRPCInferenceService/ModelInfer", "status": 5, "peer": "unix"},
            "gRPC /inference.GRPCInferenceService/ModelInfer NOT_FOUND in 1.204 ms, model 'm', id '7', from unix",
        ),
    ],
)
def test_a_verbose_log_has_a_line_for_what_a_listener_answered(
    lines: Lines, changes: dict[str, object], expected: str
) -> None:
    write_event(access(**changes))
    assert lines.written[0].endswith(f'] "{expected}"')


@pytest.mark.parametrize("format", ["default", "JSON"])
def test_no_request_forges_a_line(file: Path, format: Literal["default", "JSON"]) -> None:
    configure(LogOptions(verbose_level=1, info=True, warning=True, error=True, format=format, file=str(file)))
    forged = "a\nI1125 forged\r\x1b[31m\x85\u2028\u202eb"
    write_event(access(method=forged, path=forged, model=forged, request_id=forged))
    text = file.read_text()
    assert len(text.splitlines()) == 1 and text.endswith("\n")
    written = json.loads(text)["message"] if format == "JSON" else text.rstrip("\n")
    assert written.isprintable() and written.count("forged") == 4


def test_the_document_of_a_request_has_its_fields(lines: Lines) -> None:
    lines.setFormatter(JsonFormatter())
    lines.whole = True
    write_event(access())
    (document,) = map(json.loads, lines.written)
    expected = {"protocol": "http", "method": "POST", "path": "/v2/models/m/infer", "status": 200, "model": "m"}
    assert document.items() >= {**expected, "request_id": "7", "duration_ms": 1.204, "peer": "203.0.113.9"}.items()


def test_what_an_event_is_about_stands_in_fields_of_its_own(lines: Lines) -> None:
    lines.setFormatter(JsonFormatter())
    lines.whole = True
    write_event(line())
    write_event({"kind": "worker", **SPEAKER, "state": "died", "text": "ended"})
    for document in map(json.loads, lines.written):
        assert document.items() >= SPEAKER.items()


def test_a_models_text_is_not_formatted(lines: Lines) -> None:
    write_event(line(text="100 %s\n{}"))
    assert lines.written == ['model.py:12] "m_0_0: 100 %s\\n{}"']


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("died", logging.WARNING),
        ("restarting", logging.WARNING),
        ("ready", logging.INFO),
        ("failed", logging.ERROR),
    ],
)
def test_the_state_of_a_process_is_logged(lines: Lines, state: str, expected: int) -> None:
    write_event({"kind": "worker", **SPEAKER, "state": state, "text": "sleeps"})
    assert lines.levels == [expected]
    assert lines.written[0].endswith("] \"worker process of 'm_0_0' sleeps\"")


def test_lost_lines_are_counted(lines: Lines) -> None:
    write_event({"kind": "lost", "lines": 12})
    assert lines.written[0].endswith('] "12 lines are lost: models log faster than the log can be written"')
    assert lines.levels == [logging.WARNING]


def test_the_pump_writes_until_it_is_stopped_and_then_what_is_left(lines: Lines, data_plane: DataPlane) -> None:
    pump = LogPump(data_plane)  # type: ignore[arg-type]
    pump.start()
    data_plane.events.put(json.dumps(line(text="first")))
    assert lines.more.acquire(timeout=TIMEOUT_S)
    for number in range(100):
        data_plane.events.put(json.dumps(line(text=str(number))))
    data_plane.stop()
    assert pump.stop(TIMEOUT_S)
    assert len(lines.written) == 101


def test_an_event_that_cannot_be_written_does_not_end_the_log(lines: Lines, data_plane: DataPlane) -> None:
    pump = LogPump(data_plane)  # type: ignore[arg-type]
    data_plane.events.put("{")
    data_plane.events.put(json.dumps({"kind": "worker", **SPEAKER, "state": "asleep", "text": ""}))
    data_plane.events.put(json.dumps({"kind": "dance"}))
    data_plane.events.put(json.dumps(line()))
    data_plane.stop()
    pump.start()
    assert pump.stop(TIMEOUT_S)
    assert lines.written[-1] == 'model.py:12] "m_0_0: hello"'
    assert lines.levels == [logging.ERROR, logging.ERROR, logging.ERROR, logging.INFO]


def test_a_pump_that_never_started_stops_at_once(data_plane: DataPlane) -> None:
    assert LogPump(data_plane).stop(0)  # type: ignore[arg-type]


@pytest.mark.parametrize(("level", "expected"), [(0, logging.ERROR), (1, logging.WARNING), (2, logging.INFO)])
def test_a_notice_without_a_model_is_logged(lines: Lines, level: int, expected: int) -> None:
    write_event({"kind": "notice", "level": level, "text": "a certificate changed: 100 %"})
    assert lines.levels == [expected]
    assert lines.written[0].endswith('] "a certificate changed: 100 %"')
