"""Options become settings; what cannot go together is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, cast

from alipes.compat.perf_analyzer.failures import Exit, Failed, OptionFailed
from alipes.compat.perf_analyzer.load_options import read_load
from alipes.compat.perf_analyzer.parser import Argument
from alipes.compat.perf_analyzer.settings import Measuring, Reports, SentData, Sequences, Settings, Target
from alipes.compat.perf_analyzer.values import (
    choice,
    existing_file,
    integer,
    named_parameter,
    named_shape,
    parts,
)
from alipes.compat.perf_analyzer.words import Words

__all__ = ["read_settings"]

SERVICES: Final = ("triton", "torchserve", "kserve_v1", "http")
_REFUSED_SERVICES: Final = {
    "tfserving": "its gRPC protocol is not spoken, and its REST API is --service-kind kserve_v1",
    "openai": "language models are not served",
    "triton_c_api": "there is no C API of a server to load",
    "dynamic_grpc": "calls of other gRPC services are not served",
}
_SERVICES_WANTED: Final = "The available options are 'triton', 'torchserve', 'kserve_v1', or 'http'."
_PORTS: Final = {"http": "localhost:8000", "grpc": "localhost:8001"}


def read_settings(arguments: Sequence[Argument]) -> Settings:
    """The settings of a command line.

    Raises:
        OptionFailed: If a value cannot be read, or options do not go together.
        Failed: If an option is not served here.
    """
    words = Words(arguments)
    for argument in arguments:
        if not argument.option.is_served:
            raise Failed(f"Error: {argument.written} is not served: {argument.option.about}", Exit.OPTION)
    settings = Settings(
        _target(words),
        read_load(words),
        _measuring(words),
        _data(words),
        _sequences(words),
        _reports(words),
    )
    _check(settings, words)
    return settings


def _target(words: Words) -> Target:
    kind = words.read("service-kind", _service, "triton")
    protocol: Literal["http", "grpc"] = words.read("protocol", _protocol, "http")
    model = words.text("model")
    if not model and kind != "http":
        raise OptionFailed("Failed to parse -m (model name). The value must be specified.")
    url = words.text("url") or _PORTS[protocol]
    composing = tuple(_versioned(text) for text in words.text("bls-composing-models").split(",") if text)
    return Target(
        model,
        words.text("model-version"),
        kind,
        url,
        protocol,
        dict(_header(argument) for argument in words.all("header")),
        words.text("endpoint"),
        composing,
        _encryption(words, protocol),
    )


def _service(argument: Argument) -> str:
    if argument.value in _REFUSED_SERVICES:
        raise Failed(
            f"Error: {argument.written} {argument.value} is not served: {_REFUSED_SERVICES[argument.value]}",
            Exit.OPTION,
        )
    return choice(argument, SERVICES, _SERVICES_WANTED)


def _protocol(argument: Argument) -> Literal["http", "grpc"]:
    protocol = argument.value.lower()
    if protocol not in _PORTS:
        raise OptionFailed("Failed to parse -i (protocol). The value should be either HTTP or gRPC.")
    return cast(Literal["http", "grpc"], protocol)


def _header(argument: Argument) -> tuple[str, str]:
    name, colon, value = argument.value.partition(":")
    if not colon or not name.strip():
        raise OptionFailed("Failed to parse -H. The value does not match <name:value>.")
    return name.strip(), value.strip()


def _versioned(text: str) -> tuple[str, str]:
    name, _, version = text.strip().partition(":")
    return name, version


def _encryption(words: Words, protocol: str) -> dict[str, Path] | None:
    names = {
        "grpc": ("ssl-grpc-root-certifications-file", "ssl-grpc-certificate-chain-file", "ssl-grpc-private-key-file"),
        "http": (
            "ssl-https-ca-certificates-file",
            "ssl-https-client-certificate-file",
            "ssl-https-private-key-file",
        ),
    }
    files = {
        role: existing_file(argument)
        for role, name in zip(("roots", "certificate", "key"), names[protocol], strict=True)
        if (argument := words.last(name)) is not None
    }
    for name, most in (("ssl-https-verify-peer", 1), ("ssl-https-verify-host", 2)):
        if (argument := words.last(name)) is not None:
            _verifying(argument, most)
    for name in ("ssl-https-client-certificate-type", "ssl-https-private-key-type"):
        if (argument := words.last(name)) is not None and (
            choice(argument, ("PEM", "DER"), "The available options are 'PEM' or 'DER'.") == "DER"
        ):
            raise Failed(f"Error: {argument.written} DER is not served: files are PEM", Exit.OPTION)
    wanted = words.has("ssl-grpc-use-ssl") if protocol == "grpc" else words.text("url").startswith("https://")
    return files if wanted or files else None


def _verifying(argument: Argument, most: int) -> None:
    choices = "either 0 or 1" if most == 1 else "either 0, 1, or 2"
    if not 0 <= integer(argument) <= most:
        raise OptionFailed(f"Failed to parse {argument.written}. The value must be {choices}.")
    if integer(argument) < most:
        raise Failed(f"Error: {argument.written} {argument.value} is not served: name the roots to trust", Exit.OPTION)


def _measuring(words: Words) -> Measuring:
    plain = Measuring()
    percentile = words.read("percentile", _percentile, None)
    mode = words.read(
        "measurement-mode",
        lambda argument: choice(
            argument,
            ("time_windows", "count_windows"),
            "The available options are 'time_windows' or 'count_windows'.",
        ),
        "time_windows",
    )
    return Measuring(
        words.whole("measurement-interval", plain.interval_ms, 1, "--measurement-interval (-p)", "> 0 msec."),
        mode == "count_windows",
        words.whole("measurement-request-count", plain.window_requests, 1),
        words.whole("request-count", plain.requests, 0, wanted="> 0."),
        words.whole("warmup-request-count", plain.warm_up_requests, 0),
        words.real("stability-percentage", plain.stability_percent, "--stability-percentage (-s)"),
        words.whole("max-trials", plain.most_windows, 1, "--max-trials (-r)"),
        percentile,
    )


def _percentile(argument: Argument) -> int | None:
    try:
        value = int(argument.value)
    except ValueError:
        value = 0
    if value != -1 and not 0 < value < 100:  # percent
        raise OptionFailed("Failed to parse --percentile. The value must be -1 for not reporting or in range (0, 100).")
    return None if value == -1 else value


def _data(words: Words) -> SentData:
    plain = SentData()
    kinds = ("binary", "json")
    wanted = "The available options are 'binary' or 'json'."
    shared = words.read("shared-memory", _memory, "none")
    return SentData(
        words.whole("batch", plain.batch, 1, "-b (batch size)"),
        _source(words),
        dict(named_shape(argument) for argument in words.all("shape")),
        words.whole("string-length", plain.text_length, 1, wanted="> 0"),
        words.text("string-data") if words.has("string-data") else None,
        words.read("input-tensor-format", lambda argument: choice(argument, kinds, wanted), "binary") == "json",
        words.read("output-tensor-format", lambda argument: choice(argument, kinds, wanted), "binary") == "json",
        dict(named_parameter(argument) for argument in words.all("request-parameter")),
        shared == "system",
        words.whole("output-shared-memory-size", plain.output_bytes, 0),
    )


def _memory(argument: Argument) -> str:
    wanted = "The available options are 'system', 'cuda', or 'none'."
    kind = choice(argument, ("system", "cuda", "none"), wanted)
    if kind == "cuda":
        raise Failed(f"Error: {argument.written} cuda is not served: use system", Exit.OPTION)
    return kind


def _source(words: Words) -> Literal["random", "zero"] | Sequence[Path]:
    written = words.all("input-data", "data-directory")
    paths: list[Path] = []
    named: Literal["random", "zero"] = "zero" if words.has("zero") else "random"
    for argument in written:
        path = Path(argument.value)
        if argument.value in ("random", "zero"):
            named = cast(Literal["random", "zero"], argument.value)
            paths.clear()
        elif path.exists():
            paths.append(path)
        else:
            raise OptionFailed(
                f"Failed to parse --input-data. Unsupported type provided: '{argument.value}'. "
                "The available options are 'zero', 'random', path to a directory, or a json file."
            )
    return paths or named


def _sequences(words: Words) -> Sequences:
    plain = Sequences()
    first, last = plain.first_id, plain.last_id
    if (argument := words.last("sequence-id-range")) is not None:
        first, last = _ids(argument)
    length = words.whole("sequence-length", plain.length, -(2**31))
    return Sequences(
        length if length > 0 else plain.length,
        words.real("sequence-length-variation", plain.variation_percent, wanted=">= 0.0."),
        first,
        last,
        words.whole("num-of-sequences", plain.count, 1),
    )


def _ids(argument: Argument) -> tuple[int, int | None]:
    values = parts(argument)
    if len(values) > 2:  # a start and an end
        raise OptionFailed(f"Failed to parse {argument.written}. The value does not match <start:end>.")
    if min(values) < 0:
        raise OptionFailed(f"Failed to parse {argument.written}. The range values must be >= 0.")
    first, last = (*values, None)[:2]
    if last is not None and last <= (first or 0):
        raise OptionFailed(f"Failed to parse {argument.written}. The 'end' value must be greater than 'start' value.")
    return first or 1, last


def _reports(words: Words) -> Reports:
    plain = Reports()
    collects = words.has("collect-metrics")
    for name in ("metrics-url", "metrics-interval"):
        if words.has(name) and not collects:
            words.whole("metrics-interval", 1, 1, wanted="> 0 msecs.")
            raise OptionFailed(f"Must specify --collect-metrics when using the --{name} option.")
    profile = words.last("profile-export-file")
    if profile is not None and Path(profile.value).exists():
        raise OptionFailed("Failed to parse --profile-export-file. Path must not already exist.")
    return Reports(
        Path(words.text("csv")) if words.has("csv") else None,
        words.has("verbose-csv"),
        None if profile is None else Path(profile.value),
        (words.text("metrics-url") or "localhost:8002/metrics") if collects else None,
        words.whole("metrics-interval", plain.metrics_interval_ms, 1, wanted="> 0 msecs."),
        len(words.all("verbose")),
    )


def _check(settings: Settings, words: Words) -> None:
    """What does not go together."""
    over_grpc = settings.target.protocol == "grpc"
    compression = words.read(
        "grpc-compression-algorithm",
        lambda argument: choice(
            argument,
            ("gzip", "deflate", "none"),
            "The available options are 'gzip', 'deflate', or 'none'.",
        ),
        "none",
    )
    if settings.load.streaming and not over_grpc:
        raise OptionFailed("Streaming is only allowed with gRPC protocol.")
    if compression != "none":
        if not over_grpc:
            raise OptionFailed("Using compression algorithm is only allowed with gRPC protocol.")
        raise Failed(
            f"Error: --grpc-compression-algorithm {compression} is not served: requests are not compressed", Exit.OPTION
        )
    if settings.data.parameters and not over_grpc and settings.target.kind != "triton":
        raise OptionFailed("The --request-parameter option is currently only supported by gRPC protocol.")
    if settings.reports.metrics_url is not None and settings.target.kind != "triton":
        raise OptionFailed("Server-side metric collection is only supported with Triton client backend.")
    _check_counts(settings)
    _check_service(settings)


def _check_counts(settings: Settings) -> None:
    load, measuring = settings.load, settings.measuring
    several = load.is_range and load.end != load.start
    values = "concurrency" if load.mode == "concurrency" else "request rate"
    for name, count in (("warmup-request-count", measuring.warm_up_requests), ("request-count", measuring.requests)):
        if count and several:
            raise OptionFailed(f"--{name} not supported with multiple {values} values in one run")
    if measuring.requests and load.mode != "intervals" and measuring.requests < load.start:
        raise OptionFailed(f"--request-count can not be less than {values}")


def _check_service(settings: Settings) -> None:
    target = settings.target
    if target.kind in ("torchserve", "http") and isinstance(settings.data.source, str):
        raise OptionFailed(f"--input-data should be provided with a json file with input data for {target.kind}.")
    if target.kind in ("torchserve", "kserve_v1", "http") and target.protocol != "http":
        raise OptionFailed(f"--service-kind {target.kind} is asked over HTTP: leave out -i grpc.")
    if target.kind == "http" and not target.endpoint:
        raise OptionFailed('Must supply --endpoint for the service kind http. For example, "predict".')
