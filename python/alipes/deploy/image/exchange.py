"""Requests to a registry, and their responses: HTTP, its time-outs, and who asks."""

from __future__ import annotations

import ipaddress
import json
import re
import ssl
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

import alipes
from alipes.deploy.image.credentials import Credentials
from alipes.deploy.image.reference import Reference
from alipes.deploy.image.refusal import PushError

__all__ = ["Exchange", "NoAnswer", "Response"]

_MOST_BYTES: Final = 4 << 20
"""Bytes of a response that are read: registries send documents of at most 4 MiB, as the specification suggests."""

_HUB: Final = "docker.io"
_HUB_ADDRESS: Final = "registry-1.docker.io"
_PARAMETER: Final = re.compile(r'(\w+)="([^"]*)"')
_UNAUTHORIZED: Final = 401


class NoAnswer(PushError):
    """A registry did not answer, or not to the end; it can be asked again."""


@dataclass(frozen=True, slots=True)
class Response:
    """What came back, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def words(self) -> str:
        """What the registry says of it."""
        with suppress(ValueError, LookupError, TypeError, AttributeError):
            first = json.loads(self.body)["errors"][0]
            return f"{self.status}, {' '.join(str(first.get('message') or first.get('code')).split())}"
        return str(self.status)


class _NoRedirects(HTTPRedirectHandler):
    """Redirects are responses like others: what is uploaded and who asks goes nowhere else unseen."""

    def redirect_request(self, *_: object) -> None:
        return None


class Exchange:
    """Asks one registry, with the rights to push one name."""

    def __init__(
        self, target: Reference, credentials: Credentials | None, *, plain: bool = False, timeout_s: float = 60.0
    ) -> None:
        """Asks nothing yet.

        Args:
            target: The registry and the name.
            credentials: Who asks.
            plain: Whether to do without TLS; on this machine itself, there is none.
            timeout_s: How long to wait for a sign of life.
        """
        self._host = target.host
        self._scope = f"repository:{target.path}:pull,push"
        self._credentials = credentials
        self._timeout_s = timeout_s
        self._authorization: str | None = None
        local = _is_local(urlsplit(f"//{target.host}").hostname or "")
        self.base = f"{'http' if plain or local else 'https'}://{_HUB_ADDRESS if target.host == _HUB else target.host}"
        self._opener: OpenerDirector = build_opener(_NoRedirects, *([ProxyHandler({})] if local else []))

    def ask(
        self,
        method: str,
        path: str,
        *,
        data: bytes | Iterable[bytes] | None = None,
        size: int | None = None,
        media_type: str | None = None,
    ) -> Response:
        """Sends a request; where the registry wants to know who asks, once more.

        Args:
            method: The method.
            path: The path, or what a registry named as the next place.
            data: What is sent.
            size: Bytes of what is sent in pieces.
            media_type: Type of what is sent.

        Raises:
            NoAnswer: If there is no response.
            PushError: If the registry does not accept who asks.
        """
        url = self._address(path)
        headers = {"Content-Type": media_type} if media_type else {}
        if size is not None:
            headers["Content-Length"] = str(size)
        response = self._send(method, url, data, headers)
        if response.status != _UNAUTHORIZED or not (data is None or isinstance(data, bytes)):
            return response
        self._authorization = self._authorize(response)
        response = self._send(method, url, data, headers)
        if response.status == _UNAUTHORIZED:
            raise self._refused(response)
        return response

    def _address(self, path: str) -> str:
        """The whole address. One that leaves HTTP or TLS is refused; a registry behind a proxy may not know of TLS."""
        url = urljoin(self.base, path)
        ours, theirs = urlsplit(self.base), urlsplit(url)
        if theirs.scheme in ("https", ours.scheme):
            return url
        if theirs.scheme == "http" and theirs.hostname == ours.hostname:
            return theirs._replace(scheme="https", netloc=ours.netloc).geturl()
        raise PushError(f"{self._host} sends what is asked to {theirs.scheme}://{theirs.netloc}, which is not safe")

    def _send(
        self, method: str, url: str, data: bytes | Iterable[bytes] | None, headers: Mapping[str, str]
    ) -> Response:
        request = Request(url, data, dict(headers), method=method)
        request.add_header("User-Agent", f"alipes/{alipes.__version__}")
        if self._authorization is not None and urlsplit(url).netloc == urlsplit(self.base).netloc:
            request.add_header("Authorization", self._authorization)
        return self._open(request)

    def _open(self, request: Request) -> Response:
        try:
            with self._opener.open(request, timeout=self._timeout_s) as opened:
                body = opened.read(_MOST_BYTES)
                if opened.length and len(body) < _MOST_BYTES:
                    raise HTTPException("it hung up in the middle of a response")
                return Response(opened.status, _headers(opened.headers), body)
        except HTTPError as error:
            with error:
                return Response(error.code, _headers(error.headers), _rest(error))
        except (OSError, HTTPException) as error:
            raise self._silent(error) from error

    def _silent(self, error: Exception) -> PushError:
        reason = error.reason if isinstance(error, URLError) else error
        if isinstance(reason, ssl.SSLCertVerificationError):
            return PushError(f"{self._host} shows a certificate that is not trusted here: {reason.verify_message}")
        if isinstance(reason, ssl.SSLError):
            return PushError(f"{self._host} does not speak TLS: add --plain-http, if nobody can listen in between")
        if isinstance(reason, TimeoutError):
            return NoAnswer(f"{self._host} has not answered for {self._timeout_s:g} s")
        words = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason) or "it hung up"
        return NoAnswer(f"{self._host} does not answer: {words}")

    def _authorize(self, response: Response) -> str:
        """The header that the registry asks for: a user's password, or what somebody else gives out for it.

        Source: distribution specification, "Token Authentication"; RFC 7617.
        """
        scheme, _, rest = response.headers.get("www-authenticate", "").partition(" ")
        parameters = dict(_PARAMETER.findall(rest))
        if scheme.lower() == "basic":
            if self._credentials is None:
                raise self._refused(response)
            return self._credentials.basic
        if scheme.lower() != "bearer" or "realm" not in parameters:
            raise PushError(f"{self._host} wants to know who asks, in a way that is not known here: '{scheme}'")
        return self._token(parameters["realm"], parameters.get("service"))

    def _token(self, realm: str, service: str | None) -> str:
        query = {"scope": self._scope} | ({"service": service} if service else {})
        url = self._address(f"{realm}{'&' if '?' in realm else '?'}{urlencode(query)}")
        request = Request(url)
        if self._credentials is not None:
            request.add_header("Authorization", self._credentials.basic)
        response = self._open(request)
        if response.status != 200:
            raise self._refused(response)
        try:
            document = json.loads(response.body)
            return f"Bearer {document.get('token') or document['access_token']}"
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise PushError(f"{urlsplit(url).netloc}, which {self._host} names, gives out no token") from error

    def _refused(self, response: Response) -> PushError:
        if self._credentials is None:
            return PushError(
                f"{self._host} wants to know who asks: log in with `podman login {self._host}`, or docker's"
            )
        return PushError(
            f"{self._host} does not accept the user {self._credentials.user} ({response.words}): log in again"
        )


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _headers(message: Message) -> dict[str, str]:
    return {name.lower(): str(value) for name, value in message.items()}


def _rest(error: HTTPError) -> bytes:
    """What a refusal says; nothing where it is cut off."""
    try:
        return error.read(_MOST_BYTES)
    except (OSError, HTTPException):
        return b""
