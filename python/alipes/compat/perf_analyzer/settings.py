"""What a run measures, and how: the options of a command line, read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

__all__ = ["Load", "Measuring", "Mode", "Reports", "SentData", "Sequences", "Settings", "Target"]

Mode: TypeAlias = Literal["concurrency", "request_rate", "intervals", "periodic"]


@dataclass(frozen=True, slots=True)
class Target:
    """Who is asked.

    Attributes:
        model: Name of the model.
        version: Its version; the latest where it is empty.
        kind: Of the service: `triton`, `tfserving`, `kserve_v1`, `torchserve` or `http`.
        url: Host and port.
        protocol: `http` or `grpc`.
        headers: Of each request.
        endpoint: Path of the service `http`.
        composing: Models with their versions that a model calls, beside those of an ensemble.
        signature: Of a model of TensorFlow Serving.
        compression: Of requests over gRPC: `gzip`, `deflate`, or none where it is empty.
        encryption: The files of TLS by role, where connections are encrypted: `roots`, `certificate`, `key`.
    """

    model: str
    version: str = ""
    kind: str = "triton"
    url: str = ""
    protocol: Literal["http", "grpc"] = "http"
    headers: Mapping[str, str] = field(default_factory=dict)
    endpoint: str = ""
    composing: Sequence[tuple[str, str]] = ()
    signature: str = "serving_default"
    compression: str = ""
    encryption: Mapping[str, Path] | None = None

    @property
    def address(self) -> str:
        """For clients of ours."""
        if "://" in self.url:
            return self.url
        return f"{self.protocol}{'' if self.encryption is None else 's'}://{self.url}"


@dataclass(frozen=True, slots=True)
class Load:
    """The levels of load.

    Attributes:
        mode: What a level is: requests under way, requests per second, the intervals of a file, or, periodic, a run of
            requests that begin in waves.
        start: The first level.
        end: The last level; 0 goes on until the latency limit.
        step: Between levels.
        is_range: Whether an end was written.
        poisson: Random arrivals in place of even ones.
        intervals_s: Seconds in front of each request, over and over.
        binary_search: Halve the range until the latency limit is met, instead of each level.
        latency_limit_ms: Levels above it end the search; 0 for none.
        most_threads: Of the tester.
        is_async: What the settings say of calls; the engine's never block.
        streaming: Requests in streams of gRPC.
        in_flight: Most requests under way where a level is a rate; none leaves it to the engine.
        period: Periodic: responses of each request of a wave before the next wave begins.
    """

    mode: Mode = "concurrency"
    start: float = 1
    end: float = 1
    step: float = 1
    is_range: bool = False
    poisson: bool = False
    intervals_s: tuple[float, ...] = ()
    binary_search: bool = False
    latency_limit_ms: int = 0
    most_threads: int = 16
    is_async: bool | None = None
    streaming: bool = False
    in_flight: int | None = None
    period: int = 10


@dataclass(frozen=True, slots=True)
class Measuring:
    """How a level is measured.

    Attributes:
        interval_ms: Length of a window.
        counts: Windows of a number of requests in place of a length.
        window_requests: That number.
        requests: Send so many requests, in a single window; 0 for windows.
        warm_up_requests: Sent first, and counted for nothing.
        stability_percent: How far the last three windows may differ.
        most_windows: Of a level.
        percentile: The latency that has to settle; the mean by default.
    """

    interval_ms: int = 5000
    counts: bool = False
    window_requests: int = 50
    requests: int = 0
    warm_up_requests: int = 0
    stability_percent: float = 10.0
    most_windows: int = 10
    percentile: int | None = None


@dataclass(frozen=True, slots=True)
class SentData:
    """What is sent.

    Attributes:
        batch: Rows of a request.
        has_batch: Whether the command line names their number.
        source: `random`, `zero`, or files, or one folder.
        shapes: By input, for sizes that the model leaves open.
        text_length: Characters of random text.
        text: In place of random text.
        json_inputs: Send tensors as JSON, over HTTP.
        json_outputs: Get tensors as JSON, over HTTP.
        parameters: Of each request.
        shared_memory: Tensors lie in memory that the server maps: of the system, or of a GPU.
        output_bytes: Of shared memory for each output and row.
    """

    batch: int = 1
    has_batch: bool = False
    source: Literal["random", "zero"] | Sequence[Path] = "random"
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    text_length: int = 128
    text: str | None = None
    json_inputs: bool = False
    json_outputs: bool = False
    parameters: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    shared_memory: Literal["none", "system", "cuda"] = "none"
    output_bytes: int = 102_400


@dataclass(frozen=True, slots=True)
class Sequences:
    """Sequences of requests to a stateful model.

    Attributes:
        length: Mean number of requests.
        variation_percent: How far lengths differ from it.
        first_id: The first correlation id.
        last_id: Ids start anew there; none where they never do.
        count: Under way at a time, in an open loop.
        has_length: Whether the command line names the length: otherwise a stream of data is as long as it is.
    """

    length: int = 20
    variation_percent: float = 20.0
    first_id: int = 1
    last_id: int | None = None
    count: int = 4
    has_length: bool = False


@dataclass(frozen=True, slots=True)
class Reports:
    """What is written beside the text.

    Attributes:
        csv: A table of the levels.
        verbose_csv: With more columns.
        profile: Every request, as JSON.
        metrics_url: The metrics of the server, collected in each window; none by default.
        metrics_interval_ms: Between two looks.
        verbosity: Of the text: 0, 1 or 2.
    """

    csv: Path | None = None
    verbose_csv: bool = False
    profile: Path | None = None
    metrics_url: str | None = None
    metrics_interval_ms: int = 1000
    verbosity: int = 0


@dataclass(frozen=True, slots=True)
class Settings:
    """All of it; `trace` are settings of the server, by name, that are set before the run."""

    target: Target
    load: Load = field(default_factory=Load)
    measuring: Measuring = field(default_factory=Measuring)
    data: SentData = field(default_factory=SentData)
    sequences: Sequences = field(default_factory=Sequences)
    reports: Reports = field(default_factory=Reports)
    trace: Mapping[str, Sequence[str]] = field(default_factory=dict)
