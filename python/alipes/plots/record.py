"""How long requests waited while a monitor looked, and how much got through."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from alipes.errors import MonitorError
from alipes.monitor.files import read_rows
from alipes.monitor.ledger import Row
from alipes.plots.picture import COLOURS, finish, marker, picture

__all__ = ["Curve", "curves", "plot_monitor"]


@dataclass(slots=True)
class Curve:
    """What one server did with one model.

    Attributes:
        label: The model, and the server where there are several.
        seconds: When, from the beginning of the record.
        waiting_us: Mean time in the queue in each interval.
        a_second: Executions a second in each interval.
    """

    label: str
    seconds: list[float] = field(default_factory=list)
    waiting_us: list[float] = field(default_factory=list)
    a_second: list[float] = field(default_factory=list)


def plot_monitor(
    record: str | os.PathLike[str] | Iterable[Row],
    *,
    models: Sequence[str] | None = None,
    batch_size: int = 1,
    sampling_rate: float | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Any:
    """Draws the mean time in each model's queue against time, as solid lines, and what got through, as dotted ones.

    Where there are few intervals they are marked, by points and by crosses. The first interval of each model is left
    out: its first execution is slow, and would make the rest a flat line.

    Args:
        record: The file of a monitor, or its rows.
        models: Which models; all by default.
        batch_size: Windows in an execution.
        sampling_rate: Windows in a second of data. With it throughput is in seconds of data a second; without, in
            executions.
        path: A file for the picture.

    Returns:
        The figure, of matplotlib.

    Raises:
        MonitorError: If there is nothing to draw.
        Unsupported: If matplotlib is not installed.
    """
    rows = read_rows(Path(record)) if isinstance(record, (str, os.PathLike)) else list(record)
    drawn = curves([row for row in rows if models is None or row.model in models])
    if not drawn:
        raise MonitorError(
            "there is nothing to draw: the record has no two rows of a model, of which the first does not count; watch "
            "for longer, or more often"
        )
    figure = picture()
    waiting = figure.add_subplot()
    waiting.set(
        title="Queuing latency vs. time",
        xlabel="Time from start of monitoring [s]",
        ylabel="Average queue latency in interval [us]",
    )
    through = waiting.twinx()
    through.set_ylabel("Throughput [executions / s]" if sampling_rate is None else "Throughput [data s / s]")
    scale = 1.0 if sampling_rate is None else batch_size / sampling_rate
    for number, curve in enumerate(drawn):
        colour = COLOURS[number % len(COLOURS)]
        few = len(curve.seconds)
        latency, throughput = f"{curve.label} queue latency", f"{curve.label} throughput"
        waiting.plot(curve.seconds, curve.waiting_us, color=colour, linewidth=2, marker=marker(few), label=latency)
        values = [value * scale for value in curve.a_second]
        through.plot(curve.seconds, values, color=colour, linewidth=1.5, linestyle=":", marker=marker(few, "x"))
        waiting.plot([], [], color=colour, linestyle=":", marker=marker(few, "x"), label=throughput)
    # A single moment would get an axis of milliseconds around it.
    waiting.set_xlim(0, 1.05 * max(max(curve.seconds) for curve in drawn))
    for axis in (waiting, through):
        axis.set_ylim(0, axis.get_ylim()[1] * 1.05)
    waiting.legend(loc="best", fontsize="small")
    return finish(figure, path)


def curves(rows: Sequence[Row]) -> list[Curve]:
    """What each server did with each model, from its second row on."""
    several = len({row.ip for row in rows}) > 1
    begun = min((row.timestamp for row in rows), default=0.0)
    by_source: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_source.setdefault((row.model, row.ip), []).append(row)
    found = []
    for (model, ip), mine in by_source.items():
        curve = Curve(f"{model} at {ip}" if several else model)
        for before, row in pairwise(mine):
            passed = row.timestamp - before.timestamp
            if row.count > 0 and passed > 0:
                curve.seconds.append(row.timestamp - begun)
                curve.waiting_us.append(row.durations_us["queue"] / row.count)
                curve.a_second.append(row.count / passed)
        if curve.seconds:
            found.append(curve)
    return found
