"""The states of streaming models, as `sequence_batching.state` lists them.

Clients of hermes take a model for a stream's beginning by these entries, so a snapshotter and an averager that the
server runs itself list them under the names that exported ones have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from alipes.config.schema import ModelConfig

__all__ = ["STREAM_IDLE_US", "Shapes", "declare_states", "mean_states", "state_input", "state_output", "window_states"]

Shapes: TypeAlias = dict[str, tuple[int, ...]]
"""Names of states, each with its sizes."""

STREAM_IDLE_US: Final = 10_000_000
"""Silence that ends a sequence of a streaming model, where its configuration sets no other."""


def window_states(channels: int, samples: int) -> Shapes:
    """What a snapshotter keeps: the newest samples of all channels."""
    return {"snapshot": (1, channels, samples)}


def mean_states(channels: int, samples: int, *, unbiased: bool) -> Shapes:
    """What an averager keeps: sums that are not complete, and how many predictions it has seen where they count.

    Args:
        channels: Channels; 0 for one channel without an axis for it.
        samples: Samples of the sums, by channel.
        unbiased: Whether the first means are those of the predictions that there are.
    """
    states: Shapes = {"online_average": (channels, samples) if channels else (samples,)}
    return states | {"seen": (1,)} if unbiased else states


def state_input(name: str) -> str:
    """The tensor that a state is before a request."""
    return f"input_{name}"


def state_output(name: str) -> str:
    """The tensor that it is after it."""
    return f"output_{name}"


def declare_states(
    batching: ModelConfig, states: Mapping[str, Sequence[int]], data_type: int, outputs: Sequence[str] = ()
) -> None:
    """List states in the place of those that are listed; each begins as zeros.

    Args:
        batching: The message `sequence_batching`.
        states: Their sizes, by name.
        data_type: Their element type, as a number of the configuration.
        outputs: What their outputs are called; `output_<name>` where left out.
    """
    del batching.state[:]
    names = outputs or [state_output(name) for name in states]
    for (name, sizes), output in zip(states.items(), names, strict=True):
        state = batching.state.add(input_name=state_input(name), output_name=output, data_type=data_type, dims=sizes)
        state.initial_state.add(name=name, data_type=data_type, dims=sizes, zero_data=True)
