"""The picture of a run: rates, latencies, CPU and batches of each variant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import matplotlib as mpl

mpl.use("Agg")  # a file is drawn, no window opened

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter
from results import Measured, Results
from variants import VARIANTS

TIMES: Final = "\N{MULTIPLICATION SIGN}"
INK: Final = "#24292f"
GREY: Final = "#8c959f"
# FastAPI, Python models of alipes, and what runs without Python.
COLOURS: Final = {"fastapi": "#b8c0c8", "python": "#7fb3d9", "none": "#1f6fb2"}
WITHOUT_PYTHON: Final = ("onnx", "native")
# Whose callers have decoded the picture; hatched, since that is a part of what the others do.
DECODED: Final = "onnx"
# Sizes of batches that are drawn together, up to the given one, from light to dark.
SIZES: Final = {1: "#dce9f5", 3: "#9cc4e4", 7: "#4d94cf", 16: "#174e82"}


def draw(results: Results, output: Path, layers: int = 0) -> Path:
    """Draws the picture and gives its file; of several numbers of senders it shows the one nearest to the lab's 8."""
    senders = min(results.senders, key=lambda count: abs(count - 8))
    rows = [results.row(variant, senders) for variant in results.variants]
    with plt.rc_context({"font.size": 9.5, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": GREY}):
        figure, axes = plt.subplots(
            2, 2, figsize=(12, 1.6 + 0.95 * max(len(rows), 4)), layout="constrained", sharey="row"
        )
        network = f"a network with {layers} layers" if layers else "the small network"
        figure.suptitle(f"The serving lab: one JPEG in a request, {senders} senders, {network}", weight="bold")
        _rates(axes[0, 0], rows, results.baseline)
        _latencies(axes[0, 1], rows)
        _cpu(axes[1, 0], rows)
        _batches(axes[1, 1], results)
        figure.savefig(output, dpi=130)
        plt.close(figure)
    return output


def _colour(variant: str) -> str:
    if variant.startswith("fastapi"):
        return COLOURS["fastapi"]
    return COLOURS["none" if variant in WITHOUT_PYTHON else "python"]


def _bare(axes: Axes, rows: Sequence[Measured], title: str, unit: str) -> None:
    """Names on the left, first variant on top, and no more lines than help."""
    axes.set_title(title, loc="left", fontsize=10.5)
    axes.set_xlabel(unit)
    axes.set_yticks(range(len(rows)), [VARIANTS[row.variant].title for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.7)
    axes.set_axisbelow(True)


def _bars(axes: Axes, rows: Sequence[Measured], values: Sequence[float], labels: Sequence[str]) -> None:
    bars = axes.barh(range(len(rows)), values, height=0.62, color=[_colour(row.variant) for row in rows])
    for bar, row in zip(bars, rows, strict=True):
        if row.variant == DECODED:
            bar.set(hatch="///", edgecolor="white", linewidth=0)
    for place, (value, label) in enumerate(zip(values, labels, strict=True)):
        axes.annotate(label, (value, place), (5, 0), textcoords="offset points", va="center")
    axes.set_xlim(0, max(values) * 1.28)


def _rates(axes: Axes, rows: Sequence[Measured], baseline: str | None) -> None:
    labels = [f"{row.rate:,.0f}" + (f"   {TIMES} {row.ratio:.2f}" if row.ratio is not None else "") for row in rows]
    _bars(axes, rows, [row.rate for row in rows], labels)
    against = f"; {TIMES} {VARIANTS[baseline].title}, in the same round" if baseline else ""
    _bare(axes, rows, "How many" + against, _hatched("requests per second", rows))


def _hatched(unit: str, rows: Sequence[Measured]) -> str:
    note = "; hatched: the caller has decoded the picture"
    return unit + note if any(row.variant == DECODED for row in rows) else unit


def _latencies(axes: Axes, rows: Sequence[Measured]) -> None:
    for place, row in enumerate(rows):
        colour = _colour(row.variant)
        axes.plot([row.median_ms, row.p99_ms], [place, place], color=colour, linewidth=3, solid_capstyle="round")
        axes.plot(row.median_ms, place, "o", color=colour, markersize=9, markeredgecolor=INK, markeredgewidth=0.8)
        axes.plot(row.p99_ms, place, "|", color=INK, markersize=12, markeredgewidth=1.6)
        axes.annotate(
            f"{row.median_ms:.3g}", (row.median_ms, place), (-8, 0), textcoords="offset points", va="center", ha="right"
        )
        axes.annotate(f"{row.p99_ms:.3g}", (row.p99_ms, place), (8, 0), textcoords="offset points", va="center")
    axes.set_xscale("log")
    least, most = min(row.median_ms for row in rows), max(row.p99_ms for row in rows)
    axes.set_xlim(least / 3, most * 3)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    _bare(axes, rows, "How long: median (dot) to 99th percentile (bar)", "milliseconds, logarithmic")


def _cpu(axes: Axes, rows: Sequence[Measured]) -> None:
    _bars(axes, rows, [row.cpu_ms for row in rows], [f"{row.cpu_ms:.2g} ms" for row in rows])
    _bare(axes, rows, "What it costs: CPU of the server and its workers", _hatched("milliseconds per request", rows))


def _batches(axes: Axes, results: Results) -> None:
    """Shares of the requests that ran in batches of each size; of the native ensemble, those of the network."""
    for place, variant in enumerate(results.variants):
        counts: dict[int, int] = defaultdict(int)
        model = "network" if variant == "native" else None
        for batch in results.batches:
            if batch.variant == variant and model in (None, batch.model):
                counts[next(top for top in SIZES if batch.size <= top)] += batch.size * batch.executions
        left, whole = 0.0, sum(counts.values())
        for top, colour in SIZES.items():
            share = 100 * counts[top] / whole if whole else 0.0
            axes.barh(place, share, left=left, height=0.62, color=colour)
            left += share
        if not whole:
            axes.annotate("one at a time", (1, place), va="center", color=GREY)
    _bare(axes, [results.row(name, results.senders[0]) for name in results.variants], "", "share of all requests, %")
    names = {1: "1", 3: "2-3", 7: "4-7", 16: "8-16"}
    patches = [plt.Rectangle((0, 0), 1, 1, color=colour, label=names[top]) for top, colour in SIZES.items()]
    axes.legend(handles=patches, title=None, ncols=4, loc="lower right", bbox_to_anchor=(1.0, 0.99), frameon=False)
    axes.set_title("In batches of so many", loc="left", fontsize=10.5)
    axes.set_xlim(0, 100)
