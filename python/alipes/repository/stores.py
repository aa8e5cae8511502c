"""From what stores are called to what serves them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from alipes.config.paths import kind_of
from alipes.errors import RepositoryError
from alipes.repository.model_store import ModelStore
from alipes.repository.store.open import without_scheme

__all__ = ["opened_stores"]

_CLAIM: Final = "pvc://"
_CLAIMS: Final = Path("/mnt/pvc")
"""Where KServe mounts the volume of a claim. Source: KServe's storage initializer."""


def opened_stores(addresses: Sequence[str], name: str) -> tuple[list[str], list[ModelStore]]:
    """Sort the stores of a server by what reads them.

    Args:
        addresses: The stores, each a folder, a file, or an address.
        name: What the model of a store is called that is one model alone; it names none where there are several stores.

    Returns:
        Buckets, which repositories read; and the stores of this machine.

    Raises:
        RepositoryError: If one cannot be opened.
    """
    name = name if len(addresses) == 1 else ""
    buckets: list[str] = []
    stores: list[ModelStore] = []
    for address in addresses:
        path = str(without_scheme(address))
        if path.startswith(_CLAIM):
            stores.append(ModelStore(_of_claim(address), name, address))
        elif "://" in path:
            buckets.append(address)
        else:
            stores.append(ModelStore(Path(path).absolute(), name))
    return buckets, stores


def _of_claim(address: str) -> Path:
    """Where the volume of a claim is mounted."""
    claim, _, path = address.removeprefix(_CLAIM).partition("/")
    places = [_CLAIMS / claim / path, _CLAIMS / path]
    found = next((place for place in places if ".." not in place.parts and kind_of(place) != "nothing"), None)
    if found is None:
        raise RepositoryError(
            f"mount the volume of claim '{claim}' at {_CLAIMS / claim}, or name the folder where it is mounted: "
            f"there is no {places[0]}, which {address} stands for"
        )
    return found
