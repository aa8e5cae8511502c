"""What Model Analyzer's command `profile` does: a search for each model, tables, and the best configurations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from alipes.compat.perf_analyzer.data_requests import DataRequests
from alipes.config.pbtxt import to_pbtxt
from alipes.config.platforms import ENSEMBLE
from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError
from alipes.loadtest import Measuring, ModelRequests
from alipes.tune.analyzer.plan import ModelPlan, Plan
from alipes.tune.analyzer.tables import (
    GPU_FIELDS,
    SERVER_FIELDS,
    Variants,
    inference_table,
    variant_key,
    write_table,
)
from alipes.tune.goal import Goal, Limit, Objective
from alipes.tune.knobs import Value
from alipes.tune.models import TunedModel, read_models
from alipes.tune.outcome import Outcome
from alipes.tune.results import Rejected, Results
from alipes.tune.tuning import Ranges, run
from alipes.tune.variant import changed

__all__ = ["check_cpu_only", "goal_of", "profile", "ranges_of"]

_OF_SERVER: Final = frozenset({"memory_mb", "cores"})
"""Figures that all models share."""
_MAX_COMBINED: Final = 1000
"""Ways to keep the constraints of several models."""


def profile(
    plan: Plan,
    *,
    measuring: Measuring | None = None,
    each: Callable[[Outcome | Rejected], None] = lambda seen: None,
) -> tuple[list[Results], list[Path]]:
    """Searches as a plan says.

    Args:
        plan: The plan.
        measuring: How each point is measured.
        each: Called with each outcome, and each point that was left out.

    Returns:
        The results, one for each model, or one for all that get requests at the same time; the files.

    Raises:
        ConfigError: If the output folder is in use, or what `alipes.tune.run` raises.
    """
    if plan.output.is_dir() and any(plan.output.iterdir()) and not plan.overrides:
        raise ConfigError(
            f"the folder {plan.output} is not empty", path=plan.output, hint="set override_output_model_repository"
        )
    groups = [plan.models] if plan.together else [[model] for model in plan.models]
    found: list[Results] = []
    rows: list[list[str]] = []
    written: list[Path] = []
    for group in groups:
        results = _search(plan, group, measuring, each)
        found.append(results)
        models = read_models(plan.repository, [*(one.name for one in group), *plan.called])
        variants = _variants(results, models)
        for one in group:
            steps = models[one.name].steps
            rows += inference_table(results, one.name, plan.fields, variants, steps)
            for name in [*(steps or [one.name]), *plan.called]:
                names = dict.fromkeys(variants.names[variant_key(best, name)] for best in results.ranked)
                written += _write_configs(plan, [*names][: plan.configs], variants)
        if plan.reports:
            written += _report(plan, results, group)
        if results.interrupted:
            break
    return found, [*written, *_write_tables(plan, rows)]


def _search(
    plan: Plan,
    group: Sequence[ModelPlan],
    measuring: Measuring | None,
    each: Callable[[Outcome | Rejected], None],
) -> Results:
    names = [one.name for one in group]
    involved = read_models(plan.repository, [*names, *plan.called])
    # With models behind models the original's own `brute` is a quick search: their values multiply.
    search = "quick" if plan.search == "brute" and len(involved) > len(names) else plan.search
    requests = [_requests(one) for one in group]
    flags = group[0].flags
    if any(one.flags != flags for one in group):
        raise ConfigError("models that get requests at the same time have one server", key="triton_server_flags")
    wanted: dict[str, dict[str, Sequence[Value]]] = {}

    def loads(completed: Mapping[str, ModelConfig]) -> Ranges:
        check_cpu_only(plan.cpu_only, completed)
        wanted.update(ranges_of(plan, group, completed))
        return {name: {knob: row[knob] for knob in row if knob in plan.load_knobs} for name, row in wanted.items()}

    def searched(ranges: Ranges | Callable[[Mapping[str, ModelConfig]], Ranges]) -> Results:
        return run(
            plan.repository,
            requests,
            ranges=ranges,
            goal=goal_of(group),
            search=search,  # type: ignore[arg-type]  # one of three, as was checked
            trials=plan.trials,
            measuring=measuring,
            protocol=plan.protocol,  # type: ignore[arg-type]  # likewise
            history=plan.checkpoint / "history.jsonl",
            extra_models=plan.called,
            each=each,
            **flags,  # type: ignore[arg-type]  # flags of servers are no names of arguments
        )

    untouched = searched(loads)
    if untouched.interrupted or not any(row.keys() - plan.load_knobs for row in wanted.values()):
        return untouched
    return _joined(untouched, searched(wanted), involved)


def _requests(model: ModelPlan) -> ModelRequests:
    if model.sent is None:
        return ModelRequests(model.name)
    try:
        return DataRequests.of(model.name, model.sent)
    except OSError as error:
        raise ConfigError(f"the data of '{model.name}' cannot be read: {error}", key="perf_analyzer_flags") from error


def _joined(untouched: Results, varied: Results, models: Mapping[str, TunedModel]) -> Results:
    """Both searches as one, which compares with the models' own configurations under the load of the best point."""
    space = varied.space
    # What a search compares with has the present values written anew; here the untouched one is in its place.
    searched = [one for one in varied.outcomes if space.at(space.places(one.point)).key == one.point.key]
    results = replace(
        varied,
        outcomes=[*untouched.outcomes, *searched],
        rejected=[*untouched.rejected, *varied.rejected],
    )
    if results.best is None:
        return results
    best = results.best.point
    load = {*best.values} - {*best.variant.values}
    present = next((one for one in untouched.outcomes if {*one.point.values} == load), varied.present)
    rows = {name: best.variant.of_model(name) for name in models}
    configs = {name: changed(models[name].written, row) for name, row in rows.items() if row}
    return replace(results, present=present, configs=configs)


