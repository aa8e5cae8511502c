"""What Model Analyzer's command `profile` does: a search for each model, tables, and the best configurations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from alipes.config.pbtxt import to_pbtxt
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
from alipes.tune.goal import Goal
from alipes.tune.models import TunedModel, read_models
from alipes.tune.outcome import Outcome
from alipes.tune.results import Rejected, Results
from alipes.tune.run import run
from alipes.tune.variant import changed

__all__ = ["profile"]


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
        models = read_models(plan.repository, [one.name for one in group])
        variants = _variants(results, models)
        for one in group:
            steps = models[one.name].steps
            rows += inference_table(results, one.name, plan.fields, variants, steps)
            names = [
                variants.names[variant_key(best, name)] for best in results.ranked for name in (steps or [one.name])
            ]
            written += _write_configs(plan, list(dict.fromkeys(names))[: plan.configs], variants)
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
    involved = read_models(plan.repository, names)
    ranges = {one.name: dict(one.ranges) for one in group}
    for name in names:  # an ensemble's own knobs are the load alone
        if involved[name].is_ensemble:
            ranges[name] = {knob: values for knob, values in ranges[name].items() if knob in plan.load_knobs}
    ranges |= {name: dict(values) for name, values in plan.composing.items() if name in involved}
    return run(
        plan.repository,
        [ModelRequests(name) for name in names],
        ranges=ranges,
        goal=_goal(group),
        search=plan.search,  # type: ignore[arg-type]  # one of three, as was checked
        trials=plan.trials,
        measuring=measuring,
        protocol=plan.protocol,  # type: ignore[arg-type]  # likewise
        history=plan.checkpoint / "history.jsonl",
        extra_models=[name for name in plan.composing if name not in involved],
        each=each,
        **plan.flags,  # type: ignore[arg-type]  # flags of servers are no names of arguments
    )


def _goal(group: Sequence[ModelPlan]) -> Goal:
    """That of one model; of several, the limits of each with its name in front."""
    first = group[0].goal
    if len(group) == 1:
        return first
    limits = [
        type(limit)(f"{one.name}.{limit.metric}", limit.bound, limit.kind) for one in group for limit in one.goal.limits
    ]
    return Goal(first.objectives, tuple(limits))


def _variants(results: Results, models: Mapping[str, TunedModel]) -> Variants:
    names: dict[str, str] = {}
    configs: dict[str, ModelConfig] = {}
    for name, model in models.items():
        count = 0
        for outcome in results.outcomes:
            key = variant_key(outcome, name)
            if key in names:
                continue
            is_own = results.present is not None and key == variant_key(results.present, name)
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
