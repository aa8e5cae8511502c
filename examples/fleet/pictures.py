"""The talk's three figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")  # files are drawn, no window opened

import matplotlib.pyplot as plt
import numpy as np
from aggregation import Cleaned
from alipes.plots.picture import COLOURS
from offline import OfflineCell
from online import OnlineCell
from strain import Recording, spectrum


def _saved(figure: Any, path: Path) -> Path:
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


def draw_offline(cells: Sequence[OfflineCell], path: Path) -> Path:
    """Throughput and cost over servers and clients, each with its best cell."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    servers = sorted({cell.servers for cell in cells})
    clients = sorted({cell.clients for cell in cells})
    for one, title, values, best, form, colours in (
        (axes[0], "Seconds of data in a second", [cell.data_s_per_s for cell in cells], max, "{:.0f}", "viridis"),
        (axes[1], "Cost of an hour of data", [cell.cost for cell in cells], min, "{:.4f}", "viridis_r"),
    ):
        grid = np.full((len(clients), len(servers)), np.nan)
        for cell, value in zip(cells, values, strict=True):
            grid[clients.index(cell.clients), servers.index(cell.servers)] = value
        image = one.imshow(grid, cmap=colours, origin="lower", aspect="auto")
        for (row, column), value in np.ndenumerate(grid):
            light = np.dot(image.cmap(image.norm(value))[:3], (0.3, 0.59, 0.11))
            colour = "black" if light > 0.45 else "white"
            one.text(column, row, form.format(value), ha="center", va="center", color=colour, fontsize=12)
        row, column = np.argwhere(grid == best(values))[0]
        one.add_patch(
            plt.Rectangle((column - 0.48, row - 0.48), 0.96, 0.96, fill=False, edgecolor=COLOURS[1], linewidth=4)
        )
        one.set(
            title=f"{title}; framed: the best", xlabel="servers n", ylabel="clients of each server k",
            xticks=range(len(servers)), xticklabels=servers, yticks=range(len(clients)), yticklabels=clients,
        )  # fmt: skip
        figure.colorbar(image, ax=one)
    return _saved(figure, path)


def draw_online(cells: Sequence[OnlineCell], period_s: float, path: Path) -> Path:
    """Latency over the inference rate: computing takes longer, waiting for means less long."""
    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    for number, alone in enumerate((True, False)):
        mine = sorted((cell for cell in cells if (cell.way.strides == 1) == alone), key=lambda cell: cell.way.rate)
        if not mine:
            continue
        rates = [cell.way.rate for cell in mine]
        low, middle, high = (
            np.array([1e3 * np.percentile(cell.latencies_s, percent) for cell in mine]) for percent in (0, 50, 100)
        )
        label = "an update for each prediction" if alone else "an update for 8 predictions"
        axes.fill_between(rates, low, high, color=COLOURS[number], alpha=0.2, linewidth=0)
        axes.plot(rates, middle, color=COLOURS[number], marker="o", linewidth=2, label=f"frame to answers, {label}")
    covers = sorted({(cell.way.rate, cell.way.delay_samples) for cell in cells})
    cover = cells[0].way.cover
    delays_ms = [1e3 * (cover - 1) / rate for rate, _ in covers]
    axes.plot(
        [rate for rate, _ in covers], delays_ms, color=COLOURS[2], linestyle="--", linewidth=1.5,
        label=f"wait for the {cover} predictions of a mean",
    )  # fmt: skip
    axes.axhline(1e3 * period_s, color=COLOURS[7], linestyle=":", label="the next frame is there")
    axes.set(
        title="Latency of frames that arrive at once; bands: from least to most", xscale="log", yscale="log",
        xlabel="predictions for a second of data", ylabel="milliseconds",
    )  # fmt: skip
    rates = sorted({cell.way.rate for cell in cells})
    axes.set_xticks(rates, [str(rate) for rate in rates])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    return _saved(figure, path)


def draw_aggregation(data: Recording, cleaned: Sequence[Cleaned], path: Path) -> Path:
    """Spectra before and after, and what is left over how long it takes."""
    figure, (spectra, trade) = plt.subplots(
        1, 2, figsize=(12, 5), layout="constrained", gridspec_kw={"width_ratios": [3, 2]}
    )
    frequencies, raw = spectrum(data.strain)
    shown = (frequencies >= 20) & (frequencies <= 480)
    spectra.semilogy(frequencies[shown], raw[shown], color="black", linewidth=1, label="as measured")
    for number, one in enumerate(cleaned):
        _, left = spectrum(one.strain)
        label = f"mean of {one.way.cover}, {1e3 * one.delay_s:.0f} ms later"
        spectra.semilogy(frequencies[shown], left[shown], color=COLOURS[number], linewidth=1.2, label=label)
    _, quiet = spectrum(data.quiet)
    spectra.semilogy(
        frequencies[shown], quiet[shown], color=COLOURS[7], linewidth=1, linestyle=":", label="without the machine"
    )
    spectra.set(title="Spectrum of the strain", xlabel="frequency [Hz]", ylabel="power [1/Hz]")
    spectra.legend(fontsize="small", loc="upper right")
    trade.plot(
        [1e3 * one.delay_s for one in cleaned],
        [one.left_db for one in cleaned],
        color=COLOURS[7],
        linewidth=1,
        zorder=1,
    )
    for number, one in enumerate(cleaned):
        trade.scatter([1e3 * one.delay_s], [one.left_db], color=COLOURS[number], s=60, zorder=2)
        trade.annotate(f" {one.way.cover}", (1e3 * one.delay_s, one.left_db), va="bottom")
    trade.set(title="What is left of the machine's noise", xlabel="wait for the mean [ms]", ylabel="power left [dB]")
    trade.grid(alpha=0.3)
    return _saved(figure, path)
