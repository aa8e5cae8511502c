"""What a row of a model is, found out from its server: how rows are made of what files hold, and requests of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from alipes.batch.formats.base import Array, Block, Wanted
from alipes.batch.formats.pictures import pixels
from alipes.client.signature import Signature, TensorSpec
from alipes.errors import ConfigError
from alipes.fitting import as_type

if TYPE_CHECKING:
    from alipes.client import Client

__all__ = ["ModelRows", "Rows", "model_rows"]

_MOST_ROWS: Final = 64
"""Rows of a request where nobody says how many: more make servers wait for the network."""

Rows = dict[str, Array]
"""By input: arrays whose first axis is the rows."""


@dataclass(frozen=True, slots=True)
class ModelRows:
    """The rows of a model.

    Attributes:
        signature: What the model takes.
        batch: Rows of a request; 0 where a request is one row, without an axis of rows.
        wanted: What is read of files.
    """

    signature: Signature
    batch: int
    wanted: Wanted

    def rows(self, block: Block) -> Rows:
        """The rows of a block, as the model takes them.

        Raises:
            ValueError: If they do not fit.
        """
        if block.broken:
            raise ValueError(block.broken)
        found = {name: self._array(name, array, block.rows) for name, array in block.arrays.items()}
        counts = {name: len(array) for name, array in found.items()}
        if len(set(counts.values())) != 1:
            raise ValueError(f"its inputs have different numbers of rows: {counts}")
        return found

    def request(self, rows: Rows) -> Mapping[str, Array]:
        """The inputs of a request of these rows."""
        return rows if self.batch else {name: array[0] for name, array in rows.items()}

    def answers(self, outputs: Mapping[str, Any], count: int) -> Rows:
        """The outputs of a request of so many rows, row by row.

        Raises:
            ValueError: If there are not as many rows.
        """
        if not self.batch:
            return {name: np.asarray(array)[None] for name, array in outputs.items()}
        for name, array in outputs.items():
            if not array.ndim or len(array) != count:
                raise ValueError(f"output '{name}' has the shape {list(array.shape)} for {count} rows")
        return dict(outputs)

    def _array(self, name: str, array: Array, rows: int | None) -> Array:
        spec, rank = self.signature.inputs[name], self.wanted.ranks[name]
        row_shape = spec.shape[1:] if self.batch else spec.shape
        if spec.datatype != "BYTES" and array.dtype.hasobject and array.shape == (1,) and isinstance(array[0], bytes):
            array, rows = pixels(array[0], row_shape)[None], 1
        if rows is None and array.ndim == rank - 1:
            array = array[None]
        if array.ndim == 1 < rank and all(size in (1, -1) for size in row_shape):
            array = array.reshape(-1, *([1] * (rank - 1)))
        fits = array.ndim == rank and all(
            size in (-1, seen) for size, seen in zip(row_shape, array.shape[1:], strict=True)
        )
        if not fits:
            raise ValueError(
                f"'{name}' has the shape {list(array.shape)}, the model takes rows of the shape {list(row_shape)}"
            )
        return _typed(spec, array)


def _typed(spec: TensorSpec, array: Array) -> Array:
    if array.dtype == spec.dtype or spec.datatype in ("BYTES", "BF16"):
        return array
    if not np.can_cast(array.dtype, spec.dtype, "same_kind"):
        raise ValueError(f"'{spec.name}' is {array.dtype.name}, the model takes {spec.datatype}")
    return as_type(array, spec.dtype)


def model_rows(client: Client, model: str, version: str, batch: int | None) -> ModelRows:
    """Asks a server for the rows of a model.

    Args:
        client: Asks.
        model: The model.
        version: Its version; empty is the server's choice.
        batch: Rows of a request; as many as the model takes by default.

    Raises:
        ConfigError: If the model takes no batches of so many rows.
        AlipesError: If the server does not know the model.
    """
    signature = client.signature(model, version)
    most = int(client.config(model, version).get("max_batch_size", 0))
    if batch is not None and batch > max(most, 1):
        limit = f"at most {most} rows in a request" if most else "one row in a request"
        raise ConfigError(f"model '{model}' takes {limit}, not {batch}", key="batch")
    rows = min(most, _MOST_ROWS) if batch is None else min(batch, most)
    ranks = {name: len(spec.shape) + (0 if rows else 1) for name, spec in signature.inputs.items()}
    return ModelRows(signature, rows, Wanted(ranks, signature.required or frozenset(signature.inputs)))
