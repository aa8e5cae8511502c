"""The picture of a search: what the detectors saw, what the network made of it, and how busy the server was."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")  # a file is drawn, no window opened

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from network import STRIDE, WINDOW
from strain import DETECTORS, RATE_HZ, Injection, noise_psd

# Where the strain is drawn thinner than this, nobody sees the difference.
_POINTS = 6000


def draw(
    data: npt.NDArray[np.float32],
    snr: npt.NDArray[np.float32],
    injections: Sequence[Injection],
    statistics: Path,
    output: Path,
) -> Path:
    """Draws the picture and gives its file."""
    figure, (strain, search, server) = plt.subplots(3, 1, figsize=(11, 9), layout="constrained")
    _draw_strain(strain, data)
    _draw_search(search, snr, injections)
    search.sharex(strain)
    _draw_server(server, statistics)
    figure.savefig(output, dpi=120)
    plt.close(figure)
    return output


def _whitened(row: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    psd = noise_psd(np.fft.rfftfreq(len(row), 1 / RATE_HZ))
    return np.fft.irfft(np.fft.rfft(row) / np.sqrt(psd * RATE_HZ / 2.0), len(row))


def _draw_strain(axes: plt.Axes, data: npt.NDArray[np.float32]) -> None:
    step = max(1, data.shape[1] // _POINTS)
    for place, (row, name) in enumerate(zip(data, DETECTORS, strict=True)):
        times = np.arange(0, len(row), step) / RATE_HZ
        axes.plot(times, _whitened(row)[::step] + 8 * place, linewidth=0.4, label=name)
    axes.set(title="Strain of two detectors, whitened", yticks=[], xlabel="time [s]")
    axes.legend(loc="upper right", ncols=2)


def _draw_search(axes: plt.Axes, snr: npt.NDArray[np.float32], injections: Sequence[Injection]) -> None:
    times = np.arange(1, len(snr) + 1) * STRIDE / RATE_HZ
    full = WINDOW // STRIDE - 1
    for one in injections:
        axes.axvline(one.time_s, color="tab:red", linestyle=":", linewidth=1)
    axes.plot(times[full:], snr[full:], color="black", linewidth=0.9)
    axes.axhline(8.0, color="tab:gray", linewidth=0.8)
    axes.set(
        title="What came back from the stream; dotted, where an inspiral was put in", ylabel="SNR", xlabel="time [s]"
    )


def _draw_server(axes: plt.Axes, statistics: Path) -> None:
    with statistics.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for model in sorted({row["model"] for row in rows}):
        mine = [row for row in rows if row["model"] == model]
        times = [float(row["timestamp"]) - float(rows[0]["timestamp"]) for row in mine]
        taken = [float(row["request"]) / max(float(row["count"]), 1.0) / 1000.0 for row in mine]
        axes.plot(times, taken, marker=".", label=model)
    axes.set(title="Time of a request in the server", ylabel="milliseconds", xlabel="time of streaming [s]")
    if rows:
        axes.legend(loc="upper right")
