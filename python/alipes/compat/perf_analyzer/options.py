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
        about: What it does, or why it is not served.
        long: With two dashes; empty where there is none.
        short: With one dash; empty where there is none.
        value: What its value is; empty for a switch.
        group: Number of its heading.
        is_served: Whether it does anything here; otherwise it is refused.
        is_old: Whether another option took its place.
    """

    name: str
    about: str
    long: str = ""
    short: str = ""
    value: str = ""
    group: int = 0
    is_served: bool = True
    is_old: bool = False

    @property
    def shown(self) -> str:
        """Its names and its value, for the usage."""
        if not self.long:
            names = f"-{self.short}"
        else:
            names = f"--{self.long} (-{self.short})" if self.short else f"--{self.long}"
        return f"{names} <{self.value}>" if self.value else names


def _long(name: str, value: str, about: str, group: int = 0, short: str = "") -> Option:
    return Option(name, about, name, short, value, group)


def _short(letter: str, name: str, value: str, about: str, group: int = 0) -> Option:
    return Option(name, about, "", letter, value, group)


def _old(letter: str, name: str, value: str, about: str, group: int = 1) -> Option:
    return Option(name, about, "", letter, value, group, is_old=True)


def _refused(name: str, value: str, about: str, group: int) -> Option:
    return Option(name, about, name, "", value, group, is_served=False)


_OPENAI: Final = "language models are not served"
_C_API: Final = "there is no C API of a server to load"
_DYNAMIC: Final = "calls of other gRPC services are not served"

_GENERAL: Final = (
    _long("version", "", "print the version"),
    _long("help", "", "print this"),
    _short("m", "model", "model name", "what is measured"),
    _short("x", "model-version", "model version", "its version; the latest by default"),
    _long("bls-composing-models", "string", "models that it calls, name:version with commas between, to report too"),
    _long("model-signature-name", "model signature name", "of --service-kind tfserving; serving_default"),
    _long(
        "service-kind", "triton|tfserving|torchserve|kserve_v1|http", "what the server speaks; triton is any V2 server"
    ),
    _long("endpoint", "path", "of --service-kind http: where documents are posted"),
    _refused("grpc-method", "package.service/method", _DYNAMIC, 0),
    _refused("proto", "path", _DYNAMIC, 0),
    _short("v", "verbose", "", "show each window, and more of the client's time"),
)
_MEASUREMENT: Final = (
    _long("async", "", "accept a level whose rates agree, although its latencies do not", 1, "a"),
    _long("sync", "", "latencies have to agree as well, also of streams and sequences", 1),
    _long("measurement-interval", "msec", "length of a window; 5000 by default", 1, "p"),
    _long("measurement-mode", "time_windows|count_windows", "windows of a length, or of a number of requests", 1),
    _long("measurement-request-count", "number of requests", "least requests of a window that counts; 50", 1),
    _long("request-count", "number of requests", "send so many in a single window, and look at no stability", 1),
    _long("warmup-request-count", "number of requests", "sent first, and counted for nothing", 1),
    _long("concurrency-range", "start:end:step", "levels of requests under way; an end of 0 rises to -l", 1),
    _long(
        "periodic-concurrency-range", "start:end:step", "start requests, and step more each --request-period, to end", 1
    ),
    _long("request-period", "number of responses", "of each of the last requests, before further ones begin; 10", 1),
    _refused("session-concurrency", "number of sessions", _OPENAI, 1),
    _refused("fixed-schedule", "", "only data of language models hold times: write them to --request-intervals", 1),
    _long("request-rate-range", "start:end:step", "levels of requests per second", 1),
    _long("request-distribution", "poisson|constant", "random arrivals, or even ones, which is the default", 1),
    _long("request-intervals", "path", "a file with microseconds in front of each request, over and over", 1),
    _long("serial-sequences", "", "accepted: a sequence has one request under way in any case", 1),
    _long("binary-search", "", "halve the range until the latency is within -l", 1),
    _long("num-of-sequences", "number of sequences", "under way at a time, at a rate; 4", 1),
    _long("latency-threshold", "msec", "levels above it end the search", 1, "l"),
    _long("max-threads", "number of threads", "of the tester, which takes a fourth of the processors at most", 1),
    _long("stability-percentage", "percentage", "how far three windows in a row may differ; 10", 1, "s"),
    _long("max-trials", "number of windows", "most windows of a level; 10", 1, "r"),
    _long("percentile", "percentile", "the latency that has to settle; the mean by default", 1),
    _old("t", "threads", "number of concurrent requests", "use --concurrency-range"),
    _old("c", "most-concurrency", "maximum concurrency", "use --concurrency-range"),
    _old("d", "dynamic-concurrency", "", "use --concurrency-range"),
)
_DATA: Final = (
    _short("b", "batch", "batch size", "rows of a request", 2),
    _long("input-data", "zero|random|path", "values, or where they are: JSON files, or a folder", 2),
    _long("shared-memory", "system|cuda|none", "tensors lie in memory that the server maps, or on the first GPU", 2),
    _long("output-shared-memory-size", "bytes", "for each output and row of an unknown size; 102400", 2),
    _long("shape", "name:shape", "sizes that a model leaves open, such as image:3,224,224; any number", 2),
    _long("sequence-length", "length", "mean number of requests; 20", 2),
    _long("sequence-length-variation", "percentage", "how far lengths differ from it; 20", 2),
    _long("sequence-id-range", "start:end", "correlation ids; from 1 by default", 2),
    _long("string-length", "length", "characters of random text; 128", 2),
    _long("string-data", "string", "in the place of random text", 2),
    _long("input-tensor-format", "binary|json", "how tensors are sent over HTTP", 2),
    _long("output-tensor-format", "binary|json", "how they come back over HTTP", 2),
    _long("request-parameter", "name:value:type", "of each request; bool, int, uint, double or string", 2),
    _old("z", "zero", "", "use --input-data=zero", 2),
    Option("data-directory", "use --input-data", "data-directory", "", "path", 2, is_old=True),
)
_SERVER: Final = (
    _short("u", "url", "host:port", "localhost:8000 by default, localhost:8001 over gRPC", 3),
    _short("i", "protocol", "http|grpc", "http by default", 3),
    _long("ssl-grpc-use-ssl", "", "encrypt", 3),
    _long("ssl-grpc-root-certifications-file", "path", "the authorities that are trusted", 3),
    _long("ssl-grpc-private-key-file", "path", "the client's key", 3),
    _long("ssl-grpc-certificate-chain-file", "path", "the client's certificate", 3),
    _long("ssl-https-verify-peer", "1", "0 is refused: name the authority to trust", 3),
    _long("ssl-https-verify-host", "2", "0 and 1 are refused", 3),
    _long("ssl-https-ca-certificates-file", "path", "the authorities that are trusted", 3),
    _long("ssl-https-client-certificate-file", "path", "the client's certificate", 3),
    _long("ssl-https-client-certificate-type", "PEM", "DER is refused", 3),
    _long("ssl-https-private-key-file", "path", "the client's key", 3),
    _long("ssl-https-private-key-type", "PEM", "DER is refused", 3),
    _refused("triton-server-directory", "path", _C_API, 3),
    _refused("model-repository", "path", _C_API, 3),
)
_OTHER: Final = (
    _short("f", "csv", "path", "write a table of the levels that settled", 4),
    _long("verbose-csv", "", "with more columns", 4),
    _long("profile-export-file", "path", "write every request, as JSON", 4),
    _short("H", "header", "name:value", "of each request; any number", 4),
    _long("streaming", "", "requests go over streams of gRPC", 4),
    _long(
        "grpc-compression-algorithm", "none|gzip|deflate", "how requests are compressed, once, before they are sent", 4
    ),
    _refused("enable-mpi", "", "run one tester for each model, or `alipes loadtest` with several targets", 4),
    _long("trace-file", "path", "where the server writes traces; this and the next four are set there, and stay", 4),
    _long("trace-level", "OFF|TIMESTAMPS|TENSORS", "what it traces; any number", 4),
    _long("trace-rate", "number", "one request in so many", 4),
    _long("trace-count", "number", "how many requests; -1 for any number", 4),
    _long("log-frequency", "number", "traces in a file; 0 for one file", 4),
    _long("collect-metrics", "", "look at the metrics of the server's GPUs", 4),
    _long("metrics-url", "url", "where they are; localhost:8002/metrics", 4),
    _long("metrics-interval", "msec", "between two looks; 1000", 4),
)

OPTIONS: Final = (*_GENERAL, *_MEASUREMENT, *_DATA, *_SERVER, *_OTHER)

BY_LONG: Final = {option.long: option for option in OPTIONS if option.long}
BY_SHORT: Final = {option.short: option for option in OPTIONS if option.short}
