"""`run`: everything from inputs to results, with servers and clients, resumed where it was left."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from alipes.batch.executors.find import EXECUTORS, STARTS_SERVERS
from alipes.batch.executors.server_tasks import client_options
from alipes.batch.executors.server_tasks import server_options as server_options_of
from alipes.batch.finish import Summary, finish
from alipes.batch.folder import RunFolder, Start
from alipes.batch.formats.find import FORMS
from alipes.batch.inputs import Inputs, find_files, is_in_memory
from alipes.batch.launch import remove_unused
from alipes.batch.plan import Plan
from alipes.batch.planning import Extent, Files, Work, add_plan, make_plan, same_plan, written
from alipes.batch.rows import ModelRows, model_rows
from alipes.batch.sender import open_client
from alipes.batch.servers import Engine, RunServers, run_servers
from alipes.batch.stream_planning import make_stream_plan, stream_overlap, written_series
from alipes.batch.supervision import supervise
from alipes.errors import AlipesError, ConfigError
from alipes.progress import task

__all__ = ["run"]

T = TypeVar("T")

_UNIT_BYTES: Final = 8 << 20
"""Bytes of a unit: a file that is larger is divided, where its kind allows it."""


def run(  # noqa: PLR0913 - each is an option of its own
    model: str,
    inputs: Inputs,
    outputs: str | os.PathLike[str],
    *,
    url: str | Sequence[str] | None = None,
    servers: int | None = None,
    repository: str | os.PathLike[str] | None = None,
    clients: int = 1,
    version: int | str | None = None,
    form: str = "npz",
    stream: bool = False,
    overlap: int | None = None,
    executor: str = "local",
    executor_options: Mapping[str, Any] | None = None,
    in_flight: int = 8,
    batch: int | None = None,
    timeout_s: float = 120.0,
    reconnect_s: float = 60.0,
    unit_bytes: int = _UNIT_BYTES,
    again: bool = False,
    headers: Mapping[str, str] | None = None,
    tls_roots: str | os.PathLike[str] | None = None,
    server_options: Mapping[str, Any] | None = None,
    price: float | None = None,
    rows_per_hour: float | None = None,
    progress: bool | None = None,
) -> Summary:
    """Has servers answer everything that inputs hold, and writes the answers in the order of the inputs.

    The folder of the results knows what is done: the same call again does what is missing, however the former ended.
    What cannot be read, and rows that the model refuses, are set aside with their reasons, and everything else is done.

    Args:
        model: The model.
        inputs: Patterns, paths or folders of files (`.npy`, `.npz`, `.h5`, `.parquet`, `.jsonl`, pictures); an array,
            or arrays by input; a function that yields either, or `module:function`.
        outputs: The folder for the results.
        url: Addresses of servers, as a list or with commas between them.
        servers: In their place: how many servers are started, on this machine or where the clients run.
        repository: The models that these serve.
        clients: Clients of each server.
        version: Version of the model; the server's choice by default.
        form: What results are written as: `npz`, `npy`, `h5`, `parquet`, `jsonl`, or `zip` for pictures.
        stream: Whether the model takes a stream: each file is a time series then, whose last axis is the time, cut
            among clients with overlaps, so that the results are those of one sequence. A row is that of a stride.
        overlap: Updates that the state of such a model depends on; found out for snapshotters and averagers.
        executor: What runs the clients: `local` is processes of this machine, `slurm` an array job, `dask` and `ray`
            tasks of their clusters. The folder and the inputs have to be reached from wherever they run.
        executor_options: Options of sbatch by their names; `address` of a scheduler of Dask, or a `client` of it;
            `address` of a cluster of Ray, and `num_cpus` of a client. Those that begin with `server-` are for servers
            alone: `server-gres`, `server-resources`, `server-num-gpus`.
        in_flight: Requests of a client that are under way at a time.
        batch: Rows of a request; by default what the model takes, and at most 64.
        timeout_s: The longest wait for an answer.
        reconnect_s: How long a client looks for a server that answers.
        unit_bytes: Files above this size are divided.
        again: Whether what was set aside is tried again.
        headers: Headers that the servers ask for.
        tls_roots: Certificates to trust.
        server_options: Further arguments of `alipes.Server` for servers that are started.
        price: What a server costs in an hour, for the summary.
        rows_per_hour: Rows that stand for an hour of data, for the summary.
        progress: False shows no line; by default there is one on a terminal or in a notebook.

    Returns:
        What it came to.

    Raises:
        ConfigError: If an argument, an input or the folder is wrong; nothing was sent then.
        BatchError: If the run cannot go on: what is done stays, and the same call goes on with the rest.
        AlipesError: If no server knows the model.
    """
    _check(form, executor, clients, in_flight)
    options = dict(executor_options or {})
    if (repository is None or executor == "local") and (wrong := list(server_options_of(options))):
        raise ConfigError(
            f"server-{wrong[0]} is for servers that an executor such as slurm starts: name it, and a repository",
            key="executor_options",
        )
    if repository is not None and executor not in STARTS_SERVERS:
        raise ConfigError(
            f"executor '{executor}' starts no servers: start them, with `alipes deploy` for example, and name their "
            "addresses",
            key="repository",
        )
    folder = RunFolder(outputs)
    folder.prepare()
    work = Work(model, str(version or ""), form, stream)
    found = None if is_in_memory(inputs) else find_files(inputs)
    plan = same_plan(folder, work, found)
    if plan is not None and again:
        _forget_failures(folder)
    before = folder.done()
    seconds, server_count = 0.0, 0
    if plan is None or len(before) < plan.piece_count:
        place = None if repository is None else os.fspath(repository)
        with (
            task(f"batch {model}", show=progress) as line,
            run_servers(
                url, servers, place, dict(server_options or {}), Engine(executor, options, folder, clients, line)
            ) as up,
        ):
            roots = "" if tls_roots is None else os.fspath(tls_roots)
            start = Start(
                0, up.addresses, clients, in_flight, batch, timeout_s, reconnect_s, dict(headers or {}), roots
            )
            if plan is None:
                extent = Extent(len(up.addresses), clients, unit_bytes)
                line.step("plans")
                found, plan = _planned(folder, work, inputs, found, up, start, extent, overlap)
                plan = add_plan(folder, work, found, plan)
            else:
                _first_that_answers(up, lambda address: _rows(address, start, work))
            start.begun_s = time.time()
            begun_s = time.monotonic()
            folder.success.unlink(missing_ok=True)
            supervise(folder, plan, folder.add_start(start), up, line, executor, client_options(options))
            seconds, server_count = time.monotonic() - begun_s, len(up.addresses)
    done = finish(folder, plan)
    logs = [str(log) for log in remove_unused(folder)]
    new = [folder.piece(piece) for piece in sorted(folder.done() - before)]
    new_rows = sum(report.rows for report in new)
    summary = Summary(
        str(outputs),
        done.files,
        done.rows,
        done.set_aside,
        done.pieces,
        len(new),
        new_rows,
        seconds,
        server_count,
        server_logs=logs,
    )
    return _with_cost(summary, price, rows_per_hour)


def _check(form: str, executor: str, clients: int, in_flight: int) -> None:
    if form not in FORMS:
        raise ConfigError(f"results are written as {', '.join(FORMS)}, not as {form}", key="form")
    if executor not in EXECUTORS:
        raise ConfigError(f"there is no executor '{executor}': there are {', '.join(EXECUTORS)}", key="executor")
    for name, number in (("clients", clients), ("in_flight", in_flight)):
        if number < 1:
            raise ConfigError(f"{name}: expected at least 1, got {number}", key=name)


def _planned(  # noqa: PLR0913, PLR0917 - what a plan is made of
    folder: RunFolder,
    work: Work,
    inputs: Inputs,
    found: Files | None,
    up: RunServers,
    start: Start,
    extent: Extent,
    overlap: int | None,
) -> tuple[Files, Plan]:
    """The files, and a plan for them."""
    if work.stream:
        cut = _first_that_answers(up, lambda address: stream_overlap(address, work, start, start.batch, overlap))
        found = written_series(inputs, folder) if found is None else found
        return found, make_stream_plan(work, found, cut, extent)
    rows = _first_that_answers(up, lambda address: _rows(address, start, work))
    found = written(inputs, folder, rows) if found is None else found
    return found, make_plan(work, found, rows, extent)


def _rows(address: str, start: Start, work: Work) -> ModelRows:
    with open_client(address, start) as client:
        return model_rows(client, work.model, work.version, start.batch)


def _first_that_answers(up: RunServers, ask: Callable[[str], T]) -> T:
    """What the first server says that answers."""
    failure: AlipesError | None = None
    for address in up.addresses:
        try:
            return ask(address)
        except ConfigError:
            raise
        except AlipesError as error:
            failure = failure or error
    assert failure is not None
    raise failure


def _forget_failures(folder: RunFolder) -> None:
    """Has pieces done again of which something was set aside."""
    for piece in sorted(folder.done()):
        report = folder.piece(piece)
        if report.set_aside:
            folder.remove_piece(report)


def _with_cost(summary: Summary, price: float | None, rows_per_hour: float | None) -> Summary:
    if price is None:
        return summary
    cost = price * summary.servers * summary.seconds / 3600
    hours = summary.new_rows / rows_per_hour if rows_per_hour else 0.0
    return replace(summary, cost=cost, cost_per_data_hour=cost / hours if hours else None)
