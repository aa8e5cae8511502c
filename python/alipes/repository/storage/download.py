"""Downloads one file over HTTP: goes on where a connection broke off, and believes nothing that it can check.

What comes is as long as the server said, has the digests that the server or the address gave, and comes at a rate that
shows progress, or there is no file.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from ssl import SSLCertVerificationError
from typing import IO, Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from alipes.errors import RepositoryError
from alipes.progress.work import current
from alipes.repository.storage.limits import (
    ATTEMPTS,
    FREE_SHARE,
    PACE_WINDOW_S,
    PAUSE_S,
    SILENCE_S,
    SLOWEST_BYTES_PER_S,
)
from alipes.repository.storage.source import Cancelled

__all__ = ["Answer", "RemoteFile", "download", "look"]

_BLOCK_BYTES: Final = 1 << 18
_PARTIAL: Final = 206
_OUT_OF_RANGE: Final = 416
_PASSING: Final = (408, 425, 429, 500, 502, 503, 504)
"""Statuses after which the same may be asked again."""

_DIGESTS: Final = {"sha-256": "sha256", "sha-512": "sha512", "md5": "md5"}
"""Names of digests in headers that can be computed here. Source: RFC 9530, RFC 3230."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """What is to be downloaded.

    Attributes:
        url: Where it is.
        headers: What goes with requests to that host alone, such as who asks.
        sha256: The digest that it has to have, in hexadecimal; empty where none was given.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server says of a file.

    Attributes:
        tag: Its strong entity tag, or the time of its last change; empty where it has none, and no download goes on.
        size: Its length in bytes; None where the server does not say.
        digests: Digests by the names of their algorithms.
    """

    tag: str
    size: int | None
    digests: Mapping[str, bytes]

    @property
    def content(self) -> str:
        """What identifies the content; empty where nothing does."""
        known = sorted(f"{name}:{value.hex()}" for name, value in self.digests.items())
        return " ".join([*known, self.tag, str(self.size)]) if self.tag or known else ""


class _SafeRedirects(HTTPRedirectHandler):
    """Follows to HTTP alone, and never from TLS to none."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        scheme = urlsplit(newurl).scheme
        if scheme not in ("http", "https") or (scheme == "http" and req.type == "https"):
            raise RepositoryError(f"it leads to {scheme}://{urlsplit(newurl).netloc}, which is not safe")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def look(remote: RemoteFile, cancelled: threading.Event) -> Answer:
    """What a server says of a file, without the file.

    Raises:
        RepositoryError: If there is no such file, or nobody answers.
    """
    for attempt in _attempts(cancelled):
        try:
            with _open(remote, 0, "") as response:
                return _answer(response)
        except HTTPError as error:
            _check_passing(error, attempt)
        except (OSError, HTTPException) as error:
            _check_last(error, attempt)
    raise AssertionError  # the last attempt raises


def download(remote: RemoteFile, file: Path, cancelled: threading.Event, expected: Answer | None = None) -> None:
    """Download a file, going on with what is there of it.

    Args:
        remote: What.
        file: Where to; what an earlier attempt has left there is gone on with where the server has the same still.
        cancelled: Is set once nobody needs it any more.
        expected: What the server has said of it before.

    Raises:
        RepositoryError: If it cannot be had whole.
    """
    answer = expected or look(remote, cancelled)
    _check_room(answer, file)
    shown = current()
    shown.step("downloading", answer.size)
    failures, pace, most = 0, _Pace(), _size(file)
    while not _is_whole(file, answer):
        try:
            _go_on(remote, file, answer, pace, cancelled)
            if answer.size is None:
                break
        except HTTPError as error:
            _check_passing(error, failures)
        except (OSError, HTTPException) as error:
            _check_last(error, failures)
        # One that begins again and again makes no progress, however many bytes come.
        failures, most = (0, _size(file)) if _size(file) > most else (failures + 1, most)
        if failures and cancelled.wait(PAUSE_S * 2 ** (failures - 1)):
            raise Cancelled
        if failures >= ATTEMPTS:
            raise RepositoryError(f"it breaks off after {_size(file)} bytes of {answer.size}, again and again")
    _check_digests(remote, file, answer)


def _go_on(remote: RemoteFile, file: Path, answer: Answer, pace: _Pace, cancelled: threading.Event) -> None:
    """Fetches what is missing, up to the end or to where the connection breaks."""
    offset = _size(file) if answer.tag or remote.sha256 else 0
    try:
        response = _open(remote, offset, answer.tag)
    except HTTPError as error:
        if error.code == _OUT_OF_RANGE:  # what is there is longer than the file
            file.unlink(missing_ok=True)
        raise
    with response:
        goes_on = offset > 0 and response.status == _PARTIAL
        seen = _answer(response)
        if not goes_on and answer.content and seen.content != answer.content:
            raise RepositoryError("it was changed while it was downloaded")
        with file.open("ab" if goes_on else "wb") as out:
            _copy(response, out, offset if goes_on else 0, answer, pace, cancelled)


