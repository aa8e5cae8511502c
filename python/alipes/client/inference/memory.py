"""How far back the state of a streaming model goes: the updates after which nothing depends on what was before.

A client that keeps as many can bring a lost state back by sending them again, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["memory_of", "state_of"]

_MEAN_STATE: Final = "input_online_average"
_WINDOW_STATE: Final = "input_snapshot"


def state_of(config: Mapping[str, Any]) -> bool:
    """Whether the requests of a model belong to sequences."""
    return config.get("sequence_batching") is not None or _kind(config) in {"snapshotter", "averager"}


def memory_of(config: Mapping[str, Any]) -> int | None:
    """Updates after which the state of a streaming model no longer depends on what was before; `None` for others.

    Streaming models are known by their backend, exported ones by the names of their states.
    """
    kind = _kind(config)
    states = [str(state.get("input_name")) for state in (config.get("sequence_batching") or {}).get("state", ())]
    if kind == "snapshotter" or states == [_WINDOW_STATE]:
        return _window_memory(config)
    if kind == "averager" or _MEAN_STATE in states:
        return _mean_memory(config, states)
    return None


def _kind(config: Mapping[str, Any]) -> str:
    return str(config.get("backend") or config.get("platform") or "")


def _window_memory(config: Mapping[str, Any]) -> int | None:
    """A window is full of new samples after as many updates as it is long."""
    update, window = _last_size(config, "input"), _last_size(config, "output")
    return -(-window // update) if update and window else None


def _mean_memory(config: Mapping[str, Any], states: list[str]) -> int | None:
    """A prediction counts in as many chunks as make a mean; a batch of them moves on at once.

    One more than needed, so that a mean whose weights grow from the start has seen enough, too.
    """
    if states:
        chunk, state = _last_size(config, "output"), _last_state_size(config)
        return -(-state // chunk) if chunk and state else None
    parameters = config.get("parameters") or {}
    updates = (parameters.get("num_updates") or {}).get("string_value")
    dims = _sizes(config, "input")
    batch = dims[0] if len(dims) > 1 and dims[0] > 0 else 1
    return -(-(int(updates) + batch - 1) // batch) if updates else None


def _sizes(config: Mapping[str, Any], side: str) -> list[int]:
    tensors = config.get(side) or ()
    return [int(size) for size in tensors[0].get("dims", ())] if tensors else []


def _last_size(config: Mapping[str, Any], side: str) -> int:
    sizes = _sizes(config, side)
    return sizes[-1] if sizes and sizes[-1] > 0 else 0


def _last_state_size(config: Mapping[str, Any]) -> int:
    states = (config.get("sequence_batching") or {}).get("state") or ()
    found = [state for state in states if state.get("input_name") == _MEAN_STATE]
    sizes = [int(size) for size in found[0].get("dims", ())] if found else []
    return sizes[-1] if sizes and sizes[-1] > 0 else 0
