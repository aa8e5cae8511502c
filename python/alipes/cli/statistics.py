"""`alipes stats`: what the models of a running server have done so far."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from alipes.cli.amounts import span
from alipes.cli.columns import print_columns
from alipes.cli.connection import ApiKey, Header, TlsRoots, Url, connect, one_address, read_headers
from alipes.cli.failures import perform

__all__ = ["stats"]

HEADINGS: Final = ("model", "version", "requests", "failed", "cached", "queue", "input", "compute", "output", "batches")
_NUMBERS: Final = HEADINGS[2:9]
_NS_IN_US: Final = 1000

Document = Mapping[str, Any]


def stats(  # noqa: PLR0913, PLR0917  # one parameter is one flag
    model: Annotated[
        str, typer.Argument(metavar="MODEL", show_default=False, help="One model; all that are loaded by default.")
    ] = "",
    url: Url = None,
    version: Annotated[
        str, typer.Option("--model-version", show_default=False, help="One version; all by default.")
    ] = "",
    header: Header = None,
    api_key: ApiKey = None,
    tls_roots: TlsRoots = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what the server says, as it is.")] = False,
) -> int:
    """Print requests, failures, mean times and batch sizes of each model, since it was loaded.

    `queue`, `input`, `compute` and `output` are the mean times of a request in the queue, before, in and after the
    model. `batches` are the sizes of the batches, each with how often it ran.
    """

    def action() -> int:
        one_address(url, "each server counts by itself")
        with connect(url, read_headers(header, api_key), tls_roots) as client:
            if model:
                client.metadata(model, version)  # names the models that there are where there is none of this name
            documents = client.statistics(model, version)
        if as_json:
            print(json.dumps(documents, indent=2))
        elif documents:
            print_columns(HEADINGS, [_row(document) for document in documents], right=_NUMBERS)
        else:
            print("no model is loaded")
        return 0

    return perform(action)


def _row(document: Document) -> tuple[str, ...]:
    times = document["inference_stats"]
    parts = ("queue", "compute_input", "compute_infer", "compute_output")
    cached = int(times.get("cache_hit", {}).get("count", 0))
    return (
        document["name"],
        str(document["version"]),
        str(int(times["success"]["count"])),
        str(int(times["fail"]["count"])),
        str(cached) if cached else "",
        *(_mean(times[part]) for part in parts),
        _batches(document),
    )


def _mean(duration: Document) -> str:
    count = int(duration["count"])
    return span(int(duration["ns"]) / _NS_IN_US / count) if count else "-"


def _batches(document: Document) -> str:
    """The sizes of the batches that ran, each with how often: `1 (20), 4 (3)`."""
    sizes = {int(one["batch_size"]): int(one["compute_infer"]["count"]) for one in document.get("batch_stats", ())}
    return ", ".join(f"{size} ({count})" for size, count in sorted(sizes.items())) or "-"
