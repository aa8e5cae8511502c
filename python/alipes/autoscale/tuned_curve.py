"""The service curve that trials of `alipes tune` measured."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from alipes.autoscale.curve import ServiceCurve
from alipes.errors import ConfigError
from alipes.tune.knobs import CALLERS, ROWS
from alipes.tune.outcome import Outcome

__all__ = ["curve_of", "read_curve"]

_MAX_BYTES: Final = 64 << 20
"""Of a file with trials: each takes about a kilobyte."""


def read_curve(path: Path, model: str | None = None) -> ServiceCurve:
    """The service curve in a result of `alipes tune`: what it prints with `--json`, or its `history.jsonl`.

    Raises:
        ConfigError: If the file cannot be read, or has no trials of the model.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ConfigError(f"'{path}' has more than {_MAX_BYTES >> 20} MiB: it is no result of alipes tune")
        trials = [Outcome.from_document(one) for one in _documents(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(
            f"'{path}' cannot be read as a result of alipes tune: {error}; name its history.jsonl, or what "
            "alipes tune --json printed",
            path=path,
        ) from error
    return curve_of(trials, model)


def curve_of(trials: Iterable[Outcome], model: str | None = None) -> ServiceCurve:
    """What trials showed of a model that differ in the number of callers alone.

    Args:
        trials: Of `alipes tune`. Of several configurations, that with the most points is taken, and of equal ones
            the fastest.
        model: Its name; needed where there are several.

    Raises:
        ConfigError: If no trial says how fast the model is.
    """
    configurations: dict[str, dict[int, Outcome]] = {}
    for trial in trials:
        name = _model_of(trial, model)
        callers = trial.point.number(name, CALLERS)
        if not trial.failure and callers and trial.figures.get("rate"):
            configurations.setdefault(trial.point.variant.key, {})[callers] = trial
    if not configurations:
        raise ConfigError("no trial has a number of callers and a rate: run alipes tune with --try callers=1,2,4,8")
    chosen = max(configurations.values(), key=lambda row: (len(row), max(map(_rate, row.values()))))
    points = sorted(chosen.items())
    p99s_ms = [trial.figures["p99_ms"] for _, trial in points if "p99_ms" in trial.figures]
    return ServiceCurve(
        tuple(float(callers) for callers, _ in points),
        tuple(_rate(trial) for _, trial in points),
        tuple(p99s_ms) if len(p99s_ms) == len(points) else (),
    )


def _documents(text: str) -> Sequence[Mapping[str, Any]]:
    try:
        return list(json.loads(text)["trials"])
    except (ValueError, KeyError):
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def _model_of(trial: Outcome, model: str | None) -> str:
    names = list(dict.fromkeys(name for name, _, _ in trial.point.values))
    if model is None and len(names) == 1:
        return names[0]
    if model not in names:
        wanted = "name one with --model" if model is None else f"there is no '{model}'"
        raise ConfigError(f"the trials are of {', '.join(names)}: {wanted}")
    return model


def _rate(trial: Outcome) -> float:
    """Requests per second: a trial counts rows."""
    rows = [value for _, knob, value in trial.point.values if knob == ROWS and isinstance(value, int)]
    return trial.figures["rate"] / (rows[0] if rows else 1)
