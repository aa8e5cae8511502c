"""Asks servers: which models an answer involves, and what their counters say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from alipes.errors import AlipesError, DeadlineExceeded, InferError, MonitorError, TlsError, TransportError
from alipes.local_ports import resolve
from alipes.monitor.ledger import Key
from alipes.monitor.prometheus import Sample, samples

if TYPE_CHECKING:
    from alipes.client import Client, Tls

__all__ = ["Place", "agreed", "involved", "page", "place"]

TIMEOUT_S: Final = 5.0
MAX_PAGE_BYTES: Final = 64 << 20
"""More than the metrics of ten thousand models; a larger page is not a server's."""

LATEST: Final = -1


@dataclass(frozen=True, slots=True)
class Place:
    """One server.

    Attributes:
        ip: As the caller named it.
        http: Where it is asked about models, `host:port`.
        metrics: Where its counters are, `host:port`.
        grpc: Where it is asked about models if it has no HTTP, `host:port`.
        tls: How connections to all of them are encrypted; plain without it.
    """

    ip: str
    http: str
    metrics: str
    grpc: str
    tls: Tls | None = None


def place(
    ip: str, http_port: int = 8000, metrics_port: int = 8002, grpc_port: int = 8001, tls: Tls | None = None
) -> Place:
    """The endpoints of a server, from its name or address, with or without the port of its metrics."""
    host, colon, port = ip.rpartition(":")
    if not (colon and port.isdecimal() and (":" not in host or host.endswith("]"))):
        host, port = ip, str(metrics_port)
    return Place(ip, resolve(f"{host}:{http_port}"), resolve(f"{host}:{port}"), resolve(f"{host}:{grpc_port}"), tls)


def involved(where: Place, model: str, version: int, *, itself: bool = False) -> list[Key]:
    """The models that answer for a model, each with its version, in the order of their steps and each once.

    Args:
        where: The server. If it does not answer over HTTP, gRPC is tried.
        model: The model. An ensemble is answered for by the models of its steps.
        version: Its version; -1 for the latest.
        itself: Whether an ensemble is one of them.

    Raises:
        MonitorError: If the server has no such model or version.
        TlsError: If its certificate is not trusted, or ours not by it.
        TransportError: If it does not answer.
    """
    found: dict[Key, None] = {}
    _ask(where, lambda client: _collect(client, model, version, found, itself=itself))
    return list(found)


def _ask(where: Place, question: Callable[[Client], None]) -> None:
    from alipes.client import Client, Retry  # imported on use: this module stays quick to import

    encrypted = "" if where.tls is None else "s"
    silent: list[AlipesError] = []
    for address in (f"http{encrypted}://{where.http}", f"grpc{encrypted}://{where.grpc}"):
        client = Client(address, timeout_s=TIMEOUT_S, connect_timeout_s=TIMEOUT_S, retry=Retry(times=0), tls=where.tls)
        with client:
            try:
                return question(client)
            except TlsError:
                raise  # a server answered; the certificate of another endpoint is no better
            except (TransportError, DeadlineExceeded) as error:
                silent.append(error)
            except InferError as error:
                raise MonitorError(f"the server {where.ip} says: {error}") from error
    over_http, over_grpc = silent
    raise TransportError(
        f"the server {where.ip} does not answer at {where.http}: {over_http}; nor over gRPC: {over_grpc}"
    ) from over_http


def _collect(client: Client, model: str, version: int, found: dict[Key, None], *, itself: bool) -> None:
    actual = _version(client, model, version)
    config = client.config(model, str(actual))
    steps: list[dict[str, Any]] = config.get("ensemble_scheduling", {}).get("step", [])
    if itself or not steps:
        found[model, actual] = None
    for step in steps:
        _collect(client, step["model_name"], int(step.get("model_version", LATEST)), found, itself=itself)


def _version(client: Client, model: str, version: int) -> int:
    versions = [int(text) for text in client.metadata(model).get("versions", [])]
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
    from alipes._core import ClientLink
    from alipes.client.api_key import keyed_headers

    security = None if where.tls is None else where.tls.read()
    link = ClientLink(where.metrics, "http", TIMEOUT_S, keyed_headers(None), security)
    try:
        body = link.call("/metrics", None, TIMEOUT_S)
    except (TransportError, DeadlineExceeded) as error:
        raise TransportError(f"the metrics of {where.ip} do not answer at {where.metrics}: {error}") from error
    except InferError as error:
        raise TransportError(f"the metrics of {where.ip} at {where.metrics} answer with {error}") from error
    finally:
        link.close()
    if len(body) > MAX_PAGE_BYTES:
        raise TransportError(f"the metrics of {where.ip} at {where.metrics} have more than {MAX_PAGE_BYTES} bytes")
    return list(samples(body.decode(errors="replace")))


def _listed(keys: list[Key]) -> str:
    return ", ".join(f"{model} version {version}" for model, version in sorted(keys)) or "nothing"
