"""The certificates of authorities that a platform mounts into its pods, for every client that fetches a store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final

from alipes.errors import RepositoryError
from alipes.process_folder import ProcessFolder

__all__ = ["bundle_of", "trust_bundle"]

_NAME: Final = "CA_BUNDLE_CONFIGMAP_NAME"
"""Is set where a bundle is mounted. Source: KServe's `caBundleConfigMapName`."""

_FOLDER: Final = "CA_BUNDLE_VOLUME_MOUNT_POINT"
_USUAL_FOLDER: Final = "/etc/ssl/custom-certs"
_FILE: Final = "cabundle.crt"
_READ_BY_CLIENTS: Final = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
"""What OpenSSL and the library requests read in the place of their own authorities."""


def bundle_of(environ: Mapping[str, str]) -> Path | None:
    """The bundle that a platform has mounted; None where it names none.

    Raises:
        RepositoryError: If it names one that is not there.
    """
    if not environ.get(_NAME):
        return None
    file = Path(environ.get(_FOLDER) or _USUAL_FOLDER) / _FILE
    if not file.is_file():
        raise RepositoryError(
            f"{_NAME} is set, and there is no {file}: mount the bundle there, or set {_FOLDER} to its folder"
        )
    return file


def trust_bundle(environ: MutableMapping[str, str]) -> ProcessFolder | None:
    """Lets the clients of this process trust the bundle beside the authorities that they know.

    The variables of clients replace what they know, so they name a file with both: images set them, too.

    Args:
        environ: The environment of this process, before anything is fetched.

    Returns:
        What holds the file, for as long as something is fetched; None where there is no bundle.

    Raises:
        RepositoryError: If the bundle is not there, or holds no certificates.
    """
    bundle = bundle_of(environ)
    if bundle is None:
        return None
    import ssl  # costs a server's start 10 ms, and few need it

    try:
        together = b"\n".join(file.read_bytes() for file in (*_known(environ), bundle))
        ssl.create_default_context(cadata=bundle.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:  # an error of OpenSSL is one of the system's
        raise RepositoryError(f"{bundle}, which {_NAME} stands for, is no file of certificates: {error}") from error
    holder = ProcessFolder("serve")
    file = holder.path / _FILE
    file.write_bytes(together)
    environ.update(dict.fromkeys(_READ_BY_CLIENTS, str(file)))
    return holder


def _known(environ: Mapping[str, str]) -> Iterator[Path]:
    """The files of authorities that clients trust: named by variables, the system's, and the package certifi's."""
    import ssl

    yield from (Path(environ[name]) for name in _READ_BY_CLIENTS if environ.get(name))
    system = ssl.get_default_verify_paths().openssl_cafile
    if Path(system).is_file():
        yield Path(system)
    with suppress(ImportError):
        yield Path(import_module("certifi").where())
