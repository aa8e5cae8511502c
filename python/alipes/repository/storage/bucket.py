"""A store in a bucket: a copy of what lies below a prefix, brought up to date at each look."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from alipes.config.file_kinds import kind_of_name
from alipes.errors import RepositoryError
from alipes.process_folder import ProcessFolder
from alipes.repository.bare_models import visible
from alipes.repository.mirror import Mirror
from alipes.repository.storage.archive import unpack
from alipes.repository.storage.authorities import bundle_of
from alipes.repository.storage.patterns import ALLOW, EVERYTHING, IGNORE, Patterns

__all__ = ["BUCKETS", "BucketSource", "blob_address", "bucket_options"]

BUCKETS: Final = ("s3", "gs", "gcs", "az", "abfs", "abfss")
"""Schemes of buckets."""

_BLOB: Final = re.compile(
    r"https://(?P<account>[a-z0-9]{3,24})\.blob\.core\.windows\.net/(?P<container>[a-z0-9-]+)(/(?P<path>[^?#]*))?"
)
"""How KServe's users name a container of Azure."""

_ARCHIVE: Final = re.compile(r".*\.(zip|tar|tgz|tar\.(gz|bz2|xz))", re.IGNORECASE)
_YES: Final = ("1", "true", "yes", "on")
_NO: Final = ("0", "false")


def blob_address(url: str) -> tuple[str, str] | None:
    """The address of a folder in a container of Azure, with its account; None where it is something else."""
    match = _BLOB.fullmatch(url)
    if match is None or _ARCHIVE.fullmatch(url):
        return None
    return f"az://{match['container']}/{(match['path'] or '').strip('/')}".rstrip("/"), match["account"]


