"""A picture of all candidates in two figures."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from alipes.plots.picture import COLOURS, finish, picture
from alipes.tune.goal import figure_of

if TYPE_CHECKING:
    from alipes.tune.results import Results

__all__ = ["plot_results"]


def plot_results(results: Results, across: str, up: str, path: str | os.PathLike[str] | None) -> Any:
    """Draws what `Results.plot` says."""
    labels = [_label(name) for name in (across, up)]
    figure = picture()
    axes = figure.add_subplot()
    axes.set(title=f"{len(results.ranked)} trials", xlabel=labels[0], ylabel=labels[1])
    shown = [one for one in results.ranked if across in one.figures and up in one.figures]
    good = [one for one in shown if results.rank(one).compliance == 0]
    missed = [one for one in shown if results.rank(one).compliance < 0]
    for group, colour, label in ((good, COLOURS[0], "keeps all limits"), (missed, COLOURS[7], "misses a limit")):
        if group:
            axes.scatter(*_columns(group, across, up), s=18, color=colour, label=label, zorder=2)
    front = results.pareto(across, up)
    if front:
        axes.plot(*_columns(front, across, up), color=COLOURS[2], linewidth=1, label="not beaten in both", zorder=1)
    # Where they are one, the larger ring lies around the smaller one.
    for outcome, label, colour, size in (
        (results.best, "best", COLOURS[1], 90),
        (results.present, "as it was", COLOURS[3], 220),
    ):
        if outcome is not None and across in outcome.figures and up in outcome.figures:
            axes.scatter(
                *_columns([outcome], across, up), s=size, facecolors="none", edgecolors=colour, linewidths=2,
                label=label, zorder=3,
            )  # fmt: skip
    for limit in results.goal.limits:
        draw = {across: axes.axvline, up: axes.axhline}.get(limit.metric)
        if draw is not None:
            draw(limit.bound, color=COLOURS[7], linestyle=":", linewidth=1)
    if shown:
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.legend(loc="best", fontsize="small")
    return finish(figure, path)


def _label(name: str) -> str:
    figure = figure_of(name)
    model = name.rpartition(".")[0]
    text = f"{figure.label} [{figure.unit.strip()}]" if figure.unit else figure.label
    return f"{text} of {model}" if model else text[0].upper() + text[1:]


def _columns(outcomes: list[Any], across: str, up: str) -> tuple[list[float], list[float]]:
    return [one.figures[across] for one in outcomes], [one.figures[up] for one in outcomes]
