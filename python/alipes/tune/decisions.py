"""One sentence for each decision: what was chosen, instead of what, and what it brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from alipes.tune.goal import figure_of
from alipes.tune.knobs import CALLERS, KNOBS, Value
from alipes.tune.outcome import Outcome
from alipes.tune.point import texts

if TYPE_CHECKING:
    from alipes.tune.results import Results

__all__ = ["amount", "decisions"]


def decisions(results: Results) -> list[str]:
    """The sentences, the most important one first."""
    best = results.best
    if best is None:
        failures = [outcome.failure for outcome in results.outcomes if outcome.failure]
        why = f": {failures[0]}" if failures else ", since none was made"
        return [f"No trial gave figures{why}."]
    return [
        *_limits(results, best),
        *_against_present(results, best),
        *(_of_axis(results, best, axis.model, axis.knob) for axis in results.space.axes if len(axis.values) > 1),
        *_left_out(results),
    ]


def amount(metric: str, value: float) -> str:
    """A figure with its unit."""
    digits = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return f"{digits}{figure_of(metric).unit}"


def _limits(results: Results, best: Outcome) -> list[str]:
    missed = results.goal.missed(best.figures)
    if missed:
        seen = " and ".join(
            f"{limit}, where it has {amount(limit.metric, best.figures[limit.metric])}" for limit in missed
        )
        return [f"No trial kept all limits; this one comes nearest. It misses: {seen}."]
    if limits := results.goal.limits_for(best.figures):
        held_ones = " and ".join(f"{one} ({amount(one.metric, best.figures[one.metric])})" for one in limits)
        return [f"It keeps {held_ones}."]
    return []


def _against_present(results: Results, best: Outcome) -> list[str]:
    present = results.present
    if present is None:
        return []
    if present.failure:
        return [f"The configuration as it was gave no figures under this load: {present.failure}."]
    if not best.point.variant.differences(present.point.variant):
        return ["The configuration as it was is the best that was found."]
    return [f"Against the configuration as it was, under the same load: {_change(results, present, best)}."]


def _of_axis(results: Results, best: Outcome, model: str, knob: str) -> str:
    """What the value of one knob brings, by the trials that differ from the best in this knob alone."""
    chosen = best.point.of_model(model).get(knob)
    if chosen is None:
        return f"{_label(results, model, knob)}: as it was."
    name = f"{_label(results, model, knob)}: {texts([chosen])}"
    others = _siblings(results, best, model, knob)
    measured = [outcome for outcome in others if not outcome.failure]
    if not measured:
        failed = [f"with {_value(outcome, model, knob)} {outcome.failure}" for outcome in others]
        return f"{name}; {'; '.join(failed) or 'no trial differs in this alone'}."
    rival = max(measured, key=results.rank)
    return f"{name} rather than {_value(rival, model, knob)}: {_change(results, rival, best)}."


def _siblings(results: Results, best: Outcome, model: str, knob: str) -> list[Outcome]:
    return [
        outcome
        for outcome in results.outcomes
        if [row[:2] for row in outcome.point.differences(best.point)] == [(model, knob)]
    ]


def _value(outcome: Outcome, model: str, knob: str) -> str:
    value: Value = outcome.point.of_model(model)[knob]
    return texts([value])


def _change(results: Results, before: Outcome, after: Outcome) -> str:
    """How the figures of the goal differ between two outcomes."""
    parts = [_of_metric(metric, before, after) for metric in results.goal.metrics]
    missed = [
        str(limit) for limit in results.goal.missed(before.figures) if limit not in results.goal.missed(after.figures)
    ]
    text = ", ".join(part for part in parts if part)
    return f"{text}; the other one misses {' and '.join(missed)}" if missed else text


def _of_metric(metric: str, before: Outcome, after: Outcome) -> str:
    if metric not in before.figures or metric not in after.figures:
        return ""
    old, new = before.figures[metric], after.figures[metric]
    label = figure_of(metric).label
    front = f"{model} " if (model := metric.rpartition(".")[0]) else ""
    share = (new - old) / old if old else 0.0
    change = "the same" if abs(share) < 0.005 else f"{share:+.0%}"
    doubt = ""
    if metric == "rate" and _overlap(before, after):
        doubt = ", within the noise"
    return f"{front}{label} {amount(metric, new)} instead of {amount(metric, old)} ({change}{doubt})"


def _overlap(before: Outcome, after: Outcome) -> bool:
    """Whether the 95 % intervals of the throughput share values."""
    names: Sequence[str] = ("rate_low", "rate_high")
    if any(name not in outcome.figures for name in names for outcome in (before, after)):
        return False
    low, high = (max, min)
    return low(before.figures["rate_low"], after.figures["rate_low"]) <= high(
        before.figures["rate_high"], after.figures["rate_high"]
    )


def _left_out(results: Results) -> list[str]:
    reasons: dict[str, int] = {}
    for one in results.rejected:
        reasons[one.reason] = reasons.get(one.reason, 0) + 1
    return [
        f"{'1 point was' if count == 1 else f'{count:,} points were'} left out: {reason}."
        for reason, count in reasons.items()
    ]


def _label(results: Results, model: str, knob: str) -> str:
    several = len({axis.model for axis in results.space.axes}) > 1
    label = "load" if knob == CALLERS else KNOBS[knob].label
    return f"{label} of {model}" if several else label[0].upper() + label[1:]
