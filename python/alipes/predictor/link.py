"""The way to a predictor: what its two kinds, at another server and at the same, have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from alipes.client.plain.options import RequestOptions

__all__ = ["Link", "PredictorCall"]


@dataclass(frozen=True, slots=True)
class PredictorCall:
    """One call of a predictor, which may be attempted several times.

    Attributes:
        model: The predictor's model.
        inputs: Arrays by the name of their input, or the array alone.
        outputs: Names of the wanted outputs; None for all.
        options: Further fields of the request, as `Client.infer` takes them.
        headers: Headers that continue the caller's trace.
    """

    model: str
    inputs: Any
    outputs: list[str] | None
    options: RequestOptions
    headers: Mapping[str, str] = field(default_factory=dict)


class Link(Protocol):
    """The way to a predictor."""

    async def infer(self, call: PredictorCall, limit_s: float | None) -> Any:
        """One attempt at a call; cancelling it withdraws the call.

        Args:
            call: The call.
            limit_s: Time for it in seconds; None is no limit.

        Raises:
            AlipesError: If it is not answered.
        """

    async def is_ready(self, model: str, limit_s: float | None) -> bool:
        """Whether a model can be called."""

    async def max_batch_size(self, model: str, limit_s: float) -> int:
        """Rows that a call may have; 0 where the model names none."""

    async def input_axes(self, model: str, name: str, limit_s: float) -> int | None:
        """Axes of an input, that of the batch among them; None where the server declares none."""

    def close(self) -> None:
        """Closes the connections that no call uses now."""

    def __str__(self) -> str:
        """The place of the server, for people."""
