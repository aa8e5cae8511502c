"""The loads, instances and batch sizes that Model Analyzer's options name, and those of its automatic search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from alipes.tune.analyzer.document import OptionsDocument
from alipes.tune.knobs import CALLERS, RATE, ROWS, Value

__all__ = ["load_ranges", "usual_ranges"]


def usual_ranges(document: OptionsDocument) -> dict[str, Sequence[Value]]:
    """Those of the automatic search."""
    if document.get("run_config_search_disable", False):
        return {}
    instances = (
        document.number("run_config_search_min_instance_count", 1),
        document.number("run_config_search_max_instance_count", 5),
    )
    batches = (
        document.number("run_config_search_min_model_batch_size", 1),
        document.number("run_config_search_max_model_batch_size", 128),
    )
    return {"instances": list(range(instances[0], instances[1] + 1)), "max_batch_size": _doubled(*batches)}


def load_ranges(document: OptionsDocument, spec: Mapping[str, Any]) -> dict[str, Sequence[Value]]:
    """Rows, and callers or rates, for a model: its own parameters go in front of the options of all.

    Raises:
        ConfigError: If they cannot be read.
    """
    parameters = spec.get("parameters") or {}
    rows = document.numbers("batch_sizes", parameters.get("batch_sizes", document.get("batch_sizes", 1)))
    found: dict[str, Sequence[Value]] = {ROWS: rows} if rows != [1] else {}
    rates = parameters.get("request_rate", document.get("request_rate"))
    callers = parameters.get("concurrency", document.get("concurrency"))
    searches = not document.get("run_config_search_disable", False)
    if rates or (_searches_rates(document) and not callers):
        least, most = (
            document.number(f"run_config_search_{end}_request_rate", own) for end, own in (("min", 16), ("max", 8192))
        )
        found[RATE] = document.numbers("request_rate", rates) if rates else _doubled(least, most)
    elif callers:
        found[CALLERS] = document.numbers("concurrency", callers)
    elif searches and not document.get("concurrency_sweep_disable", False):
        least, most = (
            document.number(f"run_config_search_{end}_concurrency", own) for end, own in (("min", 1), ("max", 1024))
        )
        found[CALLERS] = _doubled(least, most)
    else:
        found[CALLERS] = [1]
    return found


def _searches_rates(document: OptionsDocument) -> bool:
    """Whether the load is a rate where none is named: so it is, too, where its ends are."""
    ends = ("run_config_search_min_request_rate", "run_config_search_max_request_rate")
    return bool(document.get("request_rate_search_enable", False)) or any(map(document.get, ends))


def _doubled(least: int, most: int) -> list[Value]:
    """A number, twice it, and so on up to another."""
    found: list[Value] = []
    value = max(least, 1)
    while value <= most:
        found.append(value)
        value *= 2
    return found or [max(least, 1)]
