"""A store in a registry of images: the folder `models` of an image, or an artifact's files.

Source: OCI distribution specification 1.1; image specification 1.1; KServe's modelcars, which have `/models`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from alipes.errors import RepositoryError
from alipes.progress.work import task
from alipes.repository.storage.archive import Budget, unpack
from alipes.repository.storage.cache import CachedEntry, cached
from alipes.repository.storage.download import Answer, RemoteFile, download
from alipes.repository.storage.limits import MAX_DOCUMENT_BYTES, MAX_LAYERS, SILENCE_S

__all__ = ["Blob", "OciSource", "layers_of"]

_ADDRESS: Final = re.compile(
    r"oci://(?P<host>[a-zA-Z0-9.-]+(:[0-9]{1,5})?|\[[0-9a-f:]+\](:[0-9]{1,5})?)/"
    r"(?P<path>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)(:(?P<tag>[\w.-]{1,128}))?(@(?P<digest>sha256:[0-9a-f]{64}))?",
    re.ASCII,
)
_INDEXES: Final = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MANIFESTS: Final = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_LAYER: Final = re.compile(r"application/vnd\.(oci\.image|docker\.image\.rootfs)\..*tar.*")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_TITLE: Final = "org.opencontainers.image.title"
"""The annotation with the name of an artifact's file."""

_PARAMETER: Final = re.compile(r'(\w+)="([^"]*)"')
_MODELS: Final = "models"
_CONTENTS: Final = "contents"
_HUB: Final = {"docker.io": "registry-1.docker.io"}


@dataclass(frozen=True, slots=True)
class Blob:
    """A layer.

    Attributes:
        digest: Its digest, which it is fetched by.
        size: Its length in bytes.
        media_type: What it is.
        title: The name of an artifact's file; empty of a layer of files.
    """

    digest: str
    size: int
    media_type: str
    title: str


class OciSource:
    """One image or artifact of a registry."""

    def __init__(self, address: str, environ: Mapping[str, str] = os.environ) -> None:
        """Asks nothing yet.

        Args:
            address: `oci://HOST[:PORT]/NAME[:TAG][@sha256:DIGEST]`.
            environ: The environment: `DOCKER_CONFIG` is the folder of a `config.json` with who is logged in,
                `KSERVE_OCI_DOCKER_CONFIG` such a file.

        Raises:
            RepositoryError: If it is none.
        """
        match = _ADDRESS.fullmatch(address)
        if match is None:
            raise RepositoryError(f"{address}: expected oci://HOST/NAME:TAG, or oci://HOST/NAME@sha256:DIGEST")
        self._address = address
        self._host, self._path = match["host"], match["path"]
        self._reference = match["digest"] or match["tag"] or "latest"
        local = (urlsplit(f"//{self._host}").hostname or "") in ("localhost", "127.0.0.1", "::1")
        self._base = f"{'http' if local else 'https'}://{_HUB.get(self._host, self._host)}/v2/{self._path}"
        self._opener = build_opener(*([ProxyHandler({})] if local else []))
        self._login = _login(self._host, environ)
        self._authorization = ""
        self._entry: CachedEntry | None = None

    def fetch(self, cancelled: threading.Event) -> Path:
        """The folder of models in it."""
        if self._entry is None:
            try:
                with task(f"fetching {self._address}"):
                    self._entry = self._cached(cancelled)
            except RepositoryError as error:
                raise RepositoryError(f"cannot fetch {self._address}: {error}") from error
        contents = self._entry.path / _CONTENTS
        models = contents / _MODELS
        return models if models.is_dir() and not models.is_symlink() else contents

    def close(self) -> None:
        """Others may take away what was fetched."""
        if self._entry is not None:
            self._entry.close()

    def _cached(self, cancelled: threading.Event) -> CachedEntry:
        digest, manifest = self._manifest(self._reference)
        blobs = layers_of(manifest)

        def fill(folder: Path) -> None:
            contents = folder / _CONTENTS
            shutil.rmtree(contents, ignore_errors=True)
            contents.mkdir()
            budget = Budget(sum(blob.size for blob in blobs), folder)
            for blob in blobs:
                self._take(blob, folder, contents, budget, cancelled)

        return cached(f"oci://{self._host}/{self._path}", digest, fill, cancelled)

    def _take(self, blob: Blob, folder: Path, contents: Path, budget: Budget, cancelled: threading.Event) -> None:
        """One layer: downloaded, held against its digest, and unpacked, or put there under its name."""
        file = folder / blob.digest.replace(":", "-")
        headers = {"Authorization": self._authorization} if self._authorization else {}
        algorithm, _, value = blob.digest.partition(":")
        remote = RemoteFile(f"{self._base}/blobs/{blob.digest}", headers, value)
        download(remote, file, cancelled, Answer("", blob.size, {}))
        assert algorithm == "sha256"
        if blob.title and "tar" not in blob.media_type:
            budget.take_entry()
            budget.take(blob.size)
            place = contents / blob.title
            if not place.parent.resolve().is_relative_to(contents.resolve()):
                raise RepositoryError(f"a file called '{blob.title[:80]}' leads out of its folder")
            place.parent.mkdir(parents=True, exist_ok=True)
            file.rename(place)
        else:
            unpack(file, contents, budget, is_layer=True)
            file.unlink()

    def _manifest(self, reference: str) -> tuple[str, dict[str, Any]]:
        body, kind = self._document(f"/manifests/{reference}", (*_MANIFESTS, *_INDEXES))
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        if reference.startswith("sha256:") and reference != digest:
            raise RepositoryError(f"the manifest's digest is {digest}")
        try:
            document: dict[str, Any] = json.loads(body)
            if "manifests" in document or kind in _INDEXES:
                image = _of_linux(document["manifests"])
                if not _DIGEST.fullmatch(image):
                    raise RepositoryError(f"its index names an image '{image[:80]}' without a digest")
                return self._manifest(image)
            return digest, document
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise RepositoryError(f"the registry sends no manifest: {error}") from error

    def _document(self, path: str, kinds: tuple[str, ...]) -> tuple[bytes, str]:
        for may_log_in in (True, False):
            request = Request(f"{self._base}{path}", headers={"Accept": ", ".join(kinds), "User-Agent": "alipes"})
            if self._authorization:
                request.add_unredirected_header("Authorization", self._authorization)
            try:
                with self._opener.open(request, timeout=SILENCE_S) as response:
                    return _read(response), response.headers.get("Content-Type", "")
            except HTTPError as error:
                with error:
                    if error.code != 401 or not may_log_in:
                        raise RepositoryError(f"{self._host} answers {error.code}") from error
                    self._authorization = self._authorize(error.headers.get("WWW-Authenticate", ""))
            except (OSError, HTTPException) as error:
                raise RepositoryError(f"{self._host} does not answer: {error}") from error
        raise AssertionError  # the second answer is taken or raises

    def _authorize(self, challenge: str) -> str:
        """The header that the registry asks for. Source: distribution specification, "Token Authentication"."""
        scheme, _, rest = challenge.partition(" ")
        parameters = dict(_PARAMETER.findall(rest))
        if scheme.lower() == "basic" and self._login:
            return f"Basic {self._login}"
        realm = urlsplit(parameters.get("realm", ""))
        safe = realm.scheme == "https" or (realm.scheme == "http" and self._base.startswith("http://"))
        if scheme.lower() != "bearer" or not safe:
            raise RepositoryError(f"{self._host} wants to know who asks: log in there (docker login, DOCKER_CONFIG)")
        query = {"scope": f"repository:{self._path}:pull"}
        query |= {"service": parameters["service"]} if "service" in parameters else {}
        request = Request(f"{realm.geturl()}{'&' if realm.query else '?'}{urlencode(query)}")
        if self._login:
            request.add_unredirected_header("Authorization", f"Basic {self._login}")
        try:
            with self._opener.open(request, timeout=SILENCE_S) as response:
                document = json.loads(_read(response))
            return f"Bearer {document.get('token') or document['access_token']}"
        except (OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError) as error:
            raise RepositoryError(f"{realm.netloc}, which {self._host} names, gives out no token: {error}") from error


