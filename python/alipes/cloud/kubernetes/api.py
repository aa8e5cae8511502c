"""Requests to an API server, as plain documents: what the other modules here send and read.

The official client's classes follow one release of Kubernetes each, and know nothing of custom resources; its dynamic
client sends any document, with the same certificates, tokens and renewals of tokens.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from alipes.cloud.kubernetes.refusals import NoAnswer, Refused, in_short

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

__all__ = ["MANAGER", "Api"]

MANAGER: Final = "alipes"
"""The owner of the fields that are sent from here, by which Kubernetes finds conflicts with other owners."""

_REQUEST_TIMEOUT_S: Final = 30.0
_UNAVAILABLE: Final = frozenset({429, 502, 503, 504})

Document = dict[str, Any]


class Api:
    """An API server."""

    def __init__(self, client: ApiClient) -> None:
        """Takes a client of `kubernetes`, and asks nothing yet."""
        from kubernetes.dynamic import DynamicClient

        # Its own discovery asks for every group that there is, and leaves the answers in a file that others may write.
        self._dynamic = DynamicClient(client, discoverer=lambda client, cache_file: None)
        self.url: str = client.configuration.host
        self.renew: Callable[[], None] | None = None
        """Gets a new token, where the API server no longer accepts the last one."""

    def get(self, path: str, **query: object) -> Document:
        """An object or a list of them."""
        return self._document("get", path, query)

    def create(self, path: str, document: Mapping[str, Any], **query: object) -> Document:
        """Make an object in a collection."""
        return self._document("post", path, {"fieldManager": MANAGER, **query}, document)

    def apply(self, path: str, document: Mapping[str, Any], **query: object) -> Document:
        """Make an object, or change the fields that the document names: Kubernetes' server-side apply."""
        query = {"fieldManager": MANAGER, **query}
        return self._document("patch", path, query, document, "application/apply-patch+yaml")

    def merge(self, path: str, document: Mapping[str, Any], **query: object) -> Document:
        """Change the fields of an object that the document names; fields that are None go."""
        query = {"fieldManager": MANAGER, **query}
        return self._document("patch", path, query, document, "application/merge-patch+json")

    def replace_fields(self, path: str, changes: list[Document], **query: object) -> Document:
        """Change an object by a JSON patch."""
        query = {"fieldManager": MANAGER, **query}
        return self._document("patch", path, query, changes, "application/json-patch+json")

    def delete(self, path: str, **query: object) -> Document:
        """Remove an object; what belongs to it goes first."""
        return self._document("delete", path, {"propagationPolicy": "Foreground", **query})

    def watch(self, path: str, for_s: int, **query: object) -> Generator[Document]:
        """The changes of a collection, for some seconds."""
        query = {"watch": True, "timeoutSeconds": for_s, **query}
        for line in self.lines(path, for_s + _REQUEST_TIMEOUT_S, **query):
            yield json.loads(line)

    def lines(self, path: str, timeout_s: float | None, **query: object) -> Generator[str]:
        """The lines of an answer, as they arrive."""
        with _understood():
            response = self._send("get", path, query, None, None, timeout_s)
            try:
                rest = b""
                for chunk in response.stream(amt=None, decode_content=False):
                    *lines, rest = (rest + chunk).split(b"\n")
                    yield from (line.decode(errors="replace") for line in lines if line)
                if rest:
                    yield rest.decode(errors="replace")
            finally:
                response.close()

    def proxied(self, path: str, document: object, headers: Mapping[str, str], what: str, timeout_s: float) -> bytes:
        """The body of an answer of something that the API server passes requests on to.

        Args:
            path: Its path.
            document: What is posted; None is a GET.
            headers: Further headers of the request.
            what: How messages name it.
            timeout_s: The longest wait.
        """
        with _understood(what):
            method = "get" if document is None else "post"
            return bytes(self._send(method, path, {}, document, None, timeout_s, headers).data)

    def _document(
        self, method: str, path: str, query: Mapping[str, object], body: object = None, kind: str | None = None
    ) -> Document:
        with _understood():
            response = self._send(method, path, query, body, kind, _REQUEST_TIMEOUT_S)
            document: Document = json.loads(response.data)
            return document

    def _send(  # noqa: PLR0913, PLR0917  # one parameter is one part of a request
        self,
        method: str,
        path: str,
        query: Mapping[str, object],
        body: object,
        kind: str | None,
        timeout_s: float | None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Any:
        from kubernetes.client.exceptions import ApiException

        options = {
            "body": body,
            "content_type": kind,
            "query_params": [(name, str(value)) for name, value in query.items() if value is not None],
            "header_params": {"Accept": "application/json", **headers},
            "serialize": False,
            # Reading may pause for as long: a watch says nothing while nothing happens.
            "_request_timeout": None if timeout_s is None else (_REQUEST_TIMEOUT_S, timeout_s),
        }
        try:
            return self._dynamic.request(method, path, **options)
        except ApiException as error:
            if error.status != HTTPStatus.UNAUTHORIZED or self.renew is None:
                raise
        self.renew()
        return self._dynamic.request(method, path, **options)


@contextmanager
def _understood(what: str = "the API server") -> Iterator[None]:
    """Turns what the official client raises into what was refused, or that nothing answered."""
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except ApiException as error:
        if error.status in _UNAVAILABLE or _is_etcd(error):
            raise NoAnswer(f"{what} is not available: {_message(error)}") from error
        raise Refused(_message(error), int(error.status or 0), *_details(error)) from error
    except (HTTPError, OSError, json.JSONDecodeError) as error:
        raise NoAnswer(f"{what} does not answer: {error}") from error


def _status(error: Any) -> Mapping[str, Any]:
    try:
        status = json.loads(error.body)
    except (TypeError, ValueError):  # a proxy answers in words
        return {}
    return status if isinstance(status, dict) else {}


def _is_etcd(error: Any) -> bool:
    """Whether what keeps the objects is away; 500 also answers documents that the API server does not understand."""
    return bool(error.status == 500 and "etcdserver" in _message(error))


def _message(error: Any) -> str:
    status = _status(error)
    # A server behind the proxy says `error`, as the V2 protocol has it.
    return in_short(str(status.get("message") or status.get("error") or error.reason or error.status))


def _details(error: Any) -> tuple[str, list[str]]:
    """The name of the reason, and the single causes of it."""
    status = _status(error)
    causes = (status.get("details") or {}).get("causes") or ()
    return str(status.get("reason") or ""), [str(cause.get("message", "")) for cause in causes]
