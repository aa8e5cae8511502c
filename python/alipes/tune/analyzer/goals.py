"""Model Analyzer's objectives and constraints, read as a goal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from alipes.errors import ConfigError
from alipes.tune.analyzer.document import OptionsDocument
from alipes.tune.analyzer.options import FIGURE_OF_METRIC
from alipes.tune.goal import Goal, Limit, Objective

__all__ = ["read_goal"]

_MAX_ALTERNATIVES: Final = 100


def read_goal(document: OptionsDocument, spec: Mapping[str, Any]) -> Goal:
    """The goal of a model: its own options go in front of those of all.

    Raises:
        ConfigError: If they name a metric that is not measured, or cannot be read.
    """
    wanted = spec.get("objectives") or document.get("objectives") or {"perf_throughput": 10}
    weights = dict.fromkeys(wanted, 10) if isinstance(wanted, list) else wanted
    if isinstance(wanted, str):
        weights = dict.fromkeys((name.strip() for name in wanted.split(",")), 10)
    if not isinstance(weights, dict):
        raise document.wrong("objectives", "has metrics, or weights by metric", wanted)
    objectives = tuple(Objective(_figure(document, name), float(weight)) for name, weight in weights.items())
    groups = _constraints(document, spec.get("constraints") or document.get("constraints") or {})
    return Goal(objectives, groups[0]) if len(groups) == 1 else Goal(objectives, alternatives=tuple(groups))


def _constraints(document: OptionsDocument, wanted: Any) -> list[tuple[Limit, ...]]:
    """Bounds by metric, all of which have to be kept; or a list of such, one of which has to be kept whole."""
    groups = wanted if isinstance(wanted, list) else [wanted]
    if not groups or not all(isinstance(group, dict) and (group or groups == [wanted]) for group in groups):
        raise document.wrong("constraints", "has bounds by metric, or a list of such", wanted)
    if len(groups) > _MAX_ALTERNATIVES:
        raise document.wrong("constraints", f"has {_MAX_ALTERNATIVES} alternatives at most", f"{len(groups)}")
    short = {
        "perf_latency_p99": ("max", document.get("latency_budget")),
        "perf_throughput": ("min", document.get("min_throughput")),
    }
    always = {metric: {kind: bound} for metric, (kind, bound) in short.items() if bound is not None}
    return [tuple(_limit(document, name, bounds) for name, bounds in {**group, **always}.items()) for group in groups]


def _limit(document: OptionsDocument, name: str, bounds: Any) -> Limit:
    if not isinstance(bounds, dict) or len(bounds) != 1 or not bounds.keys() <= {"min", "max"}:
        raise document.wrong("constraints", "has min or max by metric", {name: bounds})
    ((kind, bound),) = bounds.items()
    if not isinstance(bound, int | float) or isinstance(bound, bool):
        raise document.wrong("constraints", "has a number for each bound", {name: bounds})
    return Limit(_figure(document, name), float(bound), "at least" if kind == "min" else "at most")


def _figure(document: OptionsDocument, metric: str) -> str:
    if metric not in FIGURE_OF_METRIC:
        known = ", ".join(FIGURE_OF_METRIC)
        raise ConfigError(f"metric '{metric}' is not measured: expected {known}", path=document.path, key=metric)
    return FIGURE_OF_METRIC[metric]