def ranges_of(
    plan: Plan, group: Sequence[ModelPlan], completed: Mapping[str, ModelConfig]
) -> dict[str, dict[str, Sequence[Value]]]:
    """What is varied: of the models that get requests, and of those that they are made of or call, named or not.

    Args:
        plan: The plan.
        group: The models that get requests.
        completed: The configurations of all models that are served, as a server completed them.
    """
    wanted: dict[str, dict[str, Sequence[Value]]] = {one.name: dict(one.ranges) for one in group}
    for name in completed:
        if name in plan.composing or name not in wanted:
            wanted[name] = {**wanted.get(name, {}), **plan.composing.get(name, plan.usual)}
    named = {*(one.name for one in plan.models), *plan.composing} - plan.automatic
    return {
        name: {
            knob: values
            for knob, values in rows.items()
            if not _is_alien(knob, completed[name], is_automatic=name not in named)
        }
        for name, rows in wanted.items()
    }


def check_cpu_only(names: Collection[str], completed: Mapping[str, ModelConfig]) -> None:
    """Refuses a model of which the file says that it runs on the CPU, and its configuration that it does not."""
    for name in completed.keys() & set(names):
        if any(group.kind == group.KIND_GPU for group in completed[name].instance_group):
            raise ConfigError(
                f"'{name}' is to run on the CPU, and its configuration has instances on GPUs",
                key="cpu_only",
                hint="say KIND_CPU in its configuration",
            )


def _is_alien(knob: str, config: ModelConfig, *, is_automatic: bool) -> bool:
    """Whether a model has no such knob.

    An ensemble's own are the load alone, and batch sizes that no file names are for models that take batches.
    """
    if config.platform == ENSEMBLE:
        return knob not in Plan.load_knobs
    return knob == "max_batch_size" and is_automatic and config.max_batch_size == 0


def goal_of(group: Sequence[ModelPlan]) -> Goal:
    """That of one model. Of several each keeps its own limits, and its objectives count as much as its weight says."""
    if len(group) == 1:
        return group[0].goal
    weights: dict[str, float] = {}
    for one in group:
        total = sum(objective.weight for objective in one.goal.objectives)
        for objective in one.goal.objectives:
            metric = _of_model(one.name, objective.metric)
            weights[metric] = weights.get(metric, 0.0) + one.weight * objective.weight / total
    objectives = tuple(Objective(metric, weight) for metric, weight in weights.items())
    common = tuple(limit for one in group for limit in _limits(one.name, one.goal.limits))
    choices = [
        [_limits(one.name, limits) for limits in one.goal.alternatives] for one in group if one.goal.alternatives
    ]
    _check_choices(choices)
    combined = (tuple(itertools.chain.from_iterable(chosen)) for chosen in itertools.product(*choices))
    return Goal(objectives, tuple(dict.fromkeys(common)), alternatives=tuple(combined) if choices else ())


def _check_choices(choices: Sequence[Sequence[object]]) -> None:
    count = math.prod(map(len, choices))
    if count > _MAX_COMBINED:
        raise ConfigError(
            f"the constraints of all models together have {count:,} alternatives, the limit is {_MAX_COMBINED:,}",
            key="constraints",
            hint="leave out alternatives, or search the models one after the other",
        )


def _limits(model: str, limits: Sequence[Limit]) -> tuple[Limit, ...]:
    return tuple(Limit(_of_model(model, limit.metric), limit.bound, limit.kind) for limit in limits)


def _of_model(model: str, metric: str) -> str:
    """A figure of one model; the server's process has its own."""
    return metric if metric in _OF_SERVER else f"{model}.{metric}"


def _variants(results: Results, models: Mapping[str, TunedModel]) -> Variants:
    """Names in the order of the trials; `default` is a model's own configuration, of which nothing is changed."""
    names: dict[str, str] = {}
    configs: dict[str, ModelConfig] = {}
    for name, model in models.items():
        count = 0
        for outcome in results.outcomes:
            key = variant_key(outcome, name)
            if key in names:
                continue
            is_own = not outcome.point.variant.of_model(name)
            names[key] = f"{name}_config_default" if is_own else f"{name}_config_{count}"
            count += not is_own
            configs[names[key]] = changed(model.written, outcome.point.variant.of_model(name))
    return Variants(names, configs)


def _write_configs(plan: Plan, names: Sequence[str], variants: Variants) -> list[Path]:
    written = []
    for name in names:
        path = plan.output / name / "config.pbtxt"
        path.parent.mkdir(parents=True, exist_ok=True)
        config = type(variants.configs[name])()
        config.CopyFrom(variants.configs[name])
        config.name = name
        path.write_text(to_pbtxt(config), encoding="utf-8")
        written.append(path)
    return written


def _report(plan: Plan, results: Results, group: Sequence[ModelPlan]) -> list[Path]:
    from alipes.tune.report import report_page

    path = plan.export / "reports" / "summaries" / ",".join(one.name for one in group) / "result_summary.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report_page(results), encoding="utf-8")
    return [path]


def _write_tables(plan: Plan, rows: Sequence[Sequence[str]]) -> list[Path]:
    folder = plan.export / "results"
    tables = {
        plan.filename: (plan.fields, rows),
        plan.filename_gpu: (GPU_FIELDS, ()),
        plan.filename_server: (SERVER_FIELDS, ()),
    }
    for name, (fields, content) in tables.items():
        write_table(folder / name, fields, content)
    return [folder / name for name in tables]
