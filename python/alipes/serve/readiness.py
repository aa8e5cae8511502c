"""Readiness of a server, over its HTTP endpoint; and what its log says about its start."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Collection
from dataclasses import asdict, dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, Final

from alipes.client.api_key import keyed_headers
from alipes.errors import AlipesError

__all__ = ["State", "announces", "in_use", "loading", "look", "look_over_grpc", "tail"]

_TIMEOUT_S: Final = 5.0
_TAIL_BYTES: Final = 1 << 16
_TAIL_LINES: Final = 40
_LAST_WORDS: Final = 5

# The lines by which a server announces its endpoints, Triton's words.
_STARTED: Final = re.compile(rb"Started (HTTPService|GRPCInferenceService|Metrics Service) at ")
_SERVICES: Final = {b"HTTPService": "http", b"GRPCInferenceService": "grpc", b"Metrics Service": "metrics"}

# The lines about a model, likewise. The server's index has the reason why a model failed.
_LOADING: Final = re.compile(rb"\bloading: ([^\"\s]+):\d+|\b(?:successfully loaded|failed to load) '([^']+)'")
# What the server says of an entry to which nothing was exported, and what that is in the words of who exports.
_LACKS: Final = (
    (re.compile(r"at least one version must be available"), "has no version"),
    (
        re.compile(r"Could not determine backend for model"),
        "has no version, nor a platform",
    ),
    (re.compile(r"failed to stat file"), "has no model file"),
)
_IN_USE: Final = re.compile(rb"already in use|Address already in use|Failed to bind", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class State:
    """What a server says of itself.

    Attributes:
        live: Whether it answers at all.
        ready: Whether every model that it should serve can answer.
        failed: Models that could not be loaded, each with its reason, once no other model is still loading.
        settled: Whether no model is loading.
    """

    live: bool
    ready: bool
    failed: tuple[str, ...] = ()
    settled: bool = False


def look(address: str, api_key: str | None = None, *, encrypted: bool = False) -> State:
    """Asks the server at an HTTP endpoint. Of one that is encrypted no name is checked: this machine started it."""
    headers = dict(keyed_headers(None, api_key))
    if encrypted:
        connection: HTTPConnection = HTTPSConnection(address, timeout=_TIMEOUT_S, context=_any_certificate())
    else:
        connection = HTTPConnection(address, timeout=_TIMEOUT_S)
    try:
        if _status(connection, "/v2/health/ready", headers) == 200:
            return State(live=True, ready=True)
        if _status(connection, "/v2/health/live", headers) != 200:
            return State(live=False, ready=False)
        return _not_ready(_index(connection, headers))
    except (OSError, HTTPException, ValueError):
        return State(live=False, ready=False)
    finally:
        connection.close()


def _any_certificate() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def look_over_grpc(address: str, api_key: str | None = None) -> State:
    """Asks the server at a gRPC endpoint, where it offers no HTTP."""
    from alipes.client import Client, Retry  # on use: most servers offer HTTP

    once = Retry(times=0)
    with Client(f"grpc://{address}", timeout_s=_TIMEOUT_S, retry=once, api_key=api_key) as client:
        if client.is_ready():
            return State(live=True, ready=True)
        if not client.is_live():
            return State(live=False, ready=False)
        try:
            return _not_ready([asdict(entry) for entry in client.models()])
        except AlipesError:  # it has gone meanwhile
            return State(live=False, ready=False)


def _not_ready(index: list[dict[str, Any]]) -> State:
    settled = not any(entry.get("state") in ("LOADING", "UNLOADING") for entry in index)
    return State(live=True, ready=False, failed=_failed(index) if settled else (), settled=settled)


def announces(log: Path, endpoints: Collection[str]) -> bool:
    """Whether the server whose log this is has opened all of these endpoints.

    Before that, another server may answer at one of its ports.
    """
    try:
        opened = {_SERVICES[service] for service in _STARTED.findall(log.read_bytes())}
    except OSError:
        return False
    return opened.issuperset(endpoints)


def loading(log: Path) -> list[str]:
    """The models that the server whose log this is has begun to load and not yet finished, in its order."""
    models: dict[str, None] = {}
    try:
        lines = _LOADING.findall(log.read_bytes())
    except OSError:
        return []
    for begun, done in lines:
        if begun:
            models[begun.decode(errors="replace")] = None
        else:
            models.pop(done.decode(errors="replace"), None)
    return list(models)


def in_use(log: Path) -> bool:
    """Whether the log ends because one of the server's ports is in use."""
    return _IN_USE.search(b"\n".join(_end(log).splitlines()[-_LAST_WORDS:])) is not None


def tail(log: Path) -> str:
    """The last lines of a log."""
    lines = _end(log).decode(errors="replace").splitlines()
    return "\n".join(lines[-_TAIL_LINES:])


def _end(log: Path) -> bytes:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            return file.read()
    except OSError:
        return b""


def _status(connection: HTTPConnection, path: str, headers: dict[str, str]) -> int:
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    response.read()
    return response.status


def _index(connection: HTTPConnection, headers: dict[str, str]) -> list[dict[str, Any]]:
    connection.request("POST", "/v2/repository/index", b"{}", headers)
    answer = json.loads(connection.getresponse().read())
    return answer if isinstance(answer, list) else []


def _failed(index: list[dict[str, Any]]) -> tuple[str, ...]:
    """Models that are not served for a reason."""
    wrong = (
        entry for entry in index if entry.get("state") == "UNAVAILABLE" and entry.get("reason") not in ("", "unloaded")
    )
    return tuple(map(_why, wrong))


def _why(entry: dict[str, Any]) -> str:
    """What a model or a version lacks, the server's words, and what to do where nothing was exported."""
    name, version, reason = entry.get("name"), entry.get("version"), str(entry.get("reason"))
    called = f"{name} version {version}" if version else f"{name}"
    for pattern, lack in _LACKS:
        if pattern.search(reason):
            return f"{called} {lack}: export something to it, or remove it from the repository ({reason})"
    return f"{called}: {reason}"
