"""The columns of a record: which there are, and which metric each comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from alipes.errors import MonitorError

__all__ = ["COUNT", "DURATIONS", "EXTRAS", "NINE", "Column", "chosen"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column beyond the nine.

    Attributes:
        name: Its name in the header.
        metric: The metric that it comes from; empty for what is no metric.
        kind: `sum` is the increase since the row before; `now` is the value itself.
        of: Its subject: a `model`, a `gpu` (the mean over all), or the `machine`.
    """

    name: str
    metric: str
    kind: Literal["sum", "now"]
    of: Literal["model", "gpu", "machine"] = "model"


COUNT: Final = "nv_inference_exec_count"
"""Executions, so that a batch counts once."""

DURATIONS: Final = {
    name: f"nv_inference_{name}_duration_us"
    for name in ("queue", "compute_input", "compute_infer", "compute_output", "request")
}

NINE: Final = ("timestamp", "ip", "model", "count", *DURATIONS)
"""The columns that there always are, in their order."""

EXTRAS: Final = {
    column.name: column
    for column in (
        Column("version", "", "now"),
        Column("inferences", "nv_inference_count", "sum"),
        Column("success", "nv_inference_request_success", "sum"),
        Column("failure", "nv_inference_request_failure", "sum"),
        Column("pending", "nv_inference_pending_request_count", "now"),
        Column("cache_hits", "nv_cache_num_hits_per_model", "sum"),
        Column("cache_misses", "nv_cache_num_misses_per_model", "sum"),
        Column("cpu_utilization", "nv_cpu_utilization", "now", "machine"),
        Column("gpu_utilization", "nv_gpu_utilization", "now", "gpu"),
        Column("gpu_memory_used_bytes", "nv_gpu_memory_used_bytes", "now", "gpu"),
    )
}
"""The available columns. Those of GPUs exist only if a server reports a GPU."""


def chosen(columns: Sequence[str] | Literal["all"]) -> tuple[Column, ...]:
    """The further columns that a caller chooses.

    Raises:
        MonitorError: If there is no such column.
    """
    if columns == "all":
        return tuple(EXTRAS.values())
    names = [columns] if isinstance(columns, str) else [name for name in columns if name not in NINE]
    unknown = [name for name in names if name not in EXTRAS]
    if unknown:
        raise MonitorError(f"there is no column {', '.join(unknown)}: there are {', '.join(EXTRAS)}, and 'all'")
    return tuple(EXTRAS[name] for name in names)
