"""The space where nobody names one: what usually matters, in values that a machine of this size can bear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from alipes.config.schema import ModelConfig
from alipes.tune.knobs import CALLERS, Value
from alipes.tune.machine import Machine
from alipes.tune.models import TunedModel
from alipes.tune.space import Space

__all__ = ["default_space"]

_DELAYS_US: Final = (0, 200, 1000)
_CALLERS: Final = (1, 4, 16, 64)
_LARGEST_BATCH: Final = 32


def default_space(
    names: Sequence[str],
    models: Mapping[str, TunedModel],
    completed: Mapping[str, ModelConfig],
    machine: Machine,
) -> Space:
    """Values for each model that executes, and the load of each that gets requests.

    Args:
        names: The models that get requests.
        models: All models, those of ensembles included.
        completed: Their configurations as a server completed them.
        machine: Where they run.
    """
    values: dict[str, dict[str, Sequence[Value]]] = {}
    for name, model in models.items():
        rows: dict[str, Sequence[Value]] = {} if model.is_ensemble else _of_model(completed[name], machine)
        if name in names:
            rows[CALLERS] = _CALLERS
        if rows:
            values[name] = rows
    return Space.of(values)


def _of_model(config: ModelConfig, machine: Machine) -> dict[str, Sequence[Value]]:
    rows: dict[str, Sequence[Value]] = {"instances": _powers(machine.cores * 2)}
    if config.max_batch_size > 0 and config.WhichOneof("scheduling_choice") != "sequence_batching":
        rows["max_batch_size"] = sorted({*_powers(max(_LARGEST_BATCH, config.max_batch_size)), config.max_batch_size})
        rows["queue_delay_us"] = _DELAYS_US
    return rows


def _powers(most: int) -> list[Value]:
    """1, 2, 4, and so on up to a number."""
    return [1 << exponent for exponent in range(most.bit_length())]
