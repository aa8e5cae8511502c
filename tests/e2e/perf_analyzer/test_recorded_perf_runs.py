"""`alipes perf_analyzer` writes what the original wrote for the same command lines, figures apart."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from support.command import Done, alipes
from support.perf_models import add_perf_models
from support.perf_runs import RecordedRun, lines, recorded_runs, without_figures
from support.regions import ALLOWED
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

RUNS = {run.name: run for run in recorded_runs()}
# Behind the recorded words: the last value counts. Windows are short, and any of them is good enough, as is any
# latency, since what is compared is not how fast a machine is; one run has to be unstable.
QUICK = ("--measurement-interval", "200", "--stability-percentage", "1000000")
UNSTABLE = "unstable_exit"
# What a busy machine says of itself.
BUSY = ("Perf Analyzer was not able to keep up with the desired request rate.", "Avg send request rate")
# With a level that did not settle; here it does.
ENDED_UNSTABLE = "concurrency_range_p95_grpc"

GOOD = {"data": [{"INPUT0": {"content": [1.0, 2.0, 3.0, 4.0], "shape": [4]}}] * 2}
BAD = {"data": [{"INPUT0": {"content": [1.0], "shape": [1]}}], "validation_data": [{"OUTPUT0": [2.0]}]}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> Iterator[ServerProcess]:
    repository = tmp_path_factory.mktemp("perf") / "models"
    add_perf_models(repository)
    yield serve_module(repository, ALLOWED)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that the command lines name; what the original read is not recorded."""
    (tmp_path / "intervals.txt").write_text("1000\n3000\n")
    (tmp_path / "data.json").write_text(json.dumps(GOOD))
    (tmp_path / "bad.json").write_text(json.dumps(BAD))
    return tmp_path


def replayed(run: RecordedRun, server: ServerProcess, folder: Path) -> Done:
    """The run of the same words, with the server's own ports."""
    ports = {"8000": server.http, "8001": server.grpc, "8002": server.metrics}
    words = list(run.words)
    for port, address in ports.items():
        words = [word.replace(f"localhost:{port}", address) for word in words]
    limit = ("--latency-threshold", "60000") if "--latency-threshold" in words else ()
    return alipes("perf_analyzer", *words, *limit, *(() if run.name == UNSTABLE else QUICK), folder=folder)


def completed(run: RecordedRun) -> tuple[list[str], list[str]]:
    """The text of a run, with its last level measured to the end where the original gave it up."""
    out = without_figures(run.out)
    if run.name != ENDED_UNSTABLE:
        return out, list(run.err)
    first = out.index("  Client: ")
    block = out[first : out.index("", first) + 1]
    heading = out.index("Request concurrency: 6")
    summary = out[-1].replace("Concurrency: 4", "Concurrency: 6")
    return [*out[: heading + 1], *block, *out[heading + 1 :], summary], []


@pytest.mark.parametrize("name", sorted(RUNS.keys() - {UNSTABLE}))
def test_a_recorded_command_line_writes_the_same(name: str, server: ServerProcess, folder: Path) -> None:
    run = RUNS[name]
    done = replayed(run, server, folder)
    out, err = completed(run)
    written = [line for line in without_figures(lines(done.out)) if not any(word in line for word in BUSY)]
    assert written == out, done.err
    assert shortened(lines(done.err), run) == err
    assert done.code == run.status
    if run.file("csv").exists():
        rows = columns(run.file("csv")) + (["6"] if name == ENDED_UNSTABLE else [])
        assert columns(folder / f"{name}.csv") == rows


def test_a_level_that_did_not_settle_is_shown_all_the_same(server: ServerProcess, folder: Path) -> None:
    run, plain = RUNS[UNSTABLE], RUNS["count_plain"]
    done = replayed(run, server, folder)
    assert (done.code, lines(done.err)) == (run.status, list(run.err))
    out = without_figures(lines(done.out))
    assert out[: len(run.out)] == without_figures(run.out)
    block = without_figures(plain.out)
    block = block[block.index("  Client: ") :]
    block[-1] = "Concurrency: 1, throughput: N infer/sec, latency N usec (not stable)"
    assert out[len(run.out) :] == block


def shortened(err: Sequence[str], run: RecordedRun) -> list[str]:
    """Standard error, with the usage left out where the recording left it out."""
    if not run.has_usage:
        return list(err)
    assert len(err) > 50
    return [*err[:2], run.err[-1]]


def columns(table: Path) -> list[str]:
    """The heading and, of each row, the level; which of them is the quickest is the machine's."""
    heading, *rows = table.read_text(encoding="utf-8").splitlines()
    assert all(len(row.split(",")) == len(heading.split(",")) for row in rows)
    return [heading, *sorted(row.split(",")[0] for row in rows)]
