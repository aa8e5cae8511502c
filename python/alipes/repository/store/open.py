"""From what a repository is called to the store that holds it."""

from __future__ import annotations

import logging
import os
import re
from importlib import import_module
from typing import Any, Final

from alipes.errors import RepositoryError
from alipes.repository.store.base import Store

__all__ = ["client_of", "open_store", "without_scheme"]

_log = logging.getLogger(__name__)

_PACKAGES: Final = {
    "gs": ("gcsfs", "gcs"),
    "gcs": ("gcsfs", "gcs"),
    "s3": ("s3fs", "s3"),
    "az": ("adlfs", "azure"),
    "abfs": ("adlfs", "azure"),
    "abfss": ("adlfs", "azure"),
}
"""Scheme -> the package that fsspec needs for it, and our extra that brings it."""

_NOT_YET: Final = ("hf", "http", "https", "oci", "ftp", "git", "docker")
"""Schemes that people try: what is there is no folder of models that can be listed."""

_AZURE: Final = ("as", "azure", "wasb", "wasbs")
"""Schemes that people try for a container of Azure. `as` is NVIDIA Triton's, with the account in front."""

_OFFERED: Final = (
    "serve a folder, or a bucket at gs://, s3:// or az:// (pip install 'alipes[gcs]', 'alipes[s3]' or 'alipes[azure]')"
)

_WITH_ENDPOINT: Final = re.compile(r"s3://(?P<endpoint>https?://[^/]+)/(?P<rest>.*)")
"""NVIDIA Triton's way to name an S3 server that is not Amazon's."""


def open_store(root: str | os.PathLike[str], *, create: bool = True, checked: bool = True, **options: Any) -> Store:
    """Open the place where a repository lies.

    Args:
        root: A folder, or an address such as `gs://bucket/models`, `s3://bucket/models`, `s3://http://host:9000/bucket`,
            `az://container/models`, or any other that fsspec knows.
        create: Whether to make the bucket if it is missing; a folder is made in any case.
        checked: Whether to look at the bucket: keys that may only write cannot.
        options: What the place needs to be opened, as fsspec takes it; for `gs://` also `credentials`, the file of a
            service account. Folders need nothing, and say so.

    Raises:
        RepositoryError: If the place cannot be opened or made, its package is missing, or an option does not fit.
    """
    address = os.fspath(root)
    scheme, separator, _ = address.partition("://")
    if separator and scheme != "file":
        return _open_bucket(address, scheme, options, create=create, checked=checked)
    if options:
        # Scripts that can be pointed at a bucket or a folder hand over the same either way.
        _log.warning("%s is a folder, which needs no %s", address, ", ".join(f"'{name}'" for name in options))
    from alipes.repository.store.local import LocalFileSystem

    return LocalFileSystem(without_scheme(address))


def without_scheme(root: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The path of a folder that is named by a `file://` address; any other root as it is."""
    address = os.fspath(root)
    if not address.startswith("file://"):
        return root
    from urllib.parse import unquote

    return unquote(address.removeprefix("file://").removeprefix("localhost"))


def client_of(address: str) -> Any:
    """The class of fsspec that reads a bucket. Needs no network.

    Raises:
        RepositoryError: If its scheme is not offered, or its package is missing.
    """
    scheme = address.partition("://")[0]
    if scheme in _NOT_YET:
        raise RepositoryError(f"{scheme}:// is not offered: {_OFFERED}")
    if scheme in _AZURE:
        raise RepositoryError(
            f"say az://CONTAINER/FOLDER (pip install 'alipes[azure]'), with the account in the variable "
            f"AZURE_STORAGE_ACCOUNT_NAME: {scheme}:// is not offered"
        )
    package, extra = _PACKAGES.get(scheme, ("fsspec", "gcs"))
    try:
        import_module(package)
        fsspec: Any = import_module("fsspec")
        return fsspec.get_filesystem_class(scheme)
    except ImportError as error:
        raise RepositoryError(
            f"{address}: {scheme}:// needs the package {package}: pip install 'alipes[{extra}]'"
        ) from error
    except ValueError as error:
        raise RepositoryError(f"{address}: {scheme}:// is unknown: {_OFFERED}") from error


def _open_bucket(address: str, scheme: str, options: dict[str, Any], *, create: bool, checked: bool) -> Store:
    client = client_of(address)
    settings = dict(options)
    if "credentials" in settings and scheme in ("gs", "gcs"):
        settings["token"] = settings.pop("credentials")
    if match := _WITH_ENDPOINT.fullmatch(address):
        settings.setdefault("endpoint_url", match["endpoint"])
        place = match["rest"]
    else:
        place = client._strip_protocol(address)
    try:
        # A cache of listings would hide what others write.
        files = client(use_listings_cache=False, skip_instance_cache=True, **settings)
    except (TypeError, ValueError, OSError) as error:
        raise RepositoryError(f"cannot open {address}: {error}") from error
    from alipes.repository.store.bucket import BucketStore

    return BucketStore(address, files, place, create=create, checked=checked)