def _read(response: Any) -> bytes:
    body: bytes = response.read(MAX_DOCUMENT_BYTES + 1)
    if len(body) > MAX_DOCUMENT_BYTES:
        raise RepositoryError(f"a document of the registry has more than {MAX_DOCUMENT_BYTES} bytes")
    return body


def _of_linux(manifests: list[dict[str, Any]]) -> str:
    """The digest of the image for Linux; of the only one where none says for what it is. Models run anywhere."""
    for one in manifests:
        if one.get("platform", {}).get("os") == "linux":
            return str(one["digest"])
    return str(manifests[0]["digest"])


def layers_of(manifest: dict[str, Any]) -> list[Blob]:
    """The layers that a manifest names, the lowest first.

    Raises:
        RepositoryError: If it is none, or one of them cannot be checked or would lie elsewhere.
    """
    try:
        found = [
            Blob(
                str(one["digest"]),
                int(one["size"]),
                str(one.get("mediaType", "")),
                str(one.get("annotations", {}).get(_TITLE, "")),
            )
            for one in manifest["layers"][: MAX_LAYERS + 1]
        ]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise RepositoryError(f"its manifest has no list of layers: {error}") from error
    if len(found) > MAX_LAYERS:
        raise RepositoryError(f"it has more than {MAX_LAYERS} layers")
    for blob in found:
        path = PurePosixPath(blob.title)
        if not _DIGEST.fullmatch(blob.digest) or blob.size < 0:
            raise RepositoryError(f"a layer has the digest '{blob.digest[:80]}', which cannot be checked")
        if path.is_absolute() or ".." in path.parts or "\0" in blob.title:
            raise RepositoryError(f"a file called '{blob.title[:80]}' leads out of its folder")
        if blob.media_type.endswith("+zstd"):
            raise RepositoryError("a layer is compressed by zstd, which is not read: build the image with gzip")
    # What is neither a tar nor has a name, such as an attestation, is nothing of a model.
    return [blob for blob in found if blob.title or _LAYER.fullmatch(blob.media_type)]


def _login(host: str, environ: Mapping[str, str]) -> str:
    """Who is logged in at a registry, as the header `Authorization` has it; empty where nobody is."""
    home = environ.get("HOME")
    folder = environ.get("DOCKER_CONFIG") or (f"{home}/.docker" if home else "")
    named = environ.get("KSERVE_OCI_DOCKER_CONFIG")
    if not folder and not named:
        return ""
    path = Path(named) if named else Path(folder) / "config.json"
    try:
        logins = json.loads(path.read_bytes()).get("auths", {})
        noted: dict[str, Any] = next(
            (logins[key] for key in (host, f"https://{host}", f"https://{host}/v1/") if key in logins), {}
        )
        text = str(noted.get("auth", ""))
        base64.b64decode(text, validate=True)
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise RepositoryError(f"{path}, which says who is logged in, cannot be read: {error}") from error
    return text
