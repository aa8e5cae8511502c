"""The table of `parameters` of a model that tunes itself: its objective, and the limits of what may be chosen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypedDict

from alipes.config.nearest import nearest
from alipes.config.parameters import Parameter
from alipes.config.schema import ModelConfig
from alipes.config.values import read_int
from alipes.errors import ConfigError

__all__ = [
    "MAX_OBJECTIVE_MS",
    "MAX_PERIOD_MS",
    "MIN_OBJECTIVE_MS",
    "MIN_PERIOD_MS",
    "TUNING_PARAMETERS",
    "TUNING_PREFIX",
    "Tuning",
    "read_tuning",
]

TUNING_PREFIX: Final = "tuning."

MIN_OBJECTIVE_MS: Final = 0.1
"""Smallest objective: below it the clocks and threads of the machine decide, and no batch."""

MAX_OBJECTIVE_MS: Final = 60_000.0
"""Largest objective: nobody who tunes latencies waits for longer."""

MIN_PERIOD_MS: Final = 50
"""Shortest period: the statistics are copied once each, and fewer requests say nothing."""

MAX_PERIOD_MS: Final = 60_000
"""Longest period: a tuner that looks less often follows no traffic."""

_PERIOD_MS: Final = 1_000

_OBJECTIVE: Final = "tuning.objective_p99_ms"
_DELAY: Final = "tuning.max_queue_delay_us"
_BATCH: Final = "tuning.max_batch_size"
_INSTANCES: Final = "tuning.max_instances"
_PERIOD: Final = "tuning.period_ms"

TUNING_PARAMETERS: Final[tuple[Parameter, ...]] = (
    Parameter(
        _OBJECTIVE,
        "text",
        "works",
        "What 99 of 100 requests are to be answered within, from arrival to answer, in milliseconds such as `20` or "
        f"`2.5`, {MIN_OBJECTIVE_MS:g} to {MAX_OBJECTIVE_MS:g}. It turns tuning on; the others are its limits.",
    ),
    Parameter(_DELAY, "count", "works", "Longest queue delay that may be chosen, in microseconds; half the objective."),
    Parameter(_BATCH, "count", "works", "Largest batch that may be chosen, in rows; the model's `max_batch_size`."),
    Parameter(
        _INSTANCES,
        "count",
        "works",
        "Most instances in service, of those that `instance_group` loads; all of them. Worker processes are all in "
        "service always.",
    ),
    Parameter(
        _PERIOD,
        "count",
        "works",
        f"How often the traffic is looked at, in milliseconds, {MIN_PERIOD_MS} to {MAX_PERIOD_MS}; {_PERIOD_MS}.",
    ),
)


class Tuning(TypedDict):
    """What the data plane has to know of a model that tunes itself.

    Attributes:
        objective_p99_us: What 99 of 100 requests are to be answered within, in microseconds.
        max_queue_delay_us: Longest queue delay that may be chosen, in microseconds.
        max_batch_size: Largest batch that may be chosen, in rows.
        max_instances: Most instances that may be in service; 0 for all that are loaded.
        period_ms: How often the traffic is looked at, in milliseconds.
    """

    objective_p99_us: int
    max_queue_delay_us: int
    max_batch_size: int
    max_instances: int
    period_ms: int


def read_tuning(config: ModelConfig) -> Tuning | None:
    """What a complete configuration says of tuning; none where it says nothing.

    Raises:
        ConfigError: If a parameter cannot be read, there is no such parameter, there is none for the objective, or the
            model forms no batches that could be tuned.
    """
    texts = {key: value.string_value for key, value in config.parameters.items() if key.startswith(TUNING_PREFIX)}
    if not texts:
        return None
    _check_keys(texts, config.name)
    _check_batching(config)
    objective_us = _objective_us(texts[_OBJECTIVE], config.name)
    loaded = sum(group.count for group in config.instance_group if not group.passive)

    def number(key: str, low: int, high: int, default: int) -> int:
        return _number(key, texts, low, high, default, config.name)

    delay_us = config.dynamic_batching.max_queue_delay_microseconds
    limit_us = number(_DELAY, 0, objective_us, max(objective_us // 2, min(delay_us, objective_us)))
    if delay_us > limit_us:
        raise _bad(
            _DELAY,
            config.name,
            f"the queue delay to begin with is longer: max_queue_delay_microseconds is {delay_us}, the limit {limit_us}"
            "; shorten the one or raise the other",
        )
    return {
        "objective_p99_us": objective_us,
        "max_queue_delay_us": limit_us,
        "max_batch_size": number(_BATCH, 1, config.max_batch_size, config.max_batch_size),
        "max_instances": number(_INSTANCES, 1, max(loaded, 1), 0),
        "period_ms": number(_PERIOD, MIN_PERIOD_MS, MAX_PERIOD_MS, _PERIOD_MS),
    }


def _check_keys(texts: Mapping[str, str], name: str) -> None:
    known = [row.key for row in TUNING_PARAMETERS]
    for key in sorted(texts):
        if key not in known:
            close = nearest(key, known)
            hint = f"; did you mean '{close}'?" if close else f"; there are {', '.join(known)}"
            raise _bad(key, name, f"there is no such parameter{hint}")
    if _OBJECTIVE not in texts:
        first = min(texts)
        raise _bad(first, name, f"it limits what is tuned, but nothing is: add '{_OBJECTIVE}', or remove it")


def _check_batching(config: ModelConfig) -> None:
    if config.model_transaction_policy.decoupled:
        raise _bad(_OBJECTIVE, config.name, "a decoupled model has no one answer to time: remove it")
    if not config.HasField("dynamic_batching") or config.max_batch_size < 1:
        raise _bad(
            _OBJECTIVE,
            config.name,
            "it forms no batches that could be tuned: add dynamic_batching { } and a max_batch_size, or remove it",
        )
    if any(size != config.max_batch_size for size in config.dynamic_batching.preferred_batch_size):
        raise _bad(
            _OBJECTIVE,
            config.name,
            "the model chooses the size of its batches itself: remove dynamic_batching.preferred_batch_size",
        )


def _objective_us(text: str, name: str) -> int:
    if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text, re.ASCII) and MIN_OBJECTIVE_MS <= float(text) <= MAX_OBJECTIVE_MS:
        return round(float(text) * 1000)
    raise _bad(
        _OBJECTIVE,
        name,
        f"expected milliseconds from {MIN_OBJECTIVE_MS:g} to {MAX_OBJECTIVE_MS:g}, such as 20 or 2.5, got '{text}'",
    )


def _number(key: str, texts: Mapping[str, str], low: int, high: int, default: int, name: str) -> int:
    if key not in texts:
        return default
    value = read_int(texts[key], low, high)
    if value is None:
        raise _bad(key, name, f"expected an integer from {low} to {high}, got '{texts[key]}'")
    return value


def _bad(key: str, name: str, what: str) -> ConfigError:
    return ConfigError(f"parameter '{key}' of model '{name}': {what}", key=f"parameters.{key}")
