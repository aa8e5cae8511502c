"""Searches a space of configurations by trials."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

import alipes
from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError
from alipes.loadtest import Measuring, ModelRequests
from alipes.serve.flags import FlagValue
from alipes.tune.course import Course
from alipes.tune.defaults import default_space
from alipes.tune.goal import Goal
from alipes.tune.history import History
from alipes.tune.knobs import KNOBS, Value
from alipes.tune.live import LiveTrials, read_live
from alipes.tune.machine import Machine
from alipes.tune.models import TunedModel, present_values, read_models
from alipes.tune.outcome import Outcome
from alipes.tune.point import Point
from alipes.tune.possible import Checks
from alipes.tune.results import Rejected, Results
from alipes.tune.search.base import Search
from alipes.tune.search.brute import Brute
from alipes.tune.search.quick import Quick
from alipes.tune.space import Space
from alipes.tune.trials import ServerTrials, Workload
from alipes.tune.variant import changed

__all__ = ["Ranges", "run"]

Ranges: TypeAlias = Mapping[str, Sequence[Value]] | Mapping[str, Mapping[str, Sequence[Value]]]
"""Values by knob, or by model and knob."""
SearchName: TypeAlias = Literal["quick", "brute", "optuna"]

_SMALL: Final = 12
"""A space with no more points is searched whole."""
_SHARE: Final = 3
"""A quick search may make a third of the trials that all points would take,"""
_MOST: Final = 60
"""and no more than these."""
_SPARE: Final = 5
"""One of so many trials confirms what was found."""
_LEAST_SPARE: Final = 3
_BEYOND: Final = 8
"""Where every point is tried, so many trials at least may confirm what was found."""
_MEMORY_SHARE: Final = 0.9
"""Share of the machine's memory that a server may hold."""


