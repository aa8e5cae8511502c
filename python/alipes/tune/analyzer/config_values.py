"""The lists of `model_config_parameters`: a configuration in which a list of values stands in place of a value."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from alipes.config.override import from_document
from alipes.errors import ConfigError
from alipes.tune.knobs import CONFIG, Value

__all__ = ["config_values"]

_MAX_FRAGMENTS: Final = 10_000
_LISTS: Final = frozenset({"instance_group", "preferred_batch_size", "input", "output", "batch_input", "batch_output"})
"""Fields that are lists in a configuration: only a list of lists has several values for them; that of groups has them
inside."""


def config_values(wanted: Any, path: Path | None, model: str) -> dict[str, Sequence[Value]]:
    """Values by knob: those that have a knob, and all others together as parts of a configuration.

    Raises:
        ConfigError: If it is no configuration.
    """
    if not isinstance(wanted, dict):
        raise ConfigError(
            f"model_config_parameters of '{model}' has no fields", path=path, key="model_config_parameters"
        )
    rest = json.loads(json.dumps(wanted))
    found: dict[str, Sequence[Value]] = {}
    if (sizes := rest.get("max_batch_size")) is not None:
        found["max_batch_size"] = _list(rest.pop("max_batch_size"))
    if _is_count(rest.get("instance_group")):
        found["instances"] = _list(rest.pop("instance_group")[0]["count"])
    batching = rest.get("dynamic_batching")
    if isinstance(batching, dict):
        if "max_queue_delay_microseconds" in batching:
            found["queue_delay_us"] = _list(batching.pop("max_queue_delay_microseconds"))
        if "preferred_batch_size" in batching:
            found["preferred"] = _sizes(batching.pop("preferred_batch_size"))
        if not batching and (found.keys() & {"queue_delay_us", "preferred"} or (sizes is not None)):
            del rest["dynamic_batching"]
    if rest:
        found[CONFIG] = _fragments(rest, path, model)
    return found


def _list(values: Any) -> list[Any]:
    return values if isinstance(values, list) else [values]


def _is_count(groups: Any) -> bool:
    """Whether it is one group of which only the number changes, on the CPU or wherever."""
    return (
        isinstance(groups, list)
        and len(groups) == 1
        and isinstance(groups[0], dict)
        and "count" in groups[0]
        and groups[0].keys() <= {"count", "kind"}
        and not isinstance(groups[0].get("kind"), list)
    )


def _sizes(values: Any) -> list[Value]:
    """`[4, 8]` is one value with two sizes, `[[4], [4, 8]]` are two."""
    rows = _list(values)
    return [tuple(row) for row in rows] if any(isinstance(row, list) for row in rows) else [tuple(rows)]


def _fragments(wanted: Mapping[str, Any], path: Path | None, model: str) -> list[Value]:
    made: list[Value] = []
    for fragment in _choices(wanted, ""):
        if len(made) >= _MAX_FRAGMENTS:
            raise ConfigError(
                f"'{model}' has more than {_MAX_FRAGMENTS:,} configurations, which is the limit", path=path
            )
        from_document(fragment)  # refuses what is no configuration
        made.append(json.dumps(fragment, sort_keys=True))
    return made


def _choices(value: Any, field: str) -> Iterator[Any]:
    """Every value that can be chosen."""
    if isinstance(value, dict):
        rows = [[(name, one) for one in _choices(part, name)] for name, part in value.items()]
        yield from (dict(row) for row in itertools.product(*rows))
    elif isinstance(value, list) and field in _LISTS and not any(isinstance(one, list) for one in value):
        yield from (list(row) for row in itertools.product(*([*_choices(one, "")] for one in value)))
    elif isinstance(value, list):
        for one in value:
            yield from _choices(one, "") if isinstance(one, dict) else iter([one])
    else:
        yield value
