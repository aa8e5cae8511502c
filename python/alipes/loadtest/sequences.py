"""Requests of sequences: for models that keep a state from one request to the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import TYPE_CHECKING, Final, TypeAlias

from alipes.errors import ConfigError
from alipes.loadtest.inputs import ModelRequests
from alipes.loadtest.shared_memory import SharedMemoryRequests

if TYPE_CHECKING:
    from alipes._core import LoadTestRequests
    from alipes.client import Client

__all__ = ["Sequences"]

Steps: TypeAlias = ModelRequests | SharedMemoryRequests
"""What the requests of sequences are made of."""

_MAX_REQUESTS: Final = 1 << 20
"""Most requests of all sequences together: each is in memory as it travels."""


@dataclass(frozen=True)
class Sequences:
    """Sequences of inference requests for a model. One caller sends those of a sequence in their order.

    The first request of each begins the sequence and the last one ends it. Each sequence takes the next correlation id.

    Attributes:
        requests: What is sent, in turn.
        length: Requests of a sequence.
        number: Sequences that are prepared, and sent in turn; most that are under way, so a closed loop needs as many
            as it has callers.
        first_id: The first correlation id.
    """

    requests: Steps
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

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.requests.model

    @property
    def stream(self) -> bool:
        """Whether requests go over streams of gRPC."""
        return self.requests.stream

    @property
    def shares_outputs(self) -> bool:
        """Whether outputs lie in shared memory, and not in the answers."""
        return isinstance(self.requests, SharedMemoryRequests) and self.requests.shares_outputs

    def fill(self, requests: LoadTestRequests, client: Client) -> None:
        """Adds the requests.

        Raises:
            ConfigError: If a shape stays open, or data does not fit.
            AlipesError: If the server does not know the model.
        """
        calls = cycle(self.requests.calls(client))
        how = self.requests.how(client)
        for _ in range(self.number):
            for (inputs, outputs), place in zip(islice(calls, self.length), self._places(), strict=True):
                parameters = {**self.requests.parameters, **place}
                requests.infer(
                    self.requests.model, self.requests.version, inputs, outputs, "", parameters, in_sequence=True, **how
                )
            requests.chain()
        requests.number(self.first_id, most=self.number)

    def _places(self) -> Iterator[dict[str, bool]]:
        for step in range(self.length):
            yield {"sequence_start": step == 0, "sequence_end": step == self.length - 1}
