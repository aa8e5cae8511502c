"""Model Analyzer's tables: the same files, columns and cells."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from alipes.config.schema import ModelConfig, enum_word
from alipes.tune.analyzer.options import FIGURE_OF_METRIC
from alipes.tune.knobs import CALLERS, RATE, ROWS
from alipes.tune.outcome import Outcome
from alipes.tune.results import Results

__all__ = ["Variants", "inference_table", "write_table"]

HEADERS: Final[Mapping[str, str]] = {
    "model_name": "Model",
    "batch_size": "Batch",
    "concurrency": "Concurrency",
    "request_rate": "Request Rate",
    "model_config_path": "Model Config Path",
    "instance_group": "Instance Group",
    "max_batch_size": "Max Batch Size",
    "satisfies_constraints": "Satisfies Constraints",
    "gpu_uuid": "GPU UUID",
    "perf_throughput": "Throughput (infer/sec)",
    "perf_latency": "p99 Latency (ms)",
    "perf_latency_avg": "Avg Latency (ms)",
    "perf_latency_p90": "p90 Latency (ms)",
    "perf_latency_p95": "p95 Latency (ms)",
    "perf_latency_p99": "p99 Latency (ms)",
    "perf_client_response_wait": "Response Wait Time (ms)",
    "perf_client_send_recv": "Client Send/Recv (ms)",
    "perf_server_queue": "Server Queue time (ms)",
    "perf_server_compute_input": "Server Compute Input time (ms)",
    "perf_server_compute_infer": "Server Compute Infer time (ms)",
    "perf_server_compute_output": "Server Compute Output time (ms)",
    "cpu_used_ram": "RAM Usage (MB)",
}
_DETAILS: Final[Mapping[str, Sequence[str]]] = {
    "perf_client_response_wait": ("wait_ms",),
    "perf_client_send_recv": ("send_ms", "receive_ms"),
    "perf_server_queue": ("queue_ms",),
    "perf_server_compute_input": ("compute_input_ms",),
    "perf_server_compute_infer": ("compute_infer_ms",),
    "perf_server_compute_output": ("compute_output_ms",),
}
GPU_FIELDS: Final = (
    "model_name", "gpu_uuid", "batch_size", "concurrency", "model_config_path", "instance_group",
    "satisfies_constraints",
)  # fmt: skip
SERVER_FIELDS: Final = ("model_name", "gpu_uuid")
"""Without GPUs the tables about them have these columns and no rows."""


@dataclass(frozen=True)
class Variants:
    """The names of configurations: `model_config_0` and so on, in the order of the trials.

    Attributes:
        names: By the key of a variant of one model.
        configs: By name.
    """

    names: Mapping[str, str]
    configs: Mapping[str, ModelConfig]


def inference_table(
    results: Results, model: str, fields: Sequence[str], variants: Variants, composing: Sequence[str] = ()
) -> list[list[str]]:
    """The rows of a model: those that keep the constraints first, each part with the best in front.

    Args:
        results: Of a search.
        model: The model that got requests.
        fields: Its names of columns; those that nothing is known of are left out.
        variants: The names of the configurations.
        composing: Models of an ensemble, whose configurations are shown instead.
    """
    known = known_fields(fields)
    return [[_cell(results, one, model, field, variants, composing) for field in known] for one in results.ranked]


def known_fields(fields: Sequence[str]) -> list[str]:
    """Those that a column can be made of."""
    return [field for field in fields if field in HEADERS or field.startswith(_PARAMETER)]


_PARAMETER: Final = "backend_parameter/"


def write_table(path: Path, fields: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Writes a table; its end is an empty line, as the original's is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([HEADERS.get(field, field) for field in known_fields(fields)])
        writer.writerows(rows)
        file.write("\n")


def _cell(
    results: Results, outcome: Outcome, model: str, field: str, variants: Variants, composing: Sequence[str]
) -> str:
    own = variants.names[variant_key(outcome, model)]
    names = [variants.names[variant_key(outcome, name)] for name in (composing or [model])]
    configs = [variants.configs[name] for name in names]
    values = outcome.point.of_model(model)
    if field.startswith(_PARAMETER):
        key = field.removeprefix(_PARAMETER)
        return configs[0].parameters[key].string_value if key in configs[0].parameters else "None"
    common = {
        "model_name": model,
        "batch_size": str(values.get(ROWS, 1)),
        "concurrency": str(values.get(CALLERS, "")),
        "request_rate": str(values.get(RATE, "")),
        "model_config_path": f"{own}: {', '.join(names)}" if composing else own,
        "instance_group": ",".join(map(instance_group_text, configs)),
        "max_batch_size": ",".join(str(config.max_batch_size) for config in configs),
        "satisfies_constraints": "Yes" if results.rank(outcome).compliance == 0 else "No",
    }
    return common[field] if field in common else _metric(outcome, field)


def _metric(outcome: Outcome, field: str) -> str:
    if field in FIGURE_OF_METRIC:
        value = outcome.figures.get(FIGURE_OF_METRIC[field])
    else:
        parts = [outcome.details.get(name) for name in _DETAILS.get(field, ())]
        value = sum(part for part in parts if part is not None) if any(part is not None for part in parts) else None
    return "None" if value is None else str(round(value, 1))


def variant_key(outcome: Outcome, model: str) -> str:
    """What tells the configurations of a model apart."""
    return f"{model} {sorted(outcome.point.variant.of_model(model).items())}"


def instance_group_text(config: ModelConfig) -> str:
    """`2:CPU`, or `1:GPU + 2:CPU`."""
    counts: dict[str, int] = {}
    for group in config.instance_group:
        kind = enum_word(group, "kind").removeprefix("KIND_")
        counts[kind] = counts.get(kind, 0) + max(group.count, 1)
    return " + ".join(f"{count}:{kind}" for kind, count in (counts or {"CPU": 1}).items())
