"""Requests of sequences: for models that keep a state from one request to the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import TYPE_CHECKING, Final

from alipes.errors import ConfigError
from alipes.loadtest.inputs import ModelRequests

if TYPE_CHECKING:
    from alipes._core import LoadTestRequests
    from alipes.client import Client

__all__ = ["Sequences"]

_MAX_REQUESTS: Final = 1 << 20
"""Most requests of all sequences together: each is in memory as it travels."""


@dataclass(frozen=True)
class Sequences:
    """Sequences of inference requests for a model. One caller sends those of a sequence in their order.

    The first request of each begins the sequence and the last one ends it. A correlation id is used again once its
    sequence has ended, so at most `number` sequences are under way.

    Attributes:
        requests: What is sent, in turn.
        length: Requests of a sequence.
        number: Sequences with a correlation id of their own; a closed loop needs as many as it has callers.
        first_id: The lowest correlation id.
    """

    requests: ModelRequests
    length: int = 20
    number: int = 64
    first_id: int = 1

    def __post_init__(self) -> None:
        """Checks the numbers."""
        for name in ("length", "number", "first_id"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}: expected 1 or more", key=name)
        if self.length * self.number > _MAX_REQUESTS:
            raise ConfigError(
                f"{self.number:,} sequences of {self.length:,} requests are more than {_MAX_REQUESTS:,} requests",
                key="number",
                hint="use fewer sequences, of which each is sent again and again",
            )

    def fill(self, requests: LoadTestRequests, client: Client) -> None:
        """Adds the requests.

        Raises:
            ConfigError: If a shape stays open, or data does not fit.
            AlipesError: If the server does not know the model.
        """
        tensors = cycle(self.requests.tensors(client))
        how = self.requests.how(client)
        for correlation_id in range(self.first_id, self.first_id + self.number):
            for inputs, place in zip(islice(tensors, self.length), self._places(), strict=True):
                parameters = {**self.requests.parameters, "sequence_id": correlation_id, **place}
                requests.infer(self.requests.model, self.requests.version, inputs, None, "", parameters, **how)
            requests.chain()

    def _places(self) -> Iterator[dict[str, bool]]:
        for step in range(self.length):
            yield {"sequence_start": step == 0, "sequence_end": step == self.length - 1}
