"""The options of perf_analyzer, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["BY_LONG", "BY_SHORT", "GROUPS", "OPTIONS", "Option"]

GROUPS: Final = ("", "MEASUREMENT PARAMETERS", "INPUT DATA OPTIONS", "SERVER DETAILS", "OTHER OPTIONS")
"""Headings of the usage; the first group has none."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option.

    Attributes:
        name: What the settings know it by: its long name, or what its short one stands for.
        long: With two dashes; empty where there is none.
        short: With one dash; empty where there is none.
        value: What its value is; empty for a switch.
        group: Number of its heading.
        refused: Why it is not served; empty where it is.
        deprecated: What took its place.
    """

    name: str
    long: str = ""
    short: str = ""
    value: str = ""
    group: int = 0
    refused: str = ""
    deprecated: str = ""

    @property
    def shown(self) -> str:
        """For the usage."""
        names = " ".join(part for part in (self._first, f"({self._second})" if self._second else "") if part)
        return f"{names} <{self.value}>" if self.value else names

    @property
    def _first(self) -> str:
        return f"--{self.long}" if self.long else f"-{self.short}"

    @property
    def _second(self) -> str:
        return f"-{self.short}" if self.long and self.short else ""


def _long(name: str, value: str = "", group: int = 0, short: str = "", refused: str = "") -> Option:
    return Option(name, name, short, value, group, refused)


_OPENAI: Final = "language models are not served"
_C_API: Final = "there is no C API of a server to load"
_TENSORFLOW: Final = "the protocol of TensorFlow Serving is not spoken; its REST API is --service-kind kserve_v1"
_DYNAMIC: Final = "calls of other gRPC services are not served"
_TRACE: Final = "set traces at the server, with the trace settings of its API"
_LEVELS: Final = "a range of concurrency within one run is not served: give the levels with --concurrency-range"

OPTIONS: Final = (
    _long("version"),
    _long("help"),
    Option("model", "", "m", "model name"),
    Option("model-version", "", "x", "model version"),
    _long("bls-composing-models", "string"),
    _long("model-signature-name", "model signature name", refused=_TENSORFLOW),
    _long("service-kind", "triton|torchserve|kserve_v1|http"),
    _long("endpoint", "path"),
    _long("grpc-method", "package.service/method", refused=_DYNAMIC),
    _long("proto", "path", refused=_DYNAMIC),
    Option("verbose", "", "v"),
    _long("async", group=1, short="a"),
    _long("sync", group=1),
    _long("measurement-interval", "msec", 1, "p"),
    _long("measurement-mode", "time_windows|count_windows", 1),
    _long("measurement-request-count", "number of requests", 1),
    _long("request-count", "number of requests", 1),
    _long("warmup-request-count", "number of requests", 1),
    _long("concurrency-range", "start:end:step", 1),
    _long("periodic-concurrency-range", "start:end:step", 1, refused=_LEVELS),
    _long("request-period", "number of responses", 1, refused=_LEVELS),
    _long("session-concurrency", "number of sessions", 1, refused=_OPENAI),
    _long("fixed-schedule", group=1, refused="replay the times with --request-intervals"),
    _long("request-rate-range", "start:end:step", 1),
    _long("request-distribution", "poisson|constant", 1),
    _long("request-intervals", "path of a file with microseconds", 1),
    _long("serial-sequences", group=1),
    _long("binary-search", group=1),
    _long("num-of-sequences", "number of sequences", 1),
    _long("latency-threshold", "msec", 1, "l"),
    _long("max-threads", "number of threads", 1),
    _long("stability-percentage", "percentage", 1, "s"),
    _long("max-trials", "number of windows", 1, "r"),
    _long("percentile", "percentile", 1),
    Option("threads", "", "t", "number of concurrent requests", 1, deprecated="--concurrency-range"),
    Option("most-concurrency", "", "c", "maximum concurrency", 1, deprecated="--concurrency-range"),
    Option("dynamic-concurrency", "", "d", "", 1, deprecated="--concurrency-range"),
    Option("batch", "", "b", "batch size", 2),
    _long("input-data", "zero|random|path", 2),
    _long("shared-memory", "system|none", 2),
    _long("output-shared-memory-size", "size in bytes", 2),
    _long("shape", "name:shape", 2),
    _long("sequence-length", "length", 2),
    _long("sequence-length-variation", "percentage", 2),
    _long("sequence-id-range", "start:end", 2),
    _long("string-length", "length", 2),
    _long("string-data", "string", 2),
    _long("input-tensor-format", "binary|json", 2),
    _long("output-tensor-format", "binary|json", 2),
    _long("request-parameter", "name:value:type", 2),
    Option("zero", "", "z", "", 2, deprecated="--input-data=zero"),
    Option("data-directory", "data-directory", "", "path", 2, deprecated="--input-data"),
    Option("url", "", "u", "host:port", 3),
    Option("protocol", "", "i", "http|grpc", 3),
    _long("ssl-grpc-use-ssl", group=3),
    _long("ssl-grpc-root-certifications-file", "path", 3),
    _long("ssl-grpc-private-key-file", "path", 3),
    _long("ssl-grpc-certificate-chain-file", "path", 3),
    _long("ssl-https-verify-peer", "number", 3),
    _long("ssl-https-verify-host", "number", 3),
    _long("ssl-https-ca-certificates-file", "path", 3),
    _long("ssl-https-client-certificate-file", "path", 3),
    _long("ssl-https-client-certificate-type", "PEM|DER", 3),
    _long("ssl-https-private-key-file", "path", 3),
    _long("ssl-https-private-key-type", "PEM|DER", 3),
    _long("triton-server-directory", "path", 3, refused=_C_API),
    _long("model-repository", "path", 3, refused=_C_API),
    Option("csv", "", "f", "path of the report", 4),
    _long("verbose-csv", group=4),
    _long("profile-export-file", "path", 4, refused="requests are not recorded one by one"),
    Option("header", "", "H", "name:value", 4),
    _long("streaming", group=4),
    _long("grpc-compression-algorithm", "none", 4),
    _long("enable-mpi", group=4, refused="run one tester for each model, or `alipes loadtest` with several targets"),
    _long("trace-file", "path", 4, refused=_TRACE),
    _long("trace-level", "string", 4, refused=_TRACE),
    _long("trace-rate", "number", 4, refused=_TRACE),
    _long("trace-count", "number", 4, refused=_TRACE),
    _long("log-frequency", "number", 4, refused=_TRACE),
    _long("collect-metrics", group=4),
    _long("metrics-url", "url", 4),
    _long("metrics-interval", "msec", 4),
)

BY_LONG: Final = {option.long: option for option in OPTIONS if option.long}
BY_SHORT: Final = {option.short: option for option in OPTIONS if option.short}