def run(  # noqa: PLR0913  # what a search is, by name
    repository: str | os.PathLike[str],
    models: str | ModelRequests | Sequence[str | ModelRequests],
    *,
    ranges: Ranges | Callable[[Mapping[str, ModelConfig]], Ranges] | None = None,
    goal: Goal | None = None,
    search: SearchName | Callable[[Space, Point], Search] = "quick",
    trials: int | None = None,
    measuring: Measuring | None = None,
    protocol: Literal["http", "grpc"] = "http",
    history: str | os.PathLike[str] | None = None,
    extra_models: Sequence[str] = (),
    seed: int = 0,
    each: Callable[[Outcome | Rejected], None] = lambda seen: None,
    before: Callable[[int, int], None] = lambda points, most: None,
    **flags: FlagValue,
) -> Results:
    """Finds the best configuration of models by trials, each on a server of its own on this machine.

    An interrupt (Ctrl-C) ends the search, and the results are those so far.

    Args:
        repository: The folder with the models; it stays as it is. Or the address of a server that runs and loads by
            name, `http://` or `grpc://`: its models are loaded with changes, and go back at the end.
        models: What gets requests, at the same time where there are several; a name stands for random inputs of one
            row.
        ranges: What may be chosen: values by knob for the first model, or by model and knob, for models of ensembles
            too; or a function that gives it from the configurations of all models as a server completed them. Without
            it, what is usual for the models and this machine.
        goal: What is wanted: throughput by default.
        search: How points are proposed: `quick` learns from each trial which one is next, `brute` tries all, `optuna`
            needs the extra `tune`; or a function that makes an `alipes.tune.Search`.
        trials: Most trials, those that confirm what was found and the one of the present configuration included; by
            default a third of the points and at most 60. `brute`, and any search of up to 12 points, tries all points
            once, and confirms after that.
        measuring: How each point is measured.
        protocol: Over which.
        history: A file of trials: those of it are not repeated, new ones are added.
        extra_models: Further models that have to be loaded and may be varied, such as those that a Python model calls.
        seed: For what a search draws.
        each: Called with each outcome, and each point that was left out.
        before: Called before the first trial with the number of points, and the most of them that are tried.
        flags: Flags of `alipes serve` with `_` for `-`.

    Returns:
        All trials, the best of them, its configurations and the reasons; `write(folder)` makes files of them. A trial
        whose server did not start, died or swapped is among them, with its failure.

    Raises:
        ConfigError: If a model, a knob or a figure is unknown, or the history cannot be used.
        ServeError: If the repository cannot be served as it is.

    Units: figures have theirs in their names: `rate` in inferences (rows) per second, `p99_ms`, `memory_mb`; `cores` in
    seconds of processor time per second. `queue_delay_us` is in microseconds.

    Examples:
        >>> tried = {"instances": [1, 2], "callers": [4]}
        >>> results = run("models", "double", ranges=tried, measuring=Measuring(count=200))
        >>> sorted(str(outcome.point) for outcome in results.outcomes)
        ['instances 1, callers 4', 'instances 2, callers 4']
        >>> results.best.figures["rate"] > 0, results.configs["double"].instance_group[0].count in (1, 2)
        (True, True)
        >>> sorted(path.name for path in results.write("tuned"))
        ['config.pbtxt', 'report.html', 'trials.csv']
    """
    requests = [_requests(one) for one in ([models] if isinstance(models, str | ModelRequests) else models)]
    if not requests:
        raise ConfigError("there is no model to send requests to", key="models")
    names = [one.model for one in requests]
    address = str(repository) if "://" in str(repository) else ""
    wanted = [*names, *extra_models]
    known = read_live(address, wanted) if address else read_models(Path(repository), wanted)
    machine = Machine.here()
    workload = Workload(
        requests,
        measuring if measuring is not None else Measuring(),
        protocol,
        flags,
        max_memory_bytes=int(machine.memory_bytes * _MEMORY_SHARE),
    )
    live = LiveTrials(address, known, workload) if address else None
    with live or ServerTrials(known, workload) as servers:
        completed = servers.completed()
        chosen = _space(ranges(completed) if callable(ranges) else ranges, names, known, completed, machine)
        checks = Checks(machine, known, completed, {one.model: one.batch for one in requests})
        present = {name: present_values(config) for name, config in completed.items()}
        with History(
            Path(history) if history is not None else None, machine, _digest(known, workload, address)
        ) as past:
            course = Course(servers, checks, goal or Goal(), past, each)
            return search_space(course, chosen, present, _way(search, seed), trials, known, before)


def search_space(  # noqa: PLR0913, PLR0917  # the parts of a search
    course: Course,
    space: Space,
    present: Mapping[str, Mapping[str, Value]],
    way: Callable[[Space, Point], Search],
    trials: int | None,
    models: Mapping[str, TunedModel],
    before: Callable[[int, int], None] = lambda points, most: None,
) -> Results:
    """Searches a space; what a trial is, the course knows.

    Args:
        course: Checks, looks up and tries points.
        space: Where to search.
        present: What the models have now, by model and knob.
        way: Makes the search, from the space and the point to begin at.
        trials: As in `run`.
        models: Whose configurations the results have.
        before: Called with the number of points, and of trials at most.
    """
    begin = _begin(space, present)
    searching = way(space, begin)
    exploring, most = _shares(_most(trials, space, brute=isinstance(searching, Brute)), space, searching)
    before(space.size, min(most, space.size))
    compared: Outcome | None = None
    with course.interruptible():
        course.follow(searching, exploring)
        course.confirm(searching, most)
        best = course.best()
        if best is not None:
            compared = course.try_point(_under_load_of(best.point, begin))
    outcomes = course.outcomes()
    results = Results(course.checks.machine, course.goal, space, outcomes, course.rejected, compared)
    best = results.best
    configs = {} if best is None else _configs(models, best.point)
    return replace(results, configs=configs, interrupted=course.interrupted)


def _requests(one: str | ModelRequests) -> ModelRequests:
    return ModelRequests(one) if isinstance(one, str) else one


