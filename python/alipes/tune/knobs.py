"""What a tuner may change: each knob with its place in a model's configuration, or in the load."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from alipes.config.nearest import nearest
from alipes.config.override import from_document
from alipes.config.platforms import ENSEMBLE
from alipes.config.schema import ModelConfig, is_map, is_repeated
from alipes.errors import ConfigError

__all__ = ["CALLERS", "CONFIG", "KNOBS", "RATE", "ROWS", "Knob", "Value", "find_knob"]

Value: TypeAlias = int | tuple[int, ...] | str
"""A number; a tuple of numbers for `preferred`; JSON for `config`."""

CALLERS: Final = "callers"
RATE: Final = "request_rate"
ROWS: Final = "rows"
CONFIG: Final = "config"
_THREADS: Final = "intra_op_thread_count"


@dataclass(frozen=True, slots=True)
class Knob:
    """One thing that can be changed.

    Attributes:
        name: As people type it.
        label: As a sentence says it.
        write: Puts a value into a configuration; `None` for what belongs to the load.
        least: The smallest value that means something.
    """

    name: str
    label: str
    write: Callable[[ModelConfig, Value], None] | None
    least: int


def find_knob(name: str) -> Knob:
    """The knob of a name.

    Raises:
        ConfigError: If there is none; the hint names the nearest.
    """
    if name not in KNOBS:
        close = nearest(name, KNOBS)
        raise ConfigError(
            f"there is no knob '{name}': a tuner changes {', '.join(KNOBS)}",
            key=name,
            hint=f"did you mean '{close}'?" if close else None,
        )
    return KNOBS[name]


def _number(value: Value) -> int:
    if not isinstance(value, int):
        raise ConfigError(f"expected a whole number, not {value!r}")
    return value


def _instances(config: ModelConfig, value: Value) -> None:
    """All in the first group, which keeps its kind; a model without groups gets one on the CPU."""
    del config.instance_group[1:]
    group = config.instance_group[0] if config.instance_group else config.instance_group.add()
    if not group.kind:
        group.kind = group.KIND_CPU
    group.count = _number(value)


def _max_batch_size(config: ModelConfig, value: Value) -> None:
    config.max_batch_size = _number(value)
    if config.HasField("dynamic_batching"):
        fitting = [size for size in config.dynamic_batching.preferred_batch_size if size <= _number(value)]
        del config.dynamic_batching.preferred_batch_size[:]
        config.dynamic_batching.preferred_batch_size.extend(fitting)
    if _number(value) > 1 and config.WhichOneof("scheduling_choice") is None:
        config.dynamic_batching.SetInParent()


def _queue_delay(config: ModelConfig, value: Value) -> None:
    _batching(config).max_queue_delay_microseconds = _number(value)


def _preferred(config: ModelConfig, value: Value) -> None:
    sizes = _batching(config).preferred_batch_size
    del sizes[:]
    sizes.extend(value if isinstance(value, tuple) else (_number(value),))


def _engine_threads(config: ModelConfig, value: Value) -> None:
    config.parameters[_THREADS].string_value = str(_number(value))


def _fragment(config: ModelConfig, value: Value) -> None:
    """Lists take the place of those that are there; everything else is merged."""
    fragment = from_document(json.loads(str(value)))
    for field, _ in fragment.ListFields():
        if is_repeated(field) and not is_map(field):
            config.ClearField(field.name)
    config.MergeFrom(fragment)


def _batching(config: ModelConfig) -> Any:
    """The part of the configuration that says how batches are formed."""
    if config.WhichOneof("scheduling_choice") == "sequence_batching" or config.platform == ENSEMBLE:
        raise ConfigError(f"model '{config.name}' has no dynamic batching", key="dynamic_batching")
    config.dynamic_batching.SetInParent()
    return config.dynamic_batching


KNOBS: Final[Mapping[str, Knob]] = {
    knob.name: knob
    for knob in (
        Knob("instances", "instances", _instances, 1),
        Knob("max_batch_size", "largest batch", _max_batch_size, 0),
        Knob("queue_delay_us", "queue delay in microseconds", _queue_delay, 0),
        Knob("preferred", "preferred batch sizes", _preferred, 1),
        Knob("engine_threads", "threads of the engine", _engine_threads, 1),
        Knob(CONFIG, "part of the configuration", _fragment, 0),
        Knob(CALLERS, "requests in flight", None, 1),
        Knob(RATE, "requests per second", None, 1),
        Knob(ROWS, "rows in a request", None, 1),
    )
}
"""In the order in which they are written. A Python model's instances are its worker processes."""
