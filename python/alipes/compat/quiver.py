"""What hermes' repository package offers beside what `alipes.repository` has under another name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from alipes.repository.tensors import ExposedTensor

if TYPE_CHECKING:
    from alipes.repository.store.base import Store

__all__ = [
    "EXPOSED_TYPE",
    "GPUS_TYPE",
    "IO_TYPE",
    "KIND_TYPE",
    "SHAPE_TYPE",
    "GCSFileSystem",
    "get_input_names_from_torch_object",
]

SHAPE_TYPE: TypeAlias = Sequence[int | None]
IO_TYPE: TypeAlias = Mapping[str, SHAPE_TYPE]
EXPOSED_TYPE: TypeAlias = ExposedTensor
KIND_TYPE: TypeAlias = Literal["auto", "cpu", "gpu"]
GPUS_TYPE: TypeAlias = int | Sequence[int] | None


def GCSFileSystem(root: str, credentials: str | None = None) -> Store:
    """A store in a Google bucket.

    Args:
        root: `bucket` or `bucket/prefix`, with or without `gs://`.
        credentials: Path of a service account's JSON file; the environment's account where left out.
    """
    from alipes.repository.store.open import open_store

    options: dict[str, Any] = {} if credentials is None else {"token": credentials}
    return open_store(f"gs://{root.removeprefix('gs://')}", **options)


def get_input_names_from_torch_object(model_fn: Any) -> list[str]:
    """The names of the arguments of a PyTorch module's `forward`, in order."""
    from alipes.repository.export.torch_source import argument_names

    names, _most = argument_names(model_fn)
    return names
