"""The text and the tables of a run, from figures that are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from alipes.compat.perf_analyzer.csv_report import write_csv
from alipes.compat.perf_analyzer.level import MeasuredLevel
from alipes.compat.perf_analyzer.metrics import GpuMetrics, read_metrics
from alipes.compat.perf_analyzer.model import Model
from alipes.compat.perf_analyzer.report import figure, level_lines, pass_line, settings_lines, summary_lines
from alipes.compat.perf_analyzer.server_statistics import Counts, Snapshot
from alipes.compat.perf_analyzer.settings import Load, Measuring, Reports, SentData, Settings, Target
from alipes.compat.perf_analyzer.windows import MeasuredWindow
from alipes.loadtest import Histogram, Window

MODEL = Model("m", "", {}, {}, max_batch=8)
CACHED = Model("m", "", {}, {}, max_batch=8, has_cache=True)
ENSEMBLE = Model("m", "", {}, {}, max_batch=8, is_ensemble=True)
NS = 1000  # of a microsecond


def histogram(*times_usec: int) -> Histogram:
    times, counts = np.unique(np.array(times_usec) * NS, return_counts=True)
    return Histogram(times.astype(np.uint64), counts.astype(np.uint64))


def counts(number: int = 10, **other: int) -> Counts:
    parts = {"queue_ns": 20, "compute_input_ns": 3, "compute_infer_ns": 50, "compute_output_ns": 2, "success_ns": 80}
    figures = {name: value * NS * number for name, value in parts.items()}
    return Counts(**{"inferences": number, "executions": number, "successes": number, **figures, **other})


def window(server: Snapshot | None = None, gpus: GpuMetrics | None = None, lateness: int = 0) -> MeasuredWindow:
    times = histogram(100, 100, 100, 300)
    late = histogram(*[lateness] * 4)
    client = Window(2.0, times, late, histogram(0, 0, 0, 0), 0.004, 0.140, 0.006, tester_cores=0.25)
    return MeasuredWindow(client, server, gpus)


def settings(**parts: object) -> Settings:
    return Settings(Target("m", url="localhost:8000"), **parts)  # type: ignore[arg-type]


def text(level: MeasuredLevel, how: Settings, model: Model = MODEL) -> list[str]:
    return list(level_lines(level, how, model))


@pytest.mark.parametrize(
    ("value", "shown"), [(5634.789, "5634.79"), (12827.06, "12827.1"), (200.0, "200"), (0.5, "0.5")]
)
def test_figures_have_six_digits(value: float, shown: str) -> None:
    assert figure(value) == shown


def test_a_level_shows_the_client_and_the_server() -> None:
    level = MeasuredLevel(2, [window(Snapshot(counts()))], "settled")
    assert text(level, settings(data=SentData(batch=3))) == [
        "  Client: ",
        "    Request count: 4",
        "    Throughput: 6 infer/sec",
        "    Avg latency: 150 usec (standard deviation 86 usec)",
        "    p50 latency: 100 usec",
        "    p90 latency: 300 usec",
        "    p95 latency: 300 usec",
        "    p99 latency: 300 usec",
        "    Avg HTTP time: 150 usec (send/recv 10 usec + response wait 140 usec)",
        "  Server: ",
        "    Inference count: 10",
        "    Execution count: 10",
        "    Successful request count: 10",
        "    Avg request latency: 80 usec (overhead 5 usec + queue 20 usec + compute input 3 usec "
        "+ compute infer 50 usec + compute output 2 usec)",
        "",
    ]


def test_verbose_text_over_grpc_has_a_percentile_of_its_own() -> None:
    how = Settings(
        Target("m", url="localhost:8001", protocol="grpc"),
        measuring=Measuring(percentile=97),
        reports=Reports(verbosity=1),
    )
    lines = text(MeasuredLevel(2, [window()], "settled"), how)
    assert "    Avg client overhead: 25.00%" in lines
    assert "    p97 latency: 300 usec" in lines
    assert not any("Avg latency" in line or "Server" in line for line in lines)
    assert "    Avg gRPC time: 150 usec (marshal 4 usec + response wait 140 usec + unmarshal 6 usec)" in lines
    assert pass_line(1, window(), how) == "  Pass [1] throughput: 2 infer/sec. p97 latency: 300 usec"
    assert pass_line(2, window(), settings()).endswith("Avg latency: 150 usec (std 86 usec). ")


def test_a_rate_that_was_missed_is_shown() -> None:
    how = settings(load=Load("request_rate", 100))
    late = text(MeasuredLevel(100, [window(lateness=5000)], "settled"), how)
    assert any("100.00% of the requests were delayed. " in line for line in late)
    assert not any("WARNING" in line for line in text(MeasuredLevel(100, [window()], "settled"), how))


def test_a_cache_splits_the_time_of_the_server() -> None:
    figures = {"cache_hits": 8, "cache_hit_ns": 8 * NS, "cache_misses": 2, "cache_miss_ns": 2 * 21 * NS}
    own = Counts(2, 2, 10, 100 * NS, 10 * NS, 8 * NS, 40 * NS, 2 * NS, **figures)
    lines = text(MeasuredLevel(1, [window(Snapshot(own))], "settled"), settings(), CACHED)
    assert "    Cache hit count: 8" in lines
    assert "    Avg request latency: 10 usec (overhead 0 usec + queue 1 usec + cache hit/miss 5 usec)" in lines
    assert "      Average Cache Hit Latency: 1 usec" in lines
    assert (
        "      Average Cache Miss Latency: 46 usec (cache lookup/insertion 21 usec + compute input 4 usec "
        "+ compute infer 20 usec + compute output 1 usec)" in lines
    )


def test_an_ensemble_lists_its_models() -> None:
    server = Snapshot(counts(success_ns=2000 * NS), {("a", "1"): counts(), ("b", "2"): counts()})
    lines = text(MeasuredLevel(1, [window(server)], "settled"), settings(), ENSEMBLE)
    assert "    Avg request latency: 200 usec (overhead 50 usec + queue 40 usec + compute 110 usec)" in lines
    assert lines[lines.index("  Composing models: ") :][:2] == ["  Composing models: ", "  a, version: 1"]
    assert "  b, version: 2" in lines


def test_gpus_are_listed_by_their_id() -> None:
    page = 'nv_gpu_utilization{gpu_uuid="GPU-1"} 0.25\nnv_gpu_power_usage{gpu_uuid="GPU-1"} 50.5\nother{a="b"} 1\n'
    again = page.replace("0.25", "0.75")
    gpus = GpuMetrics.merged([read_metrics(page), read_metrics(again)])
    lines = text(MeasuredLevel(1, [window(gpus=gpus)], "settled"), settings())
    assert lines[-7:] == [
        "  Server Prometheus Metrics: ",
        "    Avg GPU Utilization:",
        "      GPU-1 : 50%",
        "    Avg GPU Power Usage:",
        "      GPU-1 : 50.5 watts",
        "    Max GPU Memory Usage:",
        "    Total GPU Memory:",
    ]


def test_the_summary_marks_what_did_not_settle() -> None:
    levels = [MeasuredLevel(1, [window()], "settled"), MeasuredLevel(2, [window()], "not_settled")]
    assert list(summary_lines(levels, settings())) == [
        "Inferences/Second vs. Client Average Batch Latency",
        "Concurrency: 1, throughput: 2 infer/sec, latency 150 usec",
        "Concurrency: 2, throughput: 2 infer/sec, latency 150 usec (not stable)",
    ]


def test_a_number_of_requests_has_no_windows_in_the_settings() -> None:
    lines = list(settings_lines(settings(measuring=Measuring(requests=9, warm_up_requests=3)), MODEL))
    assert lines[3:5] == ["  Sending 3 warmup requests", "  Sending 9 benchmark requests"]
    assert not any("window" in line for line in lines)


def test_a_table_has_its_rows_by_rising_rate(tmp_path: Path) -> None:
    quick = MeasuredWindow(
        Window(1.0, histogram(*[50] * 8), histogram(), histogram(), 0.0, 0.040, 0.0), Snapshot(counts())
    )
    levels = [MeasuredLevel(2, [quick], "settled"), MeasuredLevel(1, [window(Snapshot(counts()))], "settled")]
    write_csv(tmp_path / "a.csv", levels, settings(), MODEL)
    assert (tmp_path / "a.csv").read_text().splitlines() == [
        "Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute Input,"
        "Server Compute Infer,Server Compute Output,Client Recv,p50 latency,p90 latency,p95 latency,p99 latency",
        "1,2,4,65,20,3,50,2,6,100,300,300,300",
        "2,8,0,0,20,3,50,2,0,50,50,50,50",
    ]


def test_an_ensemble_has_a_table_for_each_of_its_models(tmp_path: Path) -> None:
    server = Snapshot(counts(), {("a", "1"): counts()})
    write_csv(tmp_path / "e.csv", [MeasuredLevel(1, [window(server)], "settled")], settings(), ENSEMBLE)
    heading, row = (tmp_path / "a_v1.e.csv").read_text().splitlines()
    assert heading.endswith("Server Compute Output,Client Recv")
    assert row == "1,2,0,0,20,3,50,2,0"


def test_statistics_that_began_anew_count_from_there() -> None:
    assert counts(3) - counts(10) == counts(3)
    assert (counts(10) - counts(4)).successes == 6
    before, after = Snapshot(counts(1)), Snapshot(counts(5), {("a", "1"): counts(2)})
    assert (after - before).composing[("a", "1")].successes == 2
    assert (after + after).composing[("a", "1")].successes == 4
