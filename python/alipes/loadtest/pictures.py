"""Pictures of load tests and of comparisons; they need the extra `plots`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from alipes.errors import ConfigError
from alipes.loadtest.comparison import PERCENTILES, Comparison
from alipes.loadtest.level import Level
from alipes.plots.picture import COLOURS, finish, label_decades, panel, picture

if TYPE_CHECKING:
    from alipes.loadtest.report import Report

__all__ = ["comparison_panels", "plot_comparison", "plot_report", "report_panels"]

_INCHES: Final = (11.0, 7.5)
_MAX_LABELLED: Final = 8
"""Levels up to which each has a line of its own."""
_TAIL: Final = (50, 90, 99, 99.9, 99.99, 99.999)


def plot_report(report: Report, path: str | os.PathLike[str] | None = None) -> Any:
    """Draws a load test: rates, latencies, their distribution, and the windows.

    Raises:
        ConfigError: If there is no answer to draw.
        Unsupported: If matplotlib is not installed.
    """
    figure = picture()
    figure.set_size_inches(*_INCHES)
    figure.get_layout_engine().set(hspace=0.06, wspace=0.04)
    for draw, axis in zip(_report_parts(report), figure.subplots(2, 2).flat, strict=True):
        draw(axis)
    return finish(figure, path)


def report_panels(report: Report) -> list[Any]:
    """The parts of the picture of a load test, each as a figure.

    Raises:
        ConfigError: If there is no answer to draw.
        Unsupported: If matplotlib is not installed.
    """
    return [_drawn_alone(draw) for draw in _report_parts(report)]


def _report_parts(report: Report) -> list[Callable[[Any], None]]:
    levels = [level for level in report.levels if level.result.answers]
    if not levels:
        raise ConfigError("there is nothing to draw: no request was answered")
    chosen = _chosen(levels)
    return [
        partial(_rates, levels=levels),
        partial(_latencies, levels=levels),
        partial(_tails, named=[(str(level.pace), level) for level in chosen]),
        partial(_windows, levels=chosen),
    ]


def _drawn_alone(draw: Callable[[Any], None]) -> Any:
    figure = panel()
    draw(figure.add_subplot())
    return figure


def plot_comparison(comparison: Comparison, path: str | os.PathLike[str] | None = None) -> Any:
    """Draws a comparison: ratios with their intervals, rounds, and the distributions of the latency.

    Raises:
        ConfigError: If a side has no answer to draw.
        Unsupported: If matplotlib is not installed.
    """
    figure = picture()
    figure.set_size_inches(_INCHES[0], _INCHES[1] / 2)
    for draw, axis in zip(_comparison_parts(comparison), figure.subplots(1, 3), strict=True):
        draw(axis)
    return finish(figure, path)


def comparison_panels(comparison: Comparison) -> list[Any]:
    """The parts of the picture of a comparison, each as a figure.

    Raises:
        ConfigError: If a side has no answer to draw.
        Unsupported: If matplotlib is not installed.
    """
    return [_drawn_alone(draw) for draw in _comparison_parts(comparison)]


def _comparison_parts(comparison: Comparison) -> list[Callable[[Any], None]]:
    levels = comparison.levels
    if not all(level.windows and level.result.answers for level in levels):
        raise ConfigError("there is nothing to draw: a side answered no request")
    named = list(zip((one.name for one in comparison.candidates), levels, strict=True))
    return [
        partial(_ratios, comparison=comparison),
        partial(_rounds, named=named),
        partial(_tails, named=named),
    ]


def _rounds(axis: Any, named: Sequence[tuple[str, Level]]) -> None:
    for number, (name, level) in enumerate(named):
        rates = [window.rate for window in level.windows]
        axis.plot(range(1, len(rates) + 1), rates, color=COLOURS[number], marker="o", label=name)
    axis.set(title="Rate in each round", xlabel="Round", ylabel="Answers / s")
    _from_zero(axis)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.legend(fontsize="small")


def _rates(axis: Any, levels: Sequence[Level]) -> None:
    places = range(len(levels))
    means = [level.rate.mean for level in levels]
    errors = [np.nan_to_num(level.rate.high - level.rate.mean) for level in levels]
    axis.errorbar(places, means, errors, color=COLOURS[0], marker="o", capsize=4)
    _name_levels(axis, levels)
    axis.set(title="Rate, with 95 % intervals", ylabel="Answers / s")
    _from_zero(axis)


def _latencies(axis: Any, levels: Sequence[Level]) -> None:
    for number, percent in enumerate(PERCENTILES):
        times = [level.result.latencies.percentile_ms(percent) for level in levels]
        axis.plot(range(len(levels)), times, color=COLOURS[number], marker="o", label=f"p{percent:g}")
    _name_levels(axis, levels)
    axis.set(title="Latency", ylabel="ms")
    axis.set_yscale("log")
    label_decades(axis.yaxis)
    axis.legend(fontsize="small")


def _tails(axis: Any, named: Sequence[tuple[str, Level]]) -> None:
    """Latency by percentile, on an axis on which each step to the right has a tenth of the answers beyond it."""
    most = max(level.result.answers for _, level in named)
    for number, (name, level) in enumerate(named):
        histogram = level.result.latencies
        share = np.cumsum(histogram.counts) / histogram.count
        # The longest one would stand at infinity; it is drawn where the last answer but half of one is.
        beyond = np.maximum(1 - share, 0.5 / histogram.count)
        axis.step(1 / beyond, histogram.times_ns / 1e6, where="pre", color=COLOURS[number % len(COLOURS)], label=name)
    ticks = [percent for percent in _TAIL if 100 / (100 - percent) <= 2 * most]
    axis.set(title="Latency by percentile", ylabel="ms", xlabel="Percent of answers within", xscale="log", yscale="log")
    axis.set_xticks([100 / (100 - percent) for percent in ticks], [f"{percent:g}" for percent in ticks])
    axis.minorticks_off()
    label_decades(axis.yaxis)
    axis.grid(alpha=0.3)
    axis.legend(fontsize="small")


def _windows(axis: Any, levels: Sequence[Level]) -> None:
    """The rate of each window; those that count are filled."""
    for number, level in enumerate(levels):
        rates = [window.rate for window in level.windows]
        places = np.arange(1, len(rates) + 1)
        colour = COLOURS[number % len(COLOURS)]
        axis.plot(places, rates, color=colour, marker="o", markerfacecolor="white", label=str(level.pace))
        axis.plot(places[-level.used :], rates[-level.used :], color=colour, marker="o", linestyle="")
    axis.set(title="Windows, filled where they count", xlabel="Window", ylabel="Answers / s")
    _from_zero(axis)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.legend(fontsize="small")


def _ratios(axis: Any, comparison: Comparison) -> None:
    known = [(name.removesuffix("_ms"), ratio) for name, ratio in comparison.ratios.items() if ratio.is_known]
    for place, (_, ratio) in enumerate(known):
        colour = COLOURS[1] if ratio.differs else COLOURS[7]
        reach = [[ratio.value - ratio.low], [ratio.high - ratio.value]]
        axis.errorbar([ratio.value], [place], xerr=reach, color=colour, marker="o", capsize=4)
    axis.axvline(1, color=COLOURS[7], linestyle=":")
    axis.set_yticks(range(len(known)), [name for name, _ in known])
    axis.set_ylim(len(known) - 0.5, -0.5)
    first, second = (one.name for one in comparison.candidates)
    axis.set(title=f"{second} / {first}", xlabel="Ratio, with 95 % intervals", xscale="log")
    # A ratio and its inverse are equally far from 1; the axis shows some tenths to both sides in any case.
    most = max([1.25, *(max(ratio.high, 1 / ratio.low) * 1.1 for _, ratio in known)])
    axis.set_xlim(1 / most, most)
    label_decades(axis.xaxis)
    if most <= 10:
        axis.set_xticks(_around_one(most))


def _around_one(reach: float) -> list[float]:
    """Ratios to name on an axis that reaches so far to both sides."""
    return [ratio for ratio in (0.1, 0.2, 0.5, 0.8, 1, 1.25, 2, 5, 10) if 1 / reach <= ratio <= reach]


def _name_levels(axis: Any, levels: Sequence[Level]) -> None:
    shown = range(0, len(levels), max(1, len(levels) // _MAX_LABELLED))
    axis.set_xticks(list(shown), [str(levels[place].pace) for place in shown], fontsize="small")
    axis.set_xlim(-0.5, len(levels) - 0.5)
    axis.grid(alpha=0.3)


def _from_zero(axis: Any) -> None:
    """Rates between nothing and a bit more than the largest."""
    axis.set_ylim(0, axis.get_ylim()[1])
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")


def _chosen(levels: Sequence[Level]) -> Sequence[Level]:
    """At most so many that their lines can be told apart: the first, the last, and some between."""
    if len(levels) <= _MAX_LABELLED:
        return levels
    return [levels[round(place)] for place in np.linspace(0, len(levels) - 1, _MAX_LABELLED)]