def _space(
    ranges: Ranges | None,
    names: Sequence[str],
    models: Mapping[str, TunedModel],
    completed: Mapping[str, ModelConfig],
    machine: Machine,
) -> Space:
    if ranges is None:
        return default_space(names, models, completed, machine)
    by_model = {
        model: row
        for model, row in ranges.items()
        if isinstance(row, Mapping)
    }  # fmt: skip
    if not by_model:
        by_model = {names[0]: ranges}  # type: ignore[dict-item]  # no value is a mapping
    if unknown := by_model.keys() - models.keys():
        raise ConfigError(f"there are values for '{min(unknown)}', which is none of {', '.join(models)}", key="ranges")
    return Space.of(by_model)


def _begin(space: Space, present: Mapping[str, Mapping[str, Value]]) -> Point:
    """The present configuration, as far as the space has knobs for it, under the load in the middle."""
    rows: dict[str, dict[str, Value]] = {}
    for axis in space.axes:
        value = present.get(axis.model, {}).get(axis.knob, axis.values[(len(axis.values) - 1) // 2])
        rows.setdefault(axis.model, {})[axis.knob] = value
    return Point.of(rows)


def _under_load_of(best: Point, begin: Point) -> Point:
    """The present configuration under the load of another point."""

    def value(model: str, knob: str, own: Value) -> Value:
        return own if KNOBS[knob].write is not None else best.of_model(model).get(knob, own)

    return Point(tuple((model, knob, value(model, knob, own)) for model, knob, own in begin.values))


def _way(search: SearchName | Callable[[Space, Point], Search], seed: int) -> Callable[[Space, Point], Search]:
    if callable(search):
        return search
    if search == "brute":
        return lambda space, begin: Brute(space)
    if search == "quick":
        return lambda space, begin: Quick(space, begin, seed)
    if search == "optuna":
        from alipes.tune.search.optuna import Optuna

        return lambda space, begin: Optuna(space, begin, seed)
    raise ConfigError(f"there is no search '{search}': expected quick, brute or optuna", key="search")


def _most(trials: int | None, space: Space, *, brute: bool) -> int:
    if trials is not None and trials < 1:
        raise ConfigError(f"trials is {trials}: at least one is needed", key="trials")
    if trials is not None or brute or space.size <= _SMALL:
        return trials or space.size
    return min(max(math.ceil(space.size / _SHARE), _SMALL), _MOST)


def _shares(most: int, space: Space, search: Search) -> tuple[int, int]:
    """Trials until the exploring ends, and until the confirming ends."""
    if isinstance(search, Brute) or most >= space.size:
        return most, most + max(_BEYOND, most // _SPARE) if most > 1 else most
    spare = min(max(_LEAST_SPARE, most // _SPARE), most // 3)
    compared = 1 if spare else 0
    return most - spare - compared, most - compared


def _configs(models: Mapping[str, TunedModel], point: Point) -> dict[str, ModelConfig]:
    rows = {model.name: point.variant.of_model(model.name) for model in models.values()}
    return {name: changed(models[name].written, values) for name, values in rows.items() if values}


def _digest(models: Mapping[str, TunedModel], workload: Workload, address: str) -> str:
    """A text that changes with whatever decides on the figures, the point and the machine apart."""
    parts = [alipes.__version__, address, *(f"{name} {model.digest()}" for name, model in models.items())]
    parts += [repr(workload.measuring), workload.protocol, repr(sorted(workload.flags.items()))]
    made = hashlib.sha256("\n".join(parts).encode())
    for one in workload.requests:
        made.update(repr(replace(one, data="")).encode())  # type: ignore[arg-type]  # arrays follow whole
        if isinstance(one.data, str):
            made.update(one.data.encode())
        else:
            for name, array in one.data.items():
                made.update(f"{name} {array.dtype} {array.shape}".encode())
                made.update(array.tobytes() if array.dtype.kind != "O" else repr(array.tolist()).encode())
    return made.hexdigest()[:16]
