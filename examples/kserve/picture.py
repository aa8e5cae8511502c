"""The picture of a run: versions and their latencies, a server that comes and goes, and what Knative would do."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from alipes.autoscale import SimulatedDay
from alipes.plots.picture import COLOURS, finish, label_decades, picture
from record import Record
from scaling import FromZero

__all__ = ["draw"]

_INCHES: Final = (12.0, 9.0)
_PART_S: Final = 0.5
"""Latencies are drawn for parts of the time that are so long."""
_GREY: Final = COLOURS[7]
_LABEL: Final = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}


def draw(record: Record, came: FromZero, day: SimulatedDay, path: Path) -> Path:
    """Draws all of it.

    Raises:
        Unsupported: If matplotlib is not installed.
    """
    figure = picture()
    figure.set_size_inches(*_INCHES)
    places = figure.add_gridspec(3, 2, height_ratios=(3, 2, 3))
    versions = figure.add_subplot(places[0, :])
    _versions(versions, record)
    _latencies(figure.add_subplot(places[1, :], sharex=versions), record)
    _from_zero(figure.add_subplot(places[2, 0]), came)
    _replicas(figure.add_subplot(places[2, 1]), day)
    finish(figure, path)
    return path


def _versions(axes: Any, record: Record) -> None:
    """Requests per second of each version, one upon the other, and what was decided when."""
    times_s = np.array([at_s for at_s, _ in record.counts])
    numbers = sorted({number for _, counts in record.counts for number in counts})
    rates = [_rates(times_s, [counts.get(number, 0) for _, counts in record.counts]) for number in numbers]
    labels = [f"version {number}" for number in numbers]
    axes.stackplot(times_s[1:], rates, labels=labels, colors=COLOURS, alpha=0.8, linewidth=0)
    highest = float(np.sum(rates, axis=0).max(initial=1.0))
    axes.set(ylabel="requests per second", ylim=(0, 1.45 * highest), xlim=(0, times_s[-1]))
    axes.set_title("A version is promoted, another one is taken back", loc="left")
    _mark(axes, record)
    for number, (at_s, text) in enumerate(record.moments):
        height = (1.36, 1.24, 1.12)[number % 3] * highest
        axes.text(at_s, height, text, fontsize="small", va="center", bbox=_LABEL)
    axes.legend(loc="lower left", fontsize="small", ncols=len(numbers))


def _mark(axes: Any, record: Record) -> None:
    """A line at each decision."""
    for at_s, _ in record.moments:
        axes.axvline(at_s, color="black", linewidth=0.8, linestyle=":")


def _rates(times_s: np.ndarray, counts: list[int]) -> np.ndarray:
    """Requests per second between readings; a version that is loaded anew counts from nothing."""
    steps = np.diff(counts)
    return np.where(steps < 0, counts[1:], steps) / np.diff(times_s)


def _latencies(axes: Any, record: Record) -> None:
    """The median and the 99th percentile of what callers saw."""
    times_s, latencies_s = np.array(record.latencies).T
    parts = (times_s / _PART_S).astype(int)
    shown = np.unique(parts)[:-1]  # the last one is not over
    for colour, percent, label in ((_GREY, 99, "99 %"), ("black", 50, "median")):
        values = [1e3 * np.percentile(latencies_s[parts == part], percent) for part in shown]
        axes.step(shown * _PART_S, values, where="post", color=colour, linewidth=1.2, label=label)
    _mark(axes, record)
    axes.set(xlabel="seconds", ylabel="milliseconds", ylim=(0, 1.4 * axes.get_ylim()[1]))
    axes.set_title("Latency at the transformer, as its callers see it", loc="left")
    axes.legend(loc="upper left", fontsize="small", ncols=2)


def _from_zero(axes: Any, came: FromZero) -> None:
    """Requests and how long they took; where a server ran, there is colour."""
    for number, (from_s, to_s) in enumerate(came.runs):
        axes.axvspan(
            from_s, to_s, color=COLOURS[0], alpha=0.2, linewidth=0, label="a server runs" if number == 0 else None
        )
    times_s, latencies_s = np.array(came.requests).T
    axes.plot(times_s, 1e3 * latencies_s, "o", color=COLOURS[1], markersize=5, label="a request")
    axes.set(xlabel="seconds", ylabel="milliseconds", yscale="log", ylim=(1, 6e3 * came.start_s))
    label_decades(axes.yaxis)
    axes.set_title(f"No server until somebody asks: the first waits up to {came.start_s:.1f} s", loc="left")
    axes.legend(loc="upper left", fontsize="small", ncols=2)


def _replicas(axes: Any, day: SimulatedDay) -> None:
    """Requests of a quarter of an hour, and the replicas that Knative orders for them."""
    minutes = np.arange(len(day.arrived)) / 60
    axes.fill_between(minutes, day.arrived, step="post", color=_GREY, alpha=0.35, linewidth=0)
    axes.set(xlabel="minutes", ylim=(0, 1.25 * day.arrived.max()), xlim=(0, minutes[-1]))
    axes.set_ylabel("requests per second", color=_GREY)
    axes.tick_params(axis="y", colors=_GREY)
    beside = axes.twinx()
    beside.step(minutes, day.replicas, where="post", color=COLOURS[2], linewidth=1.6)
    beside.set(ylim=(0, 1.25 * day.replicas.max()))
    beside.set_ylabel("replicas", color=COLOURS[2])
    beside.tick_params(axis="y", colors=COLOURS[2])
    axes.set_title("Knative with one request at a time, replayed", loc="left")
