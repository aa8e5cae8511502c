"""What of an answer counts, where its request was padded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Crop"]


class Crop(NamedTuple):
    """Of `whole` rows of a request, or strides of an update, the first `valid` ones are the caller's."""

    valid: int
    whole: int
    update: bool = False

    def apply(self, outputs: dict[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
        """The outputs without what was made of padding."""
        return {name: self._one(output) for name, output in outputs.items()}

    def _one(self, output: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """An output has a row for each of ours; or, as the mean of a stream, one row with a chunk for each stride."""
        if output.ndim and output.shape[0] == self.whole:
            return output[: self.valid]
        if not self.update or not output.ndim or output.shape[-1] % self.whole:
            return output
        return output[..., : output.shape[-1] // self.whole * self.valid]
