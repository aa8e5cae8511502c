"""The options of perf_analyzer, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["BY_LONG", "BY_SHORT", "C_API", "GROUPS", "LANGUAGE_MODELS", "OPTIONS", "OTHER_METHODS", "Option"]

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


LANGUAGE_MODELS: Final = "language models are not supported"
C_API: Final = "no server is loaded into this process: start one, and give its address with -u"
OTHER_METHODS: Final = "methods of other gRPC services are not supported"

_GENERAL: Final = (
    _long("version", "", "print the version"),
    _long("help", "", "print this help"),
    _short("m", "model", "model name", "the model to measure"),
    _short("x", "model-version", "model version", "its version; by default the server chooses"),
    _long(
        "bls-composing-models",
        "string",
        "models that the model calls, as name:version with commas between; the report shows them, too",
    ),
    _long(
        "model-signature-name",
        "model signature name",
        "with --service-kind tfserving: the signature to call; serving_default by default",
    ),
    _long(
        "service-kind",
        "triton|tfserving|torchserve|kserve_v1|http",
        "the protocol of the server; triton is any server of the V2 protocol, and the default",
    ),
    _long("endpoint", "path", "with --service-kind http: the path that requests are posted to"),
    _refused("grpc-method", "package.service/method", OTHER_METHODS, 0),
    _refused("proto", "path", OTHER_METHODS, 0),
    _short("v", "verbose", "", "print each window, and the client's time in more parts"),
)
_MEASUREMENT: Final = (
    _long(
        "async",
        "",
        "accept a level whose rate is stable, even if its latency is not; the default with streams and sequences",
        1,
        "a",
    ),
    _long("sync", "", "accept a level only if both its rate and its latency are stable; not with --streaming", 1),
    _long("measurement-interval", "msec", "length of a window; 5000 by default", 1, "p"),
    _long(
        "measurement-mode",
        "time_windows|count_windows",
        "end a window after --measurement-interval, or after --measurement-request-count; time_windows by default",
        1,
    ),
    _long(
        "measurement-request-count",
        "number of requests",
        "with count_windows: the least number of requests in a window; 50 by default",
        1,
    ),
    _long(
        "request-count", "number of requests", "measure one window of so many requests, whether it is stable or not", 1
    ),
    _long("warmup-request-count", "number of requests", "requests to send first, which are not counted", 1),
    _long(
        "concurrency-range",
        "start:end:step",
        "numbers of requests in flight, a level each; with an end of 0, levels follow until one is above -l",
        1,
    ),
    _long(
        "periodic-concurrency-range",
        "start:end:step",
        "send start requests, then step more after each --request-period, until end requests were sent",
        1,
    ),
    _long(
        "request-period",
        "number of responses",
        "responses that each of the newest requests has before further requests are sent; 10 by default",
        1,
    ),
    _refused("session-concurrency", "number of sessions", LANGUAGE_MODELS, 1),
    _refused(
        "fixed-schedule",
        "",
        "only data for language models has times: write the times to a file for --request-intervals",
        1,
    ),
    _long("request-rate-range", "start:end:step", "numbers of requests per second, a level each", 1),
    _long("request-distribution", "poisson|constant", "arrive at random, or evenly; constant by default", 1),
    _long(
        "request-intervals",
        "path",
        "a file with the microseconds before each request; after the last line it starts over",
        1,
    ),
    _long("serial-sequences", "", "no effect: a sequence never has more than one request in flight", 1),
    _long("binary-search", "", "halve the range until the highest level within -l is found", 1),
    _long("num-of-sequences", "number of sequences", "sequences in flight at a request rate; 4 by default", 1),
    _long("latency-threshold", "msec", "the highest latency: a level above it ends the search", 1, "l"),
    _long(
        "max-threads",
        "number of threads",
        "most threads that send requests; 16 by default, and never more than two or, if that is more, a fourth of the "
        "processors",
        1,
    ),
    _long(
        "stability-percentage",
        "percentage",
        "a level is stable if its last three windows differ by no more than this; 10 by default",
        1,
        "s",
    ),
    _long("max-trials", "number of windows", "most windows of a level; 10 by default", 1, "r"),
    _long("percentile", "percentile", "the latency that has to be stable; the mean by default", 1),
    _old("t", "threads", "number of concurrent requests", "use --concurrency-range"),
    _old("c", "most-concurrency", "maximum concurrency", "use --concurrency-range"),
    _old("d", "dynamic-concurrency", "", "use --concurrency-range"),
)
_DATA: Final = (
    _short("b", "batch", "batch size", "rows of each request; 1 by default", 2),
    _long("input-data", "zero|random|path", "send zeros, random values, or the values of JSON files or of a folder", 2),
    _long(
        "shared-memory",
        "system|cuda|none",
        "put tensors into memory that the server maps: of the system, or of the first GPU",
        2,
    ),
    _long(
        "output-shared-memory-size",
        "bytes",
        "shared memory for each row of an output whose size is unknown; 102400 by default",
        2,
    ),
    _long(
        "shape",
        "name:shape",
        "shape of an input whose shape the model leaves open, such as image:3,224,224; may be repeated",
        2,
    ),
    _long("sequence-length", "length", "mean number of requests in a sequence; 20 by default", 2),
    _long(
        "sequence-length-variation",
        "percentage",
        "how far the length of a sequence may differ from the mean; 20 by default",
        2,
    ),
    _long("sequence-id-range", "start:end", "correlation ids of sequences; from 1 by default", 2),
    _long("string-length", "length", "characters in each random text; 128 by default", 2),
    _long("string-data", "string", "send this text instead of random texts", 2),
    _long("input-tensor-format", "binary|json", "form of tensors in requests over HTTP; binary by default", 2),
    _long("output-tensor-format", "binary|json", "form of tensors in responses over HTTP; binary by default", 2),
    _long(
        "request-parameter",
        "name:value:type",
        "a parameter of each request, of type bool, int, uint, double or string; may be repeated",
        2,
    ),
    _old("z", "zero", "", "use --input-data=zero", 2),
    Option("data-directory", "use --input-data", "data-directory", "", "path", 2, is_old=True),
)
_SERVER: Final = (
    _short("u", "url", "host:port", "address of the server; localhost:8000 by default, localhost:8001 over gRPC", 3),
    _short("i", "protocol", "http|grpc", "http by default", 3),
    _long("ssl-grpc-use-ssl", "", "encrypt connections", 3),
    _long("ssl-grpc-root-certifications-file", "path", "certificates of the authorities to trust", 3),
    _long("ssl-grpc-private-key-file", "path", "the client's key", 3),
    _long("ssl-grpc-certificate-chain-file", "path", "the client's certificate", 3),
    _long(
        "ssl-https-verify-peer",
        "1",
        "0 is refused: name the authority to trust with --ssl-https-ca-certificates-file",
        3,
    ),
    _long("ssl-https-verify-host", "2", "0 and 1 are refused", 3),
    _long("ssl-https-ca-certificates-file", "path", "certificates of the authorities to trust", 3),
    _long("ssl-https-client-certificate-file", "path", "the client's certificate", 3),
    _long("ssl-https-client-certificate-type", "PEM", "DER is refused", 3),
    _long("ssl-https-private-key-file", "path", "the client's key", 3),
    _long("ssl-https-private-key-type", "PEM", "DER is refused", 3),
    _refused("triton-server-directory", "path", C_API, 3),
    _refused("model-repository", "path", C_API, 3),
)
_OTHER: Final = (
    _short("f", "csv", "path", "write a table of the stable levels, as CSV", 4),
    _long("verbose-csv", "", "with -f: add columns to the table", 4),
    _long("profile-export-file", "path", "write every request, as JSON", 4),
    _short("H", "header", "name:value", "a header of each request; may be repeated", 4),
    _long("streaming", "", "send requests over gRPC streams", 4),
    _long(
        "grpc-compression-algorithm", "none|gzip|deflate", "compress requests, once, before the measurement starts", 4
    ),
    _refused(
        "enable-mpi",
        "",
        "start one `alipes perf_analyzer` for each model, or one `alipes loadtest` with several targets",
        4,
    ),
    _long(
        "trace-file",
        "path",
        "the file that the server writes traces to; this flag and the next four change the server's settings, and "
        "they stay changed",
        4,
    ),
    _long("trace-level", "OFF|TIMESTAMPS|TENSORS", "what the server traces; may be repeated", 4),
    _long("trace-rate", "number", "trace one request in so many", 4),
    _long("trace-count", "number", "how many requests to trace; -1 for no limit", 4),
    _long("log-frequency", "number", "traces in each file; 0 for one file", 4),
    _long("collect-metrics", "", "report the metrics of the server's GPUs", 4),
    _long("metrics-url", "url", "address of these metrics; localhost:8002/metrics by default", 4),
    _long("metrics-interval", "msec", "time between two readings of the metrics; 1000 by default", 4),
)

OPTIONS: Final = (*_GENERAL, *_MEASUREMENT, *_DATA, *_SERVER, *_OTHER)

BY_LONG: Final = {option.long: option for option in OPTIONS if option.long}
BY_SHORT: Final = {option.short: option for option in OPTIONS if option.short}