class BucketSource:
    """One prefix of a bucket."""

    def __init__(
        self,
        address: str,
        account: str = "",
        environ: Mapping[str, str] = os.environ,
        patterns: Patterns = EVERYTHING,
    ) -> None:
        """Asks nothing yet.

        Args:
            address: The prefix.
            account: The account of Azure that it belongs to.
            environ: The environment, which may have keys under KServe's names.
            patterns: Which objects below the prefix are fetched.

        Raises:
            RepositoryError: If there is no room for a copy.
        """
        above, _, name = address.rstrip("/").rpartition("/")
        kind = kind_of_name(name)
        # The address of one object: only files have such names.
        is_file = kind is not None and not kind.filename.endswith((".savedmodel", ".mlflow"))
        single = name if is_file or _ARCHIVE.fullmatch(name) else ""
        # The one object that an address names is wanted, whatever the patterns are. Source: kserve_storage 0.21.
        self._patterns = EVERYTHING if single else patterns
        self._holder: ProcessFolder | None = None
        # What the one archive looked like that was unpacked last, and where to.
        self._held: tuple[tuple[int, int, int], Path] | None = None
        self._mirror = Mirror(
            above if single else address,
            whole=True,
            only=single,
            admit=self._patterns.admit if self._patterns else None,
            **bucket_options(address, account, environ),
        )

    def fetch(self, cancelled: threading.Event) -> Path:
        """The folder of the copy, as the bucket is now; of a single archive what it holds.

        Raises:
            RepositoryError: If the bucket cannot be read, or the archive is refused.
        """
        self._mirror.refresh()
        names = visible(self._mirror.folder)
        if not names and self._patterns:
            raise RepositoryError(f"{self._mirror.url} holds no file that {ALLOW} and {IGNORE} admit")
        archive = self._mirror.folder / names[0] if len(names) == 1 and _ARCHIVE.fullmatch(names[0]) else None
        if archive is None:
            return self._mirror.folder
        return self._unpacked(archive)

    def close(self) -> None:
        """Removes the copy."""
        self._mirror.close()
        if self._holder is not None:
            self._holder.close()

    def _unpacked(self, archive: Path) -> Path:
        """What an archive holds that is alone there, unpacked once for each look of it."""
        seen = archive.stat()
        look = seen.st_mtime_ns, seen.st_size, seen.st_ino
        if self._held is not None and self._held[0] == look:
            return self._held[1]
        if self._holder is None:
            self._holder = ProcessFolder("repository")
        folder = self._holder.path / secrets.token_hex(8)
        folder.mkdir()
        try:
            unpack(archive, folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if self._held is not None:
            shutil.rmtree(self._held[1], ignore_errors=True)
        self._held = look, folder
        return folder


_SECRET: Final = ("STORAGE_CONFIG", "STORAGE_OVERRIDE_CONFIG")
"""JSON objects that KServe makes of `storage.key` and `storage.parameters`; the second wins."""


def _of_secret(environ: Mapping[str, str]) -> dict[str, Any]:
    """What the client of S3 takes from KServe's secret, if there is one for it."""
    secret: dict[str, Any] = {}
    for name in _SECRET:
        try:
            secret |= dict(json.loads(environ.get(name) or "{}"))
        except (ValueError, TypeError) as error:
            raise RepositoryError(f"variable {name} is no JSON object") from error
    if secret.get("type") != "s3":
        return {}
    names = {"endpoint_url": "endpoint_url", "access_key_id": "key", "secret_access_key": "secret"}
    options: dict[str, Any] = {ours: str(secret[theirs]) for theirs, ours in names.items() if secret.get(theirs)}
    client = {"region_name": secret.get("region"), "verify": secret.get("ca_bundle")}
    if str(secret.get("verify_ssl", "1")).lower() in _NO:
        client["verify"] = False
    if client := {name: value for name, value in client.items() if value is not None}:
        options["client_kwargs"] = client
    if str(secret.get("anonymous", "")).lower() in _YES:
        options["anon"] = True
    return options


_STYLES: Final[Mapping[str, tuple[str, object]]] = {
    "S3_USER_VIRTUAL_BUCKET": ("addressing_style", "virtual"),
    "S3_USE_ACCELERATE": ("use_accelerate_endpoint", True),
}
"""What KServe's variables ask of the client of S3, in that client's words. Source: s3_secret.go."""


def _s3_options(environ: Mapping[str, str]) -> dict[str, Any]:
    options = _of_secret(environ)
    client: dict[str, Any] = options.get("client_kwargs", {})
    if environ.get("S3_VERIFY_SSL", "").lower() in _NO:
        client.setdefault("verify", False)
    if not environ.get("AWS_CA_BUNDLE") and (bundle := bundle_of(environ)) is not None:
        client.setdefault("verify", str(bundle))
    if styles := dict(style for name, style in _STYLES.items() if environ.get(name, "").lower() in _YES):
        options["config_kwargs"] = {"s3": styles}
    if client:
        options["client_kwargs"] = client
    if environ.get("awsAnonymousCredential", "").lower() in _YES:
        options["anon"] = True
    if environ.get("S3_ENDPOINT") and not environ.get("AWS_ENDPOINT_URL"):
        plain = environ.get("S3_USE_HTTPS", "1").lower() not in _YES
        options["endpoint_url"] = f"{'http' if plain else 'https'}://{environ['S3_ENDPOINT']}"
    return options


def bucket_options(address: str, account: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """What the clients of buckets do not read from the environment themselves. Source: KServe's secrets."""
    scheme = address.partition("://")[0]
    options: dict[str, Any] = {}
    if scheme == "s3":
        options = _s3_options(environ)
    elif scheme in ("az", "abfs", "abfss"):
        names = {
            "account_key": ("AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_ACCOUNT_KEY"),
            "tenant_id": ("AZURE_TENANT_ID", "AZ_TENANT_ID"),
            "client_id": ("AZURE_CLIENT_ID", "AZ_CLIENT_ID"),
            "client_secret": ("AZURE_CLIENT_SECRET", "AZ_CLIENT_SECRET"),
        }
        found = {key: next((environ[name] for name in own if environ.get(name)), None) for key, own in names.items()}
        options = {key: value for key, value in found.items() if value is not None}
        if account:
            nobody = not options and "AZURE_STORAGE_CONNECTION_STRING" not in environ
            options |= {"account_name": account, **({"anon": True} if nobody else {})}
    return options
