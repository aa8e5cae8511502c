"""Model Analyzer's tables: columns and cells."""

from __future__ import annotations

from pathlib import Path

from alipes.config.pbtxt import parse_pbtxt
from alipes.tune import Goal, Limit, Machine, Outcome, Point, Results, Space
from alipes.tune.analyzer.plan import INFERENCE_FIELDS
from alipes.tune.analyzer.tables import (
    GPU_FIELDS,
    Variants,
    inference_table,
    instance_group_text,
    variant_key,
    write_table,
)

SPACE = Space.of({"m": {"instances": [1, 2], "callers": [4]}})
TRIALS = [
    Outcome(
        Point.of({"m": {"instances": instances, "callers": 4}}),
        {"rate": 100.06 * instances, "p99_ms": 20.0 * instances, "memory_mb": 99.99},
        details={"send_ms": 0.01, "receive_ms": 0.24, "queue_ms": 1.0},
    )
    for instances in (1, 2)
]


def found(limit: str = "p99_ms<=30") -> tuple[Results, Variants]:
    results = Results(Machine("a processor", 2, 1), Goal(limits=(Limit.parse(limit),)), SPACE, TRIALS)
    names = {variant_key(outcome, "m"): f"m_config_{place}" for place, outcome in enumerate(TRIALS)}
    configs = {
        f"m_config_{place}": parse_pbtxt(f"max_batch_size: 8 instance_group {{ kind: KIND_CPU count: {place + 1} }}")
        for place in range(2)
    }
    return results, Variants(names, configs)


def test_rows_that_keep_the_constraints_come_first(tmp_path: Path) -> None:
    results, variants = found()
    rows = inference_table(results, "m", INFERENCE_FIELDS, variants)
    write_table(tmp_path / "results" / "table.csv", INFERENCE_FIELDS, rows)
    assert (tmp_path / "results" / "table.csv").read_text().splitlines() == [
        "Model,Batch,Concurrency,Model Config Path,Instance Group,Max Batch Size,Satisfies Constraints,"
        "Throughput (infer/sec),p99 Latency (ms)",
        "m,1,4,m_config_0,1:CPU,8,Yes,100.1,20.0",
        "m,1,4,m_config_1,2:CPU,8,No,200.1,40.0",
        "",
    ]


def test_other_columns_are_there_if_wanted() -> None:
    results, variants = found()
    fields = [
        "perf_client_send_recv",
        "perf_server_queue",
        "perf_server_compute_infer",
        "cpu_used_ram",
        "gpu_utilization",
    ]
    assert inference_table(results, "m", fields, variants)[0] == ["0.2", "1.0", "None", "100.0"]
    assert inference_table(results, "m", ["backend_parameter/a"], variants)[0] == ["None"]


def test_tables_about_gpus_have_columns_and_no_rows(tmp_path: Path) -> None:
    write_table(tmp_path / "gpu.csv", GPU_FIELDS, ())
    assert (
        tmp_path / "gpu.csv"
    ).read_text() == "Model,GPU UUID,Batch,Concurrency,Model Config Path,Instance Group,Satisfies Constraints\n\n"


def test_instances_are_counted_by_kind() -> None:
    assert instance_group_text(
        parse_pbtxt("instance_group { kind: KIND_GPU } instance_group { kind: KIND_CPU count: 2 }")
    ) == ("1:GPU + 2:CPU")
    assert instance_group_text(parse_pbtxt("")) == "1:CPU"
