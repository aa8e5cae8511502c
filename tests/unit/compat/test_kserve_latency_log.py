"""The line of a request has the text of the SDK, whoever writes it, and is never lost."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator

import pytest
from alipes.compat.kserve import latency_log
from alipes.compat.kserve.latency_log import LatencyWriter
from alipes.compat.kserve.logging import KSERVE_LOGGER_DATE_FORMAT, KSERVE_TRACE_LOGGER_FORMAT, trace_logger

MOMENTS = [1764380000.25, 1764380000.2505, 1764380000.2527, 1764380000.253]


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record)


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    saved = trace_logger.handlers[:], trace_logger.level, trace_logger.propagate
    trace_logger.setLevel(logging.INFO)
    trace_logger.propagate = False
    trace_logger.handlers = []
    yield
    trace_logger.handlers, level, trace_logger.propagate = saved
    trace_logger.setLevel(level)


def _stream(fmt: str = KSERVE_TRACE_LOGGER_FORMAT) -> tuple[logging.StreamHandler[io.StringIO], io.StringIO]:
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(logging.Formatter(fmt, KSERVE_LOGGER_DATE_FORMAT))
    trace_logger.handlers = [handler]  # in the place of those by which pytest captures
    return handler, text


def _written(*lines: tuple[str, bool]) -> None:
    writer = LatencyWriter()
    for request_id, is_explanation in lines:
        latency_log.log(request_id, is_explanation, MOMENTS)
    writer.stop()


def test_the_text_is_that_of_the_sdks_formatter() -> None:
    handler, text = _stream()
    _written(("a", False), ("b", True))
    record = trace_logger.makeRecord("kserve.trace", logging.INFO, "", 0, "%s", (), None)
    record.created, record.msecs = MOMENTS[-1], float(int((MOMENTS[-1] - int(MOMENTS[-1])) * 1000))
    expected = ""
    for request_id, is_explanation in (("a", False), ("b", True)):
        record.msg = latency_log._MESSAGE
        record.args = latency_log.LatencyLine(request_id, is_explanation, MOMENTS).values()
        expected += handler.format(record) + "\n"
    assert text.getvalue() == expected
    assert re.search(
        r"requestId: b, preprocess_ms: 0\.\d+, explain_ms: 2\.\d+, predict_ms: 0, postprocess_ms: ", expected
    )


def test_a_request_without_a_server_is_logged_at_once() -> None:
    _, text = _stream()
    latency_log.log("N.A.", False, MOMENTS)
    assert "requestId: N.A., preprocess_ms: " in text.getvalue()


def test_handlers_of_a_script_get_records() -> None:
    records = _Records()
    trace_logger.handlers = [records]
    _written(("a", False))
    (record,) = records.seen
    assert record.getMessage().startswith("requestId: a, preprocess_ms: ")


def test_another_format_stays_that_of_the_script() -> None:
    _, text = _stream("%(name)s|%(message)s")
    _written(("a", False))
    assert text.getvalue().startswith("kserve.trace|requestId: a, ")


def test_a_logger_that_is_off_writes_nothing() -> None:
    _, text = _stream()
    trace_logger.setLevel(logging.WARNING)
    _written(("a", False))
    assert not text.getvalue()


def test_lines_that_nobody_takes_are_written_by_their_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency_log, "_MOST_WAITING", 2)
    _, text = _stream()
    writer = LatencyWriter()
    writer._wake.wait = lambda timeout=None: False  # type: ignore[method-assign]  # the thread does not look
    for at in range(4):
        writer.note(latency_log.LatencyLine(str(at), False, MOMENTS))
    assert text.getvalue().count("requestId: ") >= 3
    writer.stop()
    assert text.getvalue().count("requestId: ") == 4


def test_a_stream_that_is_closed_fails_no_request() -> None:
    handler, text = _stream()
    text.close()
    _written(("a", False))
    assert handler.stream.closed