class _Pace:
    """How fast a download comes, whatever number of connections it takes."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._bytes = 0

    def count(self, count: int) -> None:
        """Counts bytes; raises RepositoryError where too few have come for a while."""
        self._bytes += count
        now = time.monotonic()
        if now - self._begun > PACE_WINDOW_S:
            if self._bytes < SLOWEST_BYTES_PER_S * PACE_WINDOW_S:
                raise RepositoryError(f"it comes at less than {SLOWEST_BYTES_PER_S} bytes a second")
            self._begun, self._bytes = now, 0


def _copy(
    response: HTTPResponse, out: IO[bytes], size: int, answer: Answer, pace: _Pace, cancelled: threading.Event
) -> None:
    shown = current()
    while block := response.read1(_BLOCK_BYTES):
        if cancelled.is_set():
            raise Cancelled
        size += len(block)
        if answer.size is not None and size > answer.size:
            raise RepositoryError(f"it is longer than the {answer.size} bytes that the server named")
        try:
            out.write(block)
        except OSError as error:  # a full disk; to ask again would not help
            raise RepositoryError(f"it cannot be written: {error.strerror}") from error
        shown.advance(len(block))
        pace.count(len(block))


def _open(remote: RemoteFile, offset: int, tag: str) -> HTTPResponse:
    request = Request(remote.url, headers={"User-Agent": "alipes", "Accept-Encoding": "identity"})
    for name, value in remote.headers.items():
        request.add_unredirected_header(name, value)  # another host is not told who asks
    if offset:
        request.add_header("Range", f"bytes={offset}-")
        if tag:  # else the digest says at the end whether the parts belong together
            request.add_header("If-Range", tag)
    response: HTTPResponse = _opener(remote.url).open(request, timeout=SILENCE_S)
    return response


def _opener(url: str) -> OpenerDirector:
    host = urlsplit(url).hostname or ""
    direct = [ProxyHandler({})] if host == "localhost" or host.startswith("127.") or host == "::1" else []
    return build_opener(_SafeRedirects, *direct)


def _answer(response: HTTPResponse) -> Answer:
    headers = response.headers
    tag = headers.get("ETag", "")
    tag = tag if tag and not tag.startswith("W/") else headers.get("Last-Modified", "")
    whole = re.fullmatch(r"bytes \d+-\d+/(\d+)", headers.get("Content-Range", ""))
    length = whole[1] if whole else headers.get("Content-Length", "")
    # Some buckets call what is compressed for good so.
    compressed = urlsplit(response.url).path.endswith((".gz", ".tgz")) and headers.get("Content-Encoding") == "gzip"
    if headers.get("Content-Encoding", "identity") != "identity" and not compressed:
        raise RepositoryError(f"the server sends it as '{headers['Content-Encoding']}', which was not asked for")
    return Answer(tag, int(length) if length.isdecimal() else None, dict(_digests(headers)))


def _digests(headers: Message) -> Iterator[tuple[str, bytes]]:
    """The digests that headers give, as far as they are of the whole file and well formed."""
    fields = [f"md5={headers[name]}" for name in ("Content-MD5", "x-ms-blob-content-md5") if headers.get(name)]
    fields += [headers.get(name) or "" for name in ("Repr-Digest", "Digest", "x-goog-hash")]
    for one in ",".join(fields).split(","):
        name, _, text = one.strip().partition("=")
        algorithm = _DIGESTS.get(name.lower())
        if algorithm:
            try:
                yield algorithm, base64.b64decode(text.strip(":"), validate=True)
            except ValueError:
                continue


def _check_digests(remote: RemoteFile, file: Path, answer: Answer) -> None:
    wanted = dict(answer.digests) | ({"sha256": bytes.fromhex(remote.sha256)} if remote.sha256 else {})
    for name, digest in wanted.items():
        with file.open("rb") as content:
            found = hashlib.file_digest(content, lambda name=name: hashlib.new(name, usedforsecurity=False)).digest()  # type: ignore[misc]
        if found != digest:
            file.unlink()
            raise RepositoryError(f"its {name} is {found.hex()} instead of {digest.hex()}")


def _check_room(answer: Answer, file: Path) -> None:
    room = int(shutil.disk_usage(file.parent).free * FREE_SHARE)
    if answer.size is not None and answer.size - _size(file) > room:
        raise RepositoryError(f"it has {answer.size} bytes, and {file.parent} has room for {room}")


def _is_whole(file: Path, answer: Answer) -> bool:
    return answer.size is not None and file.exists() and _size(file) == answer.size


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _attempts(cancelled: threading.Event) -> Iterator[int]:
    for attempt in range(ATTEMPTS):
        if cancelled.wait(PAUSE_S * 2 ** (attempt - 1) if attempt else 0):
            raise Cancelled
        yield attempt


def _check_passing(error: HTTPError, attempt: int) -> None:
    with error:
        if error.code not in _PASSING and error.code != _OUT_OF_RANGE:
            raise RepositoryError(_words(error)) from error
        if attempt >= ATTEMPTS - 1:
            raise RepositoryError(_words(error)) from error


def _words(error: HTTPError) -> str:
    mend = {
        302: "; it leads to a place that is not safe",
        401: "; it wants to know who asks",
        403: "; who asks may not read it",
        404: "; there is no such file",
    }
    return f"{urlsplit(error.url or '').netloc or 'the server'} answers {error.code}{mend.get(error.code, '')}"


def _check_last(error: Exception, attempt: int) -> None:
    if isinstance(error, RepositoryError):
        raise error
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, SSLCertVerificationError):  # a stranger stays one, however often it is asked
        raise RepositoryError(f"{reason}: trust its authority (SSL_CERT_FILE)") from error
    if attempt >= ATTEMPTS - 1:
        silent = isinstance(reason, TimeoutError)
        why = f"nothing has come for {SILENCE_S:g} s" if silent else str(reason) or "the connection broke off"
        raise RepositoryError(why) from error
