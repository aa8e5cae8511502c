"""The panels of the dashboard: what each asks Prometheus, and how it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["ROWS", "Panel", "Query", "Row"]

_MODELS: Final = 'job=~"$job",instance=~"$instance",model=~"$model"'
_SERVERS: Final = 'job=~"$job",instance=~"$instance"'


@dataclass(frozen=True)
class Query:
    """A question to Prometheus.

    Attributes:
        expression: In PromQL, with the variables of the dashboard.
        legend: The name of each line, in Grafana's form.
    """

    expression: str
    legend: str


@dataclass(frozen=True)
class Panel:
    """A picture.

    Attributes:
        title: What it shows.
        text: What to read from it.
        unit: Grafana's name of the unit.
        queries: What is drawn.
        is_stacked: Whether the lines are parts of a whole.
    """

    title: str
    text: str
    unit: str
    queries: tuple[Query, ...]
    is_stacked: bool = False


@dataclass(frozen=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


def _rate(metric: str, by: str, labels: str = _MODELS) -> str:
    return f"sum by ({by}) (rate({metric}{{{labels}}}[$__rate_interval]))"


def _quantile(share: float, metric: str) -> str:
    return f"histogram_quantile({share}, {_rate(f'{metric}_bucket', 'le, model')})"


def _stage(name: str) -> Query:
    return Query(
        f"sum(rate(nv_inference_{name}_duration_us{{{_MODELS}}}[$__rate_interval]))"
        f" / sum(rate(nv_inference_request_success{{{_MODELS}}}[$__rate_interval])) / 1e6",
        name.replace("_", " "),
    )


_REQUESTS: Final = (
    Panel(
        "Requests",
        "Answered requests a second.",
        "reqps",
        (Query(_rate("nv_inference_request_success", "model"), "{{model}}"),),
    ),
    Panel(
        "Failures",
        "Failed requests a second, by reason: REJECTED found no room in the queue, CANCELED were given up by callers.",
        "reqps",
        (Query(_rate("nv_inference_request_failure", "model, reason"), "{{model}} {{reason}}"),),
    ),
    Panel(
        "Latency",
        "Seconds from arrival to response: of half of the requests, and of 99 of 100.",
        "s",
        (
            Query(_quantile(0.5, "alipes_inference_request_seconds"), "{{model}} p50"),
            Query(_quantile(0.99, "alipes_inference_request_seconds"), "{{model}} p99"),
        ),
    ),
    Panel(
        "Wait",
        "Seconds from arrival to execution, of 99 of 100 requests. Where it is most of the latency, add instances.",
        "s",
        (Query(_quantile(0.99, "alipes_inference_queue_seconds"), "{{model}} p99"),),
    ),
    Panel(
        "Waiting requests",
        "Requests that wait now.",
        "short",
        (Query(f"sum by (model) (nv_inference_pending_request_count{{{_MODELS}}})", "{{model}}"),),
    ),
    Panel(
        "Where the time goes",
        "Mean seconds of a request in each stage.",
        "s",
        tuple(_stage(name) for name in ("queue", "compute_input", "compute_infer", "compute_output")),
        is_stacked=True,
    ),
    Panel(
        "Rows of a batch",
        "Mean rows of an execution: 1 means that nothing is batched.",
        "short",
        (
            Query(
                f"{_rate('nv_inference_count', 'model')} / {_rate('nv_inference_exec_count', 'model')}",
                "{{model}}",
            ),
        ),
    ),
    Panel(
        "Inferences",
        "Executed rows a second.",
        "short",
        (Query(_rate("nv_inference_count", "model"), "{{model}}"),),
    ),
)

_MACHINES: Final = (
    Panel(
        "Servers",
        "Servers that answer Prometheus, by version.",
        "short",
        (Query(f"count by (version) (alipes_build_info{{{_SERVERS}}})", "{{version}}"),),
    ),
    Panel(
        "Processors",
        "Share of all processors of the machine in use.",
        "percentunit",
        (Query(f"nv_cpu_utilization{{{_SERVERS}}}", "{{instance}}"),),
    ),
    Panel(
        "Memory",
        "Memory of the machine in use.",
        "percentunit",
        (
            Query(
                f"nv_cpu_memory_used_bytes{{{_SERVERS}}} / nv_cpu_memory_total_bytes{{{_SERVERS}}}",
                "{{instance}}",
            ),
        ),
    ),
    Panel(
        "Load of models",
        "Seconds that each version took to load.",
        "s",
        (Query(f"max by (model, version) (nv_model_load_duration_secs{{{_MODELS}}})", "{{model}} {{version}}"),),
    ),
)

_GPUS: Final = (
    Panel(
        "GPUs",
        "Share of the time in which each GPU computed.",
        "percentunit",
        (Query(f"nv_gpu_utilization{{{_SERVERS}}}", "{{instance}} {{gpu_uuid}}"),),
    ),
    Panel(
        "Memory of GPUs",
        "Memory of each GPU in use, by all programs.",
        "percentunit",
        (
            Query(
                f"nv_gpu_memory_used_bytes{{{_SERVERS}}} / nv_gpu_memory_total_bytes{{{_SERVERS}}}",
                "{{instance}} {{gpu_uuid}}",
            ),
        ),
    ),
)

_CACHE: Final = (
    Panel(
        "Answers from the cache",
        "Share of the requests that were answered from it.",
        "percentunit",
        (
            Query(
                f"{_rate('nv_cache_num_hits_per_model', 'model')} / ({_rate('nv_cache_num_hits_per_model', 'model')}"
                f" + {_rate('nv_cache_num_misses_per_model', 'model')})",
                "{{model}}",
            ),
        ),
    ),
    Panel(
        "Memory of the cache",
        "Share of its memory in use.",
        "percentunit",
        (
            Query(
                f"alipes_response_cache_bytes{{{_SERVERS}}} / alipes_response_cache_limit_bytes{{{_SERVERS}}}",
                "{{instance}}",
            ),
        ),
    ),
)

ROWS: Final[Sequence[Row]] = (
    Row("Requests", _REQUESTS),
    Row("Machines", _MACHINES),
    Row("GPUs", _GPUS),
    Row("Response cache", _CACHE),
)
