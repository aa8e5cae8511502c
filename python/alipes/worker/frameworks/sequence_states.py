"""The states of sequences whose model keeps them inside, where its configuration names none.

A model that writes into itself, such as a graph with variables, would give the state of one caller to the next. So each
sequence has a copy, which is put in before its step and taken out after it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from alipes.worker.frameworks.opened import OpenedModel

__all__ = ["SequenceStates", "most_sequences"]

_START: Final = 1
_END: Final = 2
"""Flags of a request, as `triton_python_backend_utils` has them."""


def most_sequences(config: Mapping[str, Any]) -> int:
    """How many sequences an instance has at a time: slots of `direct`, candidates of `oldest`."""
    oldest = config["sequence_batching"].get("oldest") or {}
    return int(oldest.get("max_candidate_sequences", 0)) or max(1, int(config.get("max_batch_size", 0)))


class SequenceStates:
    """Runs requests of sequences, each with the state of its own sequence.

    The server ends silent sequences without a word to the model. Their states go when there are more than an instance
    has sequences: the one that was used longest ago belongs to a sequence that has ended, for it was silent for longer
    than any that lives.
    """

    def __init__(self, model: OpenedModel, most: int) -> None:
        """Takes a model that can `step`, and how many sequences there can be at a time."""
        self._model = model
        self._most = most
        self._states: OrderedDict[int | str, Any] = OrderedDict()

    def call_for(self, correlation_id: int | str, flags: int) -> Callable[..., Mapping[str, Any]]:
        """What runs the request of a sequence; a step that fails leaves its state as it was.

        Args:
            correlation_id: The id of the sequence; 0 for a row without a request.
            flags: The flags of the request.
        """

        def call(**inputs: Any) -> Mapping[str, Any]:
            state = None if flags & _START else self._state(correlation_id)
            outputs, after = self._model.step(inputs, state)
            self._keep(correlation_id, after, ends=bool(flags & _END))
            return outputs

        return call

    def _state(self, correlation_id: int | str) -> Any:
        if not correlation_id:
            return None
        if correlation_id not in self._states:
            raise ValueError(f"the state of sequence {correlation_id} is gone: start it again")
        return self._states[correlation_id]

    def _keep(self, correlation_id: int | str, state: Any, *, ends: bool) -> None:
        self._states.pop(correlation_id, None)
        if ends or not correlation_id:
            return
        self._states[correlation_id] = state
        if len(self._states) > self._most:
            self._states.popitem(last=False)
