"""The options of what a server writes down: its log, traces, payloads and cloud events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = [
    "CloudEventOptions",
    "LogOptions",
    "PayloadOptions",
    "TraceOptions",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """What is written to the log, and how.

    Attributes:
        verbose_level: Level of verbose messages; 0 turns them off.
        info: Whether informational messages are written.
        warning: Whether warnings are written.
        error: Whether errors are written.
        format: `default`, `ISO8601` or `JSON`.
        file: File to write to; empty for standard error.
    """

    verbose_level: int
    info: bool
    warning: bool
    error: bool
    format: Literal["default", "ISO8601", "JSON"]
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptions:
    """Which requests are traced, and where their traces go.

    Attributes:
        mode: `triton` for its trace file, `opentelemetry` for spans.
        level: What is recorded, of TIMESTAMPS and TENSORS; nothing is recorded where it is empty.
        rate: Trace one request in `rate`; 0 traces only requests that ask for it.
        count: Requests to trace; -1 for any number.
        log_frequency: Traces in a file of their own; 0 for all in one.
        file: The trace file; empty for none.
        url: Where a collector takes spans.
        resource: What spans say about the server.
        certificate: File of the roots that the collector's certificate leads to; empty for those of the system.
        max_queue_size: Spans that wait at most.
        schedule_delay_ms: Longest time until spans are sent.
        max_export_batch_size: Spans that are sent at once at most.
    """

    mode: Literal["triton", "opentelemetry"]
    level: tuple[str, ...]
    rate: int
    count: int
    log_frequency: int
    file: str
    url: str
    resource: tuple[tuple[str, str], ...]
    certificate: str
    max_queue_size: int
    schedule_delay_ms: int
    max_export_batch_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadOptions:
    """Which requests and responses are logged, and where they are sent.

    Attributes:
        url: Where they are sent as CloudEvents, or written as files; empty logs none.
        mode: Whether requests are logged, responses, or both.
        sample: The share of requests that are logged, from 0 to 1.
        headers: Headers that are logged with a request, in lower case.
        redacted: Names of headers, parameters and tensors whose value is not logged.
        max_bytes: Bytes that may wait.
        timeout_s: Seconds in which a sink of HTTP must take one.
        is_files: Whether they are written as files.
        format: Of these files.
        batch_size: Most records of a file.
        batch_interval_s: Longest time that a record waits for others of its file, in seconds.
        source: What events say of the server: attributes of CloudEvents.
    """

    url: str
    mode: Literal["all", "request", "response"]
    sample: float
    headers: tuple[str, ...]
    redacted: tuple[str, ...]
    max_bytes: int
    timeout_s: float
    is_files: bool
    format: Literal["json", "csv", "parquet"]
    batch_size: int
    batch_interval_s: float
    source: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudEventOptions:
    """How requests of V1 that are CloudEvents are answered.

    Attributes:
        merge: Whether the answer repeats the attributes of the request.
        kind: The type of the answer; None for KServe's.
        source: Its source; None for one with the model's name.
    """

    merge: bool = False
    kind: str | None = None
    source: str | None = None
