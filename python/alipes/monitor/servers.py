"""Asks servers: which models an answer involves, and what their counters say."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any, Final

from alipes.errors import MonitorError, TransportError
from alipes.handover import resolve
from alipes.monitor.ledger import Key
from alipes.monitor.prometheus import Sample, samples

__all__ = ["Place", "agreed", "involved", "page", "place"]

TIMEOUT_S: Final = 5.0
MAX_PAGE_BYTES: Final = 64 << 20
"""More than ten thousand models tell; beyond it, whatever answers there is no server."""

LATEST: Final = -1
_NOT_JSON: Final = "an answer that is not JSON"


@dataclass(frozen=True, slots=True)
class Place:
    """One server.

    Attributes:
        ip: As the caller named it.
        http: Where it is asked about models, `host:port`.
        metrics: Where its counters are, `host:port`.
    """

    ip: str
    http: str
    metrics: str


def place(ip: str, http_port: int = 8000, metrics_port: int = 8002) -> Place:
    """Where a server is that somebody calls by a name or an address, or by one with the port of its metrics."""
    host, colon, port = ip.rpartition(":")
    if colon and port.isdecimal() and (":" not in host or host.endswith("]")):
        return Place(ip, resolve(f"{host}:{http_port}"), resolve(f"{host}:{port}"))
    return Place(ip, resolve(f"{ip}:{http_port}"), resolve(f"{ip}:{metrics_port}"))


def involved(where: Place, model: str, version: int, *, itself: bool = False) -> list[Key]:
    """The models that answer for a model, each with its version, in the order of their steps and each once.

    Args:
        where: The server.
        model: The model. An ensemble is answered for by the models of its steps.
        version: Its version; -1 for the latest.
        itself: Whether an ensemble is one of them.

    Raises:
        MonitorError: If the server has no such model or version.
        TransportError: If it does not answer.
    """
    connection = HTTPConnection(where.http, timeout=TIMEOUT_S)
    try:
        found: dict[Key, None] = {}
        _collect(connection, model, version, found, itself=itself)
        return list(found)
    except (OSError, HTTPException) as error:
        raise TransportError(f"the server {where.ip} does not answer at {where.http}: {error}") from error
    finally:
        connection.close()


def _collect(connection: HTTPConnection, model: str, version: int, found: dict[Key, None], *, itself: bool) -> None:
    actual = _version(connection, model, version)
    config = _json(connection, f"/v2/models/{model}/versions/{actual}/config")
    steps = config.get("ensemble_scheduling", {}).get("step", [])
    if itself or not steps:
        found[model, actual] = None
    for step in steps:
        _collect(connection, step["model_name"], int(step.get("model_version", LATEST)), found, itself=itself)


def _version(connection: HTTPConnection, model: str, version: int) -> int:
    versions = [int(text) for text in _json(connection, f"/v2/models/{model}").get("versions", [])]
    if version == LATEST and versions:
        return max(versions)
    if version not in versions:
        served = ", ".join(map(str, versions)) or "none"
        raise MonitorError(f"model {model} has no version {version} that is served: there is {served}")
    return version


def agreed(found: dict[str, list[Key]]) -> list[Key]:
    """The models that all servers have in common, which have to be all of them.

    Raises:
        MonitorError: If they differ, with what each has.
    """
    first, *others = found.items()
    for ip, keys in others:
        if set(keys) != set(first[1]):
            raise MonitorError(
                f"the servers do not serve the same: {first[0]} has {_listed(first[1])}, {ip} has {_listed(keys)}"
            )
    return first[1]


def page(where: Place) -> list[Sample]:
    """What the counters of a server say now.

    Raises:
        TransportError: If it does not answer, or with something else.
    """
    connection = HTTPConnection(where.metrics, timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        body = response.read(MAX_PAGE_BYTES)
        if response.status != 200:
            raise TransportError(
                f"the metrics of {where.ip} at {where.metrics} answer with HTTP status {response.status}"
            )
    except (OSError, HTTPException) as error:
        raise TransportError(f"the metrics of {where.ip} do not answer at {where.metrics}: {error}") from error
    finally:
        connection.close()
    return list(samples(body.decode(errors="replace")))


def _json(connection: HTTPConnection, path: str) -> dict[str, Any]:
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read()
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise MonitorError(f"GET {path}: {_NOT_JSON}, HTTP status {response.status}") from error
    if response.status != 200 or not isinstance(answer, dict):
        reason = answer.get("error", answer) if isinstance(answer, dict) else answer
        raise MonitorError(f"GET {path}: HTTP status {response.status}: {reason}")
    return answer


def _listed(keys: list[Key]) -> str:
    return ", ".join(f"{model} version {version}" for model, version in sorted(keys)) or "nothing"
