"""Flags of the payload log: requests and responses, sent or written to where they are looked at later."""

from __future__ import annotations

from typing import Final

from alipes.config.flags.flag import MAX_BYTES, Flag

__all__ = ["PAYLOADS"]

PAYLOADS: Final[tuple[Flag, ...]] = (
    Flag(
        "payload-log-url",
        "str",
        "",
        "Where requests and responses are sent as CloudEvents, such as `http://sink:8080/`, or written as files, such "
        "as `file:///var/log/models` or `s3://bucket/folder`; empty logs none. Not a flag of Triton.",
        option="payloads.url",
    ),
    Flag(
        "payload-log-format",
        "choice",
        "json",
        "What files hold: lines of JSON, CSV or Parquet. Not a flag of Triton.",
        choices=("json", "csv", "parquet"),
        option="payloads.format",
    ),
    Flag(
        "payload-log-batch-size",
        "int",
        1000,
        "Most requests and responses of a file. Not a flag of Triton.",
        option="payloads.batch_size",
        low=1,
        high=1_000_000,
    ),
    Flag(
        "payload-log-batch-interval",
        "seconds",
        10.0,
        "Seconds after which a file is written, with fewer if there are no more. Not a flag of Triton.",
        option="payloads.batch_interval_s",
    ),
    Flag(
        "payload-log-mode",
        "choice",
        "all",
        "What is logged. Not a flag of Triton.",
        choices=("all", "request", "response"),
        option="payloads.mode",
    ),
    Flag(
        "payload-log-sample",
        "str",
        "1",
        "Share of requests that are logged with their responses, from 0 to 1. Not a flag of Triton.",
        option="payloads.sample",
    ),
    Flag(
        "payload-log-header",
        "list",
        (),
        "Name of a header, or of gRPC's metadata, that is logged with a request; may be given several times. Not a "
        "flag of Triton.",
        option="payloads.headers",
    ),
    Flag(
        "payload-log-redact",
        "list",
        (),
        "Name of a header, a parameter, a tensor or a member of a JSON body whose value is not logged; may be given "
        "several times. Headers with keys and cookies never are. Not a flag of Triton.",
        option="payloads.redacted",
    ),
    Flag(
        "payload-log-max-bytes",
        "int",
        64 << 20,
        "Bytes of requests and responses that may wait to be sent; what would be more is dropped and counted. Not a "
        "flag of Triton.",
        option="payloads.max_bytes",
        low=1,
        high=MAX_BYTES,
    ),
    Flag(
        "payload-log-timeout",
        "seconds",
        5.0,
        "Seconds in which a sink of HTTP must take a request or response. Not a flag of Triton.",
        option="payloads.timeout_s",
    ),
)
