"""From what stores are called to what serves them: the one table of schemes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from alipes.config.paths import kind_of
from alipes.errors import RepositoryError
from alipes.repository.model_list import ModelList
from alipes.repository.model_store import ModelStore
from alipes.repository.shared_folder import SharedFolder
from alipes.repository.storage.patterns import EVERYTHING, Patterns, read_patterns
from alipes.repository.storage.source import Source
from alipes.repository.store.open import without_scheme

__all__ = ["opened_list", "opened_stores"]

_CLAIM: Final = "pvc://"
_CLAIMS: Final = Path("/mnt/pvc")
"""Where KServe mounts the volume of a claim. Source: KServe's storage initializer."""

_INSTEAD: Final = {
    "hdfs": "copy it to this machine with `hdfs dfs -get`, and serve that folder",
    "webhdfs": "copy it to this machine with `hdfs dfs -get`, and serve that folder",
    "git": "clone it, and serve that folder; with Git LFS, run `git lfs pull` in it",
    "modelscope": "download it with `modelscope download --local_dir FOLDER`, and serve that folder",
    "azfileshare": "mount the share, and serve that folder",
    "oci+native": "say oci://",
    "oci+fetch": "say oci://",
}
"""Schemes that KServe knows and that are not read here, with what to do."""

_SHARE: Final = re.compile(r"https://[^/]+\.file\.(core\.windows|storage\.azure)\.net/")
"""A share of files of Azure."""

_KNOWN: Final = "a folder, file://, pvc://, s3://, gs://, az://, http://, https://, hf:// or oci://"


def opened_stores(addresses: Sequence[str], name: str) -> list[ModelStore]:
    """The stores of a server. Nothing is fetched yet.

    Args:
        addresses: The stores, each a folder, a file, or an address.
        name: What the model of a store is called that is one model alone; it names none where there are several stores.

    Raises:
        RepositoryError: If one cannot be opened.
    """
    name = name if len(addresses) == 1 else ""
    return [_opened(address, name, None) for address in dict.fromkeys(addresses)]


def opened_list(file: str) -> ModelList:
    """The models that a file lists. Nothing is read yet."""
    return ModelList(Path(file).absolute(), _opened)


def _opened(address: str, name: str, folder: SharedFolder | None) -> ModelStore:
    path = str(without_scheme(address))
    scheme, separator, _ = path.partition("://")
    patterns = read_patterns(os.environ)
    if not separator:
        return ModelStore(Path(path).absolute(), name, patterns=patterns, folder=folder)
    if scheme == "pvc":
        return ModelStore(_of_claim(address), name, address, patterns=patterns, folder=folder)
    kind = "git" if path.endswith(".git") else "azfileshare" if _SHARE.match(path) else scheme
    if kind in _INSTEAD:
        raise RepositoryError(f"{_INSTEAD[kind]}: {kind} is not offered, as in {address}")
    source, patterns = _source(address, scheme, patterns)
    called = _without_query(address)
    return ModelStore(Path(f"{scheme}:", address), name, called, source, patterns=patterns, folder=folder)


def _source(address: str, scheme: str, patterns: Patterns) -> tuple[Source, Patterns]:
    """Where a store lies, and which of the fetched files are wanted; of a bucket others are not fetched."""
    from alipes.repository.storage.bucket import BUCKETS, BucketSource, blob_address

    if (blob := blob_address(address)) is not None:
        return BucketSource(*blob, patterns=patterns), EVERYTHING
    if scheme in BUCKETS or scheme == "memory":
        return BucketSource(address, patterns=patterns), EVERYTHING
    makers: dict[str, Callable[[], Source]] = {"http": lambda: _web(address), "https": lambda: _web(address)}
    makers |= {"hf": lambda: _hub(address, patterns), "oci": lambda: _oci(address)}
    if scheme not in makers:
        raise RepositoryError(f"{address}: {scheme}:// is unknown: a store is {_KNOWN}")
    return makers[scheme](), patterns


def _web(address: str) -> Source:
    from alipes.repository.storage.web import WebSource

    return WebSource(address)


def _hub(address: str, patterns: Patterns) -> Source:
    from alipes.repository.storage.hub import HubSource

    return HubSource(address, patterns)


def _oci(address: str) -> Source:
    from alipes.repository.storage.oci import OciSource

    return OciSource(address)


def _without_query(address: str) -> str:
    """What messages call a store: a query may be a signature, which opens it to everybody who reads the log."""
    return address.partition("?")[0]


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
