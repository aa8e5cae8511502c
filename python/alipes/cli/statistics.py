"""`alipes stats`: what the models of a running server have done so far."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from alipes.cli.amounts import span
from alipes.cli.certificates import with_certificate
from alipes.cli.columns import print_columns
from alipes.cli.connection import ApiKey, Header, TlsRoots, Url, connect, one_address, read_headers
from alipes.cli.failures import perform
from alipes.client.model_counts import STAGES, ModelCounts, StageCount

__all__ = ["stats"]

HEADINGS: Final = ("model", "version", "requests", "failed", "cached", "queue", "input", "compute", "output", "batches")
_NUMBERS: Final = HEADINGS[2:9]
_NS_IN_US: Final = 1000

Document = Mapping[str, Any]


@with_certificate
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
    counts = ModelCounts.read(document)
    cached = counts.part("cache_hit").count
    return (
        document["name"],
        str(document["version"]),
        str(counts.part("success").count),
        str(counts.part("fail").count),
        str(cached) if cached else "",
        *(_mean(counts.part(stage)) for stage in STAGES),
        _batches(counts),
    )


def _mean(stage: StageCount) -> str:
    return span(stage.ns / _NS_IN_US / stage.count) if stage.count else "-"


def _batches(counts: ModelCounts) -> str:
    """The sizes of the batches that ran, each with how often: `1 (20), 4 (3)`."""
    sizes = {size: stages["compute_infer"].count for size, stages in counts.batches.items()}
    return ", ".join(f"{size} ({count})" for size, count in sorted(sizes.items())) or "-"
