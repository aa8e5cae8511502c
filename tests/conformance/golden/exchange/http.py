"""HTTP: whole requests, and bytes straight on a socket."""

from __future__ import annotations

import http.client
import io
import socket
import time
from collections.abc import Mapping
from typing import Any, cast

from support.waiting import TIMEOUT_S

from ..bodies import describe, encode, verbatim

_TIMEOUT_S = TIMEOUT_S
_COMPARED_HEADERS = (
    "accept-encoding",
    "allow",
    "content-encoding",
    "content-type",
    "inference-header-content-length",
)


def send(address: str, request: Mapping[str, Any]) -> tuple[int, dict[str, str], bytes]:
    """Sends one request on a connection of its own: status, headers with names in lower case, body.

    The address is ``host:port``. Of headers, only Host and, for a body or a POST, Content-Length are added.
    """
    connection = http.client.HTTPConnection(address, timeout=_TIMEOUT_S)
    body, headers = encode(request.get("body")), request.get("headers", {})
    try:
        connection.putrequest(request["method"], request["path"], skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if (body or request["method"] == "POST") and "content-length" not in {name.lower() for name in headers}:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body or None)
        return _read(connection.getresponse())
    finally:
        connection.close()


def exchange(address: str, step: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a `request` step."""
    status, headers, raw = send(address, step["request"])
    compared: dict[str, str | None] = {name: headers[name] for name in _COMPARED_HEADERS if name in headers}
    compared.setdefault("content-type", None)
    body = (verbatim if step.get("verbatim") else describe)(raw, headers)
    return {"response": {"status": status, "headers": compared, "body": body}}


def until(address: str, step: Mapping[str, Any]) -> dict[str, Any]:
    """The status of an `until` step: the expected one as soon as it comes, else the last one."""
    deadline = time.monotonic() + max(step["within_ms"] / 1000, TIMEOUT_S)
    while True:
        status, _, _ = send(address, step["until"])
        if status == step["status"] or time.monotonic() > deadline:
            return {"status": status}
        time.sleep(0.02)


def raw(address: str, step: Mapping[str, Any]) -> dict[str, Any]:
    """The answers to a `raw` step, up to the place where the peer closes or stays silent."""
    script, (host, _, port) = step["raw"], address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=_TIMEOUT_S) as link:
        for part in script["send"]:
            if "sleep_ms" in part:
                time.sleep(part["sleep_ms"] / 1000)
            else:
                link.sendall(encode(part))
        with link.makefile("rb", buffering=0) as stream:
            return {"answers": _answers(_Link(stream), script["answers"], script["method"])}


def _answers(link: _Link, count: int, method: str) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = []
    try:
        for _ in range(count):
            # It asks a socket for nothing but its stream.
            answer = http.client.HTTPResponse(cast(socket.socket, link), method=method)
            answer.begin()
            status, headers, body = _read(answer)
            answers.append({"status": status, "body": describe(body, headers)})
    except TimeoutError:
        answers.append({"closed": False})
    except (http.client.HTTPException, OSError):
        answers.append({"closed": True})
    return answers


class _Link:
    """A socket whose answers are all read from one stream, so that none swallows the beginning of the next."""

    def __init__(self, stream: socket.SocketIO) -> None:
        self._stream = _Unclosed(stream)

    def makefile(self, mode: str) -> _Unclosed:
        """The stream, from where the answer before ended."""
        return self._stream


class _Unclosed(io.BufferedReader):
    """A stream that stays open when the reader of one answer closes it."""

    def close(self) -> None:
        """Nothing: the next answer is still to be read."""


def _read(answer: http.client.HTTPResponse) -> tuple[int, dict[str, str], bytes]:
    body = answer.read()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body
