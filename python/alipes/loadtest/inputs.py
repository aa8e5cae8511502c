"""Requests for a model, made from its signature."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from alipes.errors import ConfigError
from alipes.loadtest.random_values import random_values

if TYPE_CHECKING:
    from alipes._core import LoadTestRequests
    from alipes.client import Client
    from alipes.client.signature import Signature, TensorSpec

__all__ = ["Call", "Data", "ModelRequests", "Posts"]

Call: TypeAlias = "tuple[Sequence[tuple[Any, ...]], Sequence[tuple[str, dict[str, Any]]] | None]"
"""Inputs and outputs of a request, as the engine takes them; `None` has all outputs sent."""
Data = Literal["random", "zero"]

_MAX_BYTES: Final = 64 << 20
"""Most memory for requests that differ: above it they are fewer."""


@dataclass(frozen=True)
class ModelRequests:
    """Inference requests for a model.

    Attributes:
        model: Its name.
        version: Its version; the server chooses where it is empty.
        batch: Rows in each request, for a model that takes batches.
        shapes: By input: the sizes that the model leaves open are taken from here; without the batch axis where the
            model takes batches.
        data: `random` values, or zeros, or arrays by input that are sent in turn along their first axis.
        variety: How many requests with random values differ.
        text_length: Characters of a random BYTES element.
        seed: Of the random values.
        parameters: Of each request.
        stream: Whether they go over streams of gRPC, as decoupled models need; each caller has one.
    """

    model: str
    version: str = ""
    batch: int = 1
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    data: Data | Mapping[str, np.ndarray[Any, Any]] = "random"
    variety: int = 16
    text_length: int = 16
    seed: int = 0
    parameters: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    stream: bool = False

    def fill(self, requests: LoadTestRequests, client: Client) -> None:
        """Adds the requests.

        Raises:
            ConfigError: If a shape stays open, or data does not fit.
            AlipesError: If the server does not know the model.
        """
        how = self.how(client)
        for inputs, outputs in self.calls(client):
            requests.infer(self.model, self.version, inputs, outputs, "", dict(self.parameters), **how)

    def calls(self, client: Client) -> list[Call]:
        """The inputs and outputs of each request.

        Raises:
            ConfigError: If a shape stays open, or data does not fit.
            AlipesError: If the server does not know the model.
        """
        return [(inputs, None) for inputs in self.tensors(client)]

    def tensors(self, client: Client) -> list[Sequence[tuple[Any, ...]]]:
        """The inputs of each request, as the engine takes them.

        Raises:
            ConfigError: If a shape stays open, or data does not fit.
            AlipesError: If the server does not know the model.
        """
        signature = client.signature(self.model, self.version)
        takes_batches = int(client.config(self.model, self.version).get("max_batch_size", 0)) > 0
        return [signature.tensors(values) for values in self._values(signature, takes_batches)]

    def how(self, client: Client) -> dict[str, bool]:
        """How requests travel, as the engine takes it."""
        if not self.stream:
            return {}
        policy = client.config(self.model, self.version).get("model_transaction_policy", {})
        return {"stream": True, "decoupled": bool(policy.get("decoupled", False))}

    def _values(self, signature: Signature, takes_batches: bool) -> list[dict[str, Any]]:
        if isinstance(self.data, Mapping):
            return _in_turn(signature, self.data)
        if unknown := self.shapes.keys() - signature.inputs.keys():
            raise ConfigError(
                f"model '{self.model}' has no input {_names(unknown)}: its inputs are {_names(signature.inputs)}",
                key="shapes",
            )
        shapes = {name: self._shape(spec, takes_batches) for name, spec in signature.inputs.items()}
        if self.data == "zero":
            return [{name: _zeros(signature.inputs[name], shape) for name, shape in shapes.items()}]
        random = np.random.default_rng(self.seed)
        size = sum(math.prod(shape) * signature.inputs[name].dtype.itemsize for name, shape in shapes.items())
        return [
            {
                name: random_values(random, signature.inputs[name].dtype, shape, self.text_length)
                for name, shape in shapes.items()
            }
            for _ in range(max(1, min(self.variety, _MAX_BYTES // max(size, 1))))
        ]

    def _shape(self, spec: TensorSpec, takes_batches: bool) -> tuple[int, ...]:
        rest = spec.shape[1:] if takes_batches else spec.shape
        chosen = tuple(self.shapes.get(spec.name, rest))
        if len(chosen) != len(rest) or any(size not in (-1, own) for own, size in zip(chosen, rest, strict=True)):
            raise ConfigError(
                f"input '{spec.name}' of model '{self.model}' has the shape {list(rest)}, not {list(chosen)}",
                key="shapes",
            )
        if min(chosen, default=1) < 0:
            raise ConfigError(
                f"input '{spec.name}' of model '{self.model}' has the shape {list(rest)}, where -1 is any size",
                key="shapes",
                hint=f"--shape {spec.name}:{','.join(str(abs(size)) for size in chosen)}",
            )
        return (self.batch, *chosen) if takes_batches else chosen


@dataclass(frozen=True)
class Posts:
    """Requests of any kind over HTTP: bodies that are posted to a path in turn.

    Attributes:
        path: Behind the address.
        bodies: What is posted.
        content_type: Of each.
    """

    path: str
    bodies: Sequence[bytes]
    content_type: str = "application/json"

    def fill(self, requests: LoadTestRequests, client: Client) -> None:
        """Adds the requests."""
        if not self.bodies:
            raise ConfigError("there is no body to post", key="bodies")
        for body in self.bodies:
            requests.post(self.path, self.content_type, body)


def _zeros(spec: TensorSpec, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.zeros(shape, spec.dtype) if spec.dtype.kind != "O" else np.full(shape, b"", np.object_)


def _in_turn(signature: Signature, data: Mapping[str, np.ndarray[Any, Any]]) -> list[dict[str, Any]]:
    lengths = {name: len(array) for name, array in data.items()}
    if len(set(lengths.values())) != 1 or not next(iter(lengths.values())):
        raise ConfigError(f"the inputs have different numbers of requests, or none: {lengths}", key="data")
    count = next(iter(lengths.values()))
    return [{name: array[index] for name, array in data.items()} for index in range(count)]


def _names(names: Any) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))
