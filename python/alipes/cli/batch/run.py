"""`alipes batch run`: files in, files out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from alipes.cli.amounts import count
from alipes.cli.connection import ApiKey, Header, TlsRoots, addresses_of, hold_key, read_headers
from alipes.cli.failures import UsageFailed, perform
from alipes.cli.grouped_help import grouped_option as _option
from alipes.leaving import leaving_on_signals

if TYPE_CHECKING:
    from alipes.batch import Summary

__all__ = ["HELP", "SOME_SET_ASIDE", "run"]

HELP: Final = """Have servers answer what many files hold, and write the answers as files.

\b
  alipes batch run MODEL 'data/*.npy' -o results --url gpu-1:8001,gpu-2:8001
  alipes batch run MODEL data -o results --repository models --servers 2 \\
    --clients 4

INPUTS are patterns, files or folders: npy, npz, h5, parquet, jsonl and pictures; or MODULE:FUNCTION, which yields
arrays. The folder of the results knows what is done: the same command again does what is missing, however the former
one ended. What cannot be read, and rows that the model refuses, are set aside with their reasons.

The exit code is 0 when everything is done, 3 when something was set aside, 1 when something is missing.
"""

SOME_SET_ASIDE: Final = 3
"""Exit code of a run that is whole but for what was set aside."""

_SERVERS: Final = "Servers"
_CLIENTS: Final = "Clients"
_RESULTS: Final = "Results"


def run(  # noqa: PLR0913, PLR0917  # one parameter is one option
    model: Annotated[str, typer.Argument(metavar="MODEL", show_default=False, help="Name of the model.")],
    inputs: Annotated[
        list[str], typer.Argument(metavar="INPUTS", show_default=False, help="Patterns, files, folders, or a function.")
    ],
    output: Annotated[
        Path,
        _option(_RESULTS, "-o", "--output", text="Where the results go, and a run to go on with.", metavar="FOLDER"),
    ],
    url: Annotated[
        list[str] | None,
        _option(
            _SERVERS, "--url", text="Servers that run: addresses with commas between; any number.", metavar="ADDRESS"
        ),
    ] = None,
    repository: Annotated[
        str | None,
        _option(
            _SERVERS, "--repository", text="Models of servers that are started, by the executor.", metavar="FOLDER"
        ),
    ] = None,
    servers: Annotated[
        int | None,
        _option(_SERVERS, "--servers", text="How many are started; 1 by default.", metavar="NUMBER", min=1),
    ] = None,
    server_option: Annotated[
        list[str] | None,
        _option(
            _SERVERS,
            "--server-option",
            text="A flag of `alipes serve` for these, with `_` for `-`; any number.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    model_version: Annotated[
        str, _option(_SERVERS, "--model-version", text="Version of the model; the latest by default.", metavar="NUMBER")
    ] = "",
    header: Header = None,
    api_key: ApiKey = None,
    tls_roots: TlsRoots = None,
    clients: Annotated[
        int, _option(_CLIENTS, "--clients", text="Clients of each server.", metavar="NUMBER", min=1, shown=True)
    ] = 1,
    in_flight: Annotated[
        int,
        _option(_CLIENTS, "--in-flight", text="Requests of a client under way.", metavar="NUMBER", min=1, shown=True),
    ] = 8,
    batch: Annotated[
        int | None,
        _option(_CLIENTS, "--batch", text="Rows of a request; what the model takes by default.", metavar="ROWS", min=1),
    ] = None,
    timeout: Annotated[
        float,
        _option(_CLIENTS, "--timeout", text="Longest wait for an answer.", metavar="SECONDS", min=0.001, shown=True),
    ] = 120.0,
    reconnect: Annotated[
        float,
        _option(
            _CLIENTS,
            "--reconnect",
            text="How long a client looks for a server that answers.",
            metavar="SECONDS",
            min=0,
            shown=True,
        ),
    ] = 60.0,
    executor: Annotated[
        str,
        _option(
            _CLIENTS,
            "--executor",
            text="What runs clients: local, slurm, dask, ray, kubernetes or htcondor.",
            metavar="NAME",
            shown=True,
        ),
    ] = "local",
    executor_option: Annotated[
        list[str] | None,
        _option(
            _CLIENTS,
            "--executor-option",
            text="What it needs, such as an option of sbatch, or address=ADDRESS of a cluster of Dask or Ray; with "
            "server- in front, for servers alone; any number.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    form: Annotated[
        str,
        _option(
            _RESULTS, "--form", text="npz, npy, h5, parquet, jsonl, or zip for pictures.", metavar="FORM", shown=True
        ),
    ] = "npz",
    stream: Annotated[
        bool, _option(_CLIENTS, "--stream", text="Each file is a time series, cut with overlaps for a streaming model.")
    ] = False,
    overlap: Annotated[
        int | None,
        _option(
            _CLIENTS,
            "--overlap",
            text="With --stream: updates that the model's state depends on, where that is unknown.",
            metavar="UPDATES",
            min=0,
        ),
    ] = None,
    again: Annotated[bool, _option(_RESULTS, "--again", text="Try again what was set aside.")] = False,
    price: Annotated[
        float | None, _option(_RESULTS, "--price", text="What a server costs for an hour.", metavar="PRICE", min=0)
    ] = None,
    rows_per_hour: Annotated[
        float | None,
        _option(
            _RESULTS,
            "--rows-per-hour",
            text="With --price: rows that stand for an hour of data.",
            metavar="ROWS",
            min=0.001,
        ),
    ] = None,
    as_json: Annotated[bool, _option(_RESULTS, "--json", text="Print the figures as JSON.")] = False,
) -> int:
    """Has servers answer what many files hold; `HELP` says how."""

    def action() -> int:
        from alipes import batch as batches

        if (url is None) == (repository is None):
            raise UsageFailed("name the servers with --url, or their models with --repository: one of the two")
        if servers is not None and repository is None:
            raise UsageFailed("give --servers with --repository: those of --url are there already")
        if server_option and repository is None:
            raise UsageFailed("give --server-option with --repository: the servers of --url run already")
        hold_key(api_key)
        addresses = None if url is None else addresses_of(url, encrypted=tls_roots is not None)
        summary = batches.run(
            model,
            inputs[0] if len(inputs) == 1 else inputs,
            output,
            url=addresses,
            servers=servers,
            repository=repository,
            clients=clients,
            version=model_version or None,
            form=form,
            stream=stream,
            executor=executor,
            executor_options=_options("--executor-option", executor_option),
            server_options=_options("--server-option", server_option),
            overlap=overlap,
            in_flight=in_flight,
            batch=batch,
            timeout_s=timeout,
            reconnect_s=reconnect,
            again=again,
            # The folder of a run holds these: a key stays in the variable, where each client finds it.
            headers=read_headers(header, ""),
            tls_roots=tls_roots,
            price=price,
            rows_per_hour=rows_per_hour,
        )
        print(json.dumps(asdict(summary) | {"rows_per_s": summary.rows_per_s}, indent=2) if as_json else _text(summary))
        return SOME_SET_ASIDE if summary.set_aside else 0

    with leaving_on_signals():
        return perform(action)


def _options(option: str, words: Sequence[str] | None) -> dict[str, str]:
    """Names and values."""
    found = {}
    for word in words or ():
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageFailed(f"write {option} NAME=VALUE, not {word!r}")
        found[name] = value
    return found


def _text(summary: Summary) -> str:
    lines = [f"{count(summary.rows, 'row')} of {count(summary.files, 'file')} are in {summary.folder}"]
    if summary.new_pieces:
        lines.append(
            f"{count(summary.new_rows, 'row')} in {summary.seconds:.3g} s: {summary.rows_per_s:,.0f} rows/s by "
            f"{count(summary.servers, 'server')}"
        )
    else:
        lines.append("nothing was left to do")
    if summary.set_aside:
        lines.append(f"{summary.set_aside} set aside, with reasons: {summary.folder}/set-aside.jsonl")
    if summary.server_logs:
        lines.append(f"servers ended before the run; what they wrote: {', '.join(summary.server_logs)}")
    if summary.cost is not None:
        hour = summary.cost_per_data_hour
        lines.append(f"cost {summary.cost:.4g}" + (f", {hour:.4g} for an hour of data" if hour is not None else ""))
    return "\n".join(lines)
