"""What a model that tunes itself has changed, as text for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rich.table import Table

from alipes.cli.amounts import count, span
from alipes.cli.events import events

Document = Mapping[str, Any]

# Why a setting was changed, by the server's word for it.
_CAUSES: Final[Mapping[str, str]] = {
    "long_waits": "too many were late, and waiting for company took much of the time",
    "full_batches": "too many were late, every instance was busy and batches were full",
    "all_busy": "too many were late, and every instance was busy",
    "long_executions": "too many were late, and a batch computed for long",
    "missed_company": "too many were late while instances were idle: requests come in company",
    "guess": "too many were late, and what is likelier had not helped",
    "time_to_spare": "the objective was kept with time to spare, in which company may come",
}

_OUTCOMES: Final[Mapping[str, str]] = {
    "watched": "being watched",
    "kept": "kept",
    "reverted": "taken back",
    "undecided": "taken back, since the traffic changed meanwhile",
}


def tuned(tuning: Document) -> str:
    """What is wanted, set and allowed."""
    objective = f"99 of 100 requests within {span(tuning['objective_p99_us'])}"
    return f"{objective}; now {_setting(tuning['setting'])}; at most {_setting(tuning['bounds'])}"


def tuning_changes(changes: list[Document]) -> Table:
    """The last changes as a table."""
    return events("changes of the model itself", ((change, changed(change)) for change in changes))


def changed(change: Document) -> str:
    """One change as a sentence: what, why, what it brought."""
    cause = _CAUSES.get(change["why"], change["why"])
    outcome = _OUTCOMES.get(change["outcome"], change["outcome"])
    brought = _brought(change["before"], change["after"]) if "after" in change else _figures(change["before"])
    return f"{_differences(change['from'], change['to'])}: {cause}; {brought}; {outcome}"


def _setting(setting: Document) -> str:
    delay = setting["queue_delay_us"]
    wait = f"{span(delay)} of delay" if delay else "no delay"
    return f"{wait}, batches of {count(setting['batch'], 'row')}, {count(setting['instances'], 'instance')}"


def _differences(before: Document, after: Document) -> str:
    names = {"queue_delay_us": "queue delay", "batch": "batch", "instances": "instances"}
    shown = {"queue_delay_us": span}
    return ", ".join(
        f"{name} {shown.get(key, str)(before[key])} to {shown.get(key, str)(after[key])}"
        for key, name in names.items()
        if before[key] != after[key]
    )


def _figures(figures: Document) -> str:
    return f"99 of 100 within {span(figures['p99_us'])}, {_percent(figures)} late"


def _brought(before: Document, after: Document) -> str:
    return (
        f"99 of 100 within {span(before['p99_us'])} before, {span(after['p99_us'])} after, "
        f"{_percent(before)} and {_percent(after)} late, "
        f"{span(before['computing_us_per_row'])} and {span(after['computing_us_per_row'])} of computing a row"
    )


def _percent(figures: Document) -> str:
    return f"{100 * figures['missed']:.3g} %"
