"""An image on its way into a registry.

Source: OCI distribution specification 1.1, "Push".
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from alipes.deploy.image.digest import digest_of
from alipes.deploy.image.exchange import Exchange, NoAnswer, Response
from alipes.deploy.image.manifest import INDEX, MANIFEST, Image, attached, descriptor
from alipes.deploy.image.reference import Reference
from alipes.deploy.image.refusal import PushError
from alipes.deploy.image.sbom import MEDIA_TYPE
from alipes.progress import Task

__all__ = ["Push"]

_TRIES: Final = 3
_PAUSE_S: Final = 1.0
"""Between the first try and the second; twice that before the third."""

_BLOCK: Final = 64 << 10
_AGAIN: Final = "type the same command again: what has arrived is not sent again"

_OK: Final = frozenset({200, 201, 202, 204})
_THERE: Final = frozenset({200, 301, 302, 307, 308})
"""Registries whose blobs lie elsewhere redirect a request for one to that place."""

_BUSY: Final = frozenset({408, 429, 500, 502, 503, 504})
_REASONS: Final = {
    403: "does not allow it",
    404: "has no such name, or hides it",
    405: "takes no images",
    413: "finds it too large",
}


class Push:
    """Pushes images to one name of a registry."""

    def __init__(self, target: Reference, exchange: Exchange, pause_s: float = _PAUSE_S) -> None:
        """Asks nothing yet.

        Args:
            target: The registry, the name and the tag.
            exchange: Asks the registry.
            pause_s: The first pause between tries.
        """
        self.target = target
        self._exchange = exchange
        self._pause_s = pause_s
        self._path = f"/v2/{target.path}"

    def check(self) -> None:
        """Asks the registry whether it is one, and whether it accepts who asks, before anything is made.

        Raises:
            PushError: If not.
        """
        response = self._exchange.ask("GET", "/v2/")
        if response.status not in _OK:
            raise PushError(f"{self.target.host} is no registry that can be pushed to: it says {response.words}")

    def send(self, image: Image, task: Task) -> bool:
        """Pushes an image, without the layers that are there.

        Args:
            image: The image.
            task: Hears how far it has come.

        Returns:
            Whether the registry took the bill of materials too, as attached to the image; older ones do not.

        Raises:
            PushError: If the registry refuses it, or stops answering.
        """
        for one in image.layers:
            task.step(f"pushing {one.name}", float(one.layer.size))
            self._blob(f"the layer {one.name}", one.layer.digest, one.blob, task.advance)
        task.step("pushing manifest")
        self._blob("the configuration", digest_of(image.config), image.config)
        self._manifest(self.target.tag, MANIFEST, image.manifest)
        return self._attach(image)

    def _blob(
        self, name: str, digest: str, source: bytes | Path, advance: Callable[[float], None] = lambda _: None
    ) -> None:
        def send() -> Response:
            there = self._exchange.ask("HEAD", f"{self._path}/blobs/{digest}")
            if there.status in _THERE:
                return Response(200, {}, b"")
            begun = self._exchange.ask("POST", f"{self._path}/blobs/uploads/", data=b"")
            where = begun.headers.get("location")
            if begun.status != 202 or where is None:
                return begun
            place = f"{where}{'&' if '?' in where else '?'}digest={quote(digest)}"
            size = len(source) if isinstance(source, bytes) else source.stat().st_size
            return self._exchange.ask(
                "PUT", place, data=_blocks(source, advance), size=size, media_type="application/octet-stream"
            )

        self._check(name, self._repeated(name, send))

    def _manifest(self, tag: str, media_type: str, content: bytes) -> Response:
        def send() -> Response:
            return self._exchange.ask("PUT", f"{self._path}/manifests/{tag}", data=content, media_type=media_type)

        response = self._repeated("the manifest", send)
        self._check("the manifest", response)
        theirs = response.headers.get("docker-content-digest", digest_of(content))
        if theirs != digest_of(content):
            raise PushError(f"{self.target.host} has changed the manifest: it calls it {theirs}")
        return response

    def _attach(self, image: Image) -> bool:
        """Attaches the bill of materials; for registries that do not list what is attached, under the tag for it.

        Source: OCI distribution specification 1.1, "Pushing Manifests with Subject", "Referrers Tag Schema".
        """
        document = attached(image)
        try:
            self._blob("the bill of materials", digest_of(image.sbom), image.sbom)
            self._blob("an empty configuration", digest_of(b"{}"), b"{}")
            response = self._manifest(digest_of(document), MANIFEST, document)
            if "oci-subject" not in response.headers:
                self._list(
                    image.digest.replace(":", "-"), descriptor(MANIFEST, document) | {"artifactType": MEDIA_TYPE}
                )
        except NoAnswer:
            raise
        except PushError:
            return False
        return True

    def _list(self, tag: str, one: dict[str, Any]) -> None:
        there = self._exchange.ask("GET", f"{self._path}/manifests/{tag}")
        try:
            listed = json.loads(there.body)["manifests"] if there.status == 200 else []
            others = [other for other in listed if other["digest"] != one["digest"]]
        except (ValueError, LookupError, TypeError):
            others = []
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [*others, one]}
        self._manifest(tag, INDEX, json.dumps(index, sort_keys=True).encode())

    def _check(self, name: str, response: Response) -> None:
        if response.status in _OK:
            return
        reason = _REASONS.get(response.status, "refuses it")
        raise PushError(f"{self.target} was not pushed: {self.target.host} {reason} ({name}: {response.words})")

    def _repeated(self, what: str, send: Callable[[], Response]) -> Response:
        """Does something until the registry answers, three times at most."""
        for count in range(1, _TRIES + 1):
            try:
                response = send()
                if response.status not in _BUSY or count == _TRIES:
                    return response
            except NoAnswer as error:
                if count == _TRIES:
                    raise NoAnswer(f"{error}; it was to take {what}, and was asked {_TRIES} times; {_AGAIN}") from error
            time.sleep(self._pause_s * count)
        raise AssertionError("the last try returns or raises")


def _blocks(source: bytes | Path, advance: Callable[[float], None]) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    with source.open("rb") as opened:
        while block := opened.read(_BLOCK):
            yield block
            advance(len(block))
