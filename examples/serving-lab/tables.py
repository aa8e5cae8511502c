"""The tables of a run, as text: the one that the lab builds by hand, and the batches that the servers counted."""

from __future__ import annotations

from itertools import groupby

from results import Results
from rich.console import Console
from rich.table import Table
from variants import VARIANTS


def show(results: Results, console: Console) -> None:
    """Prints both."""
    console.print(measured(results))
    if results.batches:
        console.print(batches(results))


def measured(results: Results) -> Table:
    """A row for each variant and each number of senders."""
    table = Table(title="One picture in a request, answers checked")
    if results.baseline is not None:
        table.caption = (
            f"ratio: requests per second, those of {VARIANTS[results.baseline].title} in the same round being 1"
        )
    table.add_column("senders", justify="right", no_wrap=True)
    table.add_column("variant", no_wrap=True)
    for name in ("requests\nper s", "median\nms", "p99\nms", "CPU ms per\nrequest", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    for senders in results.senders:
        for variant in results.variants:
            row = results.row(variant, senders)
            ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
            numbers = [f"{value:.2f}" for value in (row.median_ms, row.p99_ms, row.cpu_ms)]
            table.add_row(str(senders), VARIANTS[variant].title, f"{row.rate:.0f}", *numbers, ratio)
        table.add_section()
    return table


def batches(results: Results) -> Table:
    """Executions by batch size: what the lab reads in `batch_stats` of `/v2/models/<model>/stats`."""
    table = Table(title="Executions by batch size, as the servers count them")
    for name in ("variant", "model"):
        table.add_column(name, no_wrap=True)
    for name in ("batch\nsize", "execu-\ntions", "compute\nms", "ms per\nrequest"):
        table.add_column(name, justify="right", no_wrap=True)
    for _, group in groupby(results.batches, key=lambda batch: (batch.variant, batch.model)):
        for batch in group:
            names = [VARIANTS[batch.variant].title, batch.model]
            each_ms = batch.compute_ms / batch.size
            figures = [str(batch.size), str(batch.executions), f"{batch.compute_ms:.3f}", f"{each_ms:.3f}"]
            table.add_row(*names, *figures)
        table.add_section()
    return table
