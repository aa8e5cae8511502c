"""Finds what one protocol guards and another leaves open to the same clients."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final

from alipes.config.listener_options import Endpoint, Restriction
from alipes.config.options import ServerOptions
from alipes.config.restrictions import parts_of

__all__ = ["reached_by_anybody", "unguarded"]

_HTTP_ALONE: Final = frozenset(("endpoint", "openapi"))
"""Groups of requests that gRPC does not have."""


def unguarded(options: ServerOptions) -> list[str]:
    """One line for each listener, and for each one's groups, that another listener guards and it does not.

    A listener with a certificate that no flag switches on has a line, too.

    A listener that only this machine reaches is compared with others of its kind alone.
    """
    listeners = [
        ("HTTP", "http", options.http),
        ("gRPC", "grpc", options.grpc),
        ("the metrics endpoint", "metrics", options.metrics),
    ]
    open_ones = [listener for listener in listeners if listener[2].enabled]
    return [*_unused_certificates(open_ones), *_open_groups(options), *_plain_listeners(open_ones)]


def reached_by_anybody(options: ServerOptions) -> str | None:
    """What anybody can do who reaches the server from another machine, in one line; None where that is nothing."""
    if options.api_keys is not None:
        return None
    listeners = [("http", options.http, options.http_restricted), ("grpc", options.grpc, options.grpc_restricted)]
    reached = [
        (protocol, endpoint, {part for group in _groups(restricted) for part in parts_of(group)})
        for protocol, endpoint, restricted in listeners
        if endpoint.enabled and not endpoint.tls.mutual and _is_reached_from_outside(endpoint)
    ]
    loads = options.repository.control_mode == "explicit"
    acts = (("inference", "ask its models"), *((("model-control", "load and unload them"),) if loads else ()))
    open_acts = [act for group, act in acts if any(group not in groups for *_, groups in reached)]
    if not open_acts:
        return None
    where = " and ".join(
        f"{protocol}{'s' * endpoint.is_encrypted}://{endpoint.address}" for protocol, endpoint, _ in reached
    )
    return (
        f"anybody who reaches {where} can {' and '.join(open_acts)}: --api-key asks clients for a key, and an address "
        "of 127.0.0.1 serves this machine alone"
    )


def _unused_certificates(listeners: list[tuple[str, str, Endpoint]]) -> Iterator[str]:
    """One line for each listener whose certificate, key or roots are named and not used."""
    for name, flag, endpoint in listeners:
        tls = endpoint.tls
        own = [f"--{flag}-server-{word}" for word, file in (("cert", tls.certificate), ("key", tls.key)) if file]
        roots = [f"--{flag}-root-cert"] if tls.roots else []
        if not endpoint.is_encrypted and (own or roots):
            unused, switch, outcome = [*own, *roots], f"--{flag}-use-ssl", f"{name} is not encrypted"
        elif roots and not tls.mutual:
            unused, switch, outcome = roots, f"--{flag}-use-ssl-mutual", f"{name} asks clients for no certificate"
        else:
            continue
        verb = "have" if len(unused) > 1 else "has"
        yield f"{' and '.join(unused)} {verb} no effect without {switch}=true: {outcome}"


def _open_groups(options: ServerOptions) -> Iterator[str]:
    http, grpc = _groups(options.http_restricted), _groups(options.grpc_restricted)
    beside_grpc, beside_http = _beside(http, grpc), _beside(grpc, http)
    if beside_grpc and _is_as_open(options.grpc, options.http):
        yield (
            f"--http-restricted-api guards {', '.join(beside_grpc)}, and gRPC leaves it open: "
            "--grpc-restricted-protocol guards it there, --allow-grpc=false closes gRPC"
        )
    if beside_http and _is_as_open(options.http, options.grpc):
        yield (
            f"--grpc-restricted-protocol guards {', '.join(beside_http)}, and HTTP leaves it open: "
            "--http-restricted-api guards it there, --allow-http=false closes HTTP"
        )


def _plain_listeners(listeners: list[tuple[str, str, Endpoint]]) -> Iterator[str]:
    for name, flag, endpoint in listeners:
        close = f"--allow-{flag}=false closes it"
        if not endpoint.tls.mutual and (guarded := _first(listeners, endpoint, mutual=True)):
            yield (
                f"{guarded} asks clients for certificates and {name} does not: --{flag}-use-ssl-mutual asks for them, "
                f"{close}"
            )
        elif not endpoint.is_encrypted and (guarded := _first(listeners, endpoint, mutual=False)):
            yield f"{guarded} is encrypted and {name} is not: --{flag}-use-ssl encrypts it, {close}"


def _first(listeners: list[tuple[str, str, Endpoint]], beside: Endpoint, *, mutual: bool) -> str | None:
    """The first listener with TLS whose clients reach another listener as well."""
    for name, _, endpoint in listeners:
        if (endpoint.tls.mutual if mutual else endpoint.is_encrypted) and _is_as_open(beside, endpoint):
            return name
    return None


def _beside(groups: list[str], others: list[str]) -> list[str]:
    """The groups that hold a part, which both protocols have, and none of the other protocol's groups."""
    known = _HTTP_ALONE.union(*map(parts_of, others))
    return [group for group in groups if not known.issuperset(parts_of(group))]


def _groups(restrictions: tuple[Restriction, ...]) -> list[str]:
    return [group for restriction in restrictions for group in restriction.groups]


def _is_as_open(endpoint: Endpoint, guarded: Endpoint) -> bool:
    """Whether those who reach a guarded listener reach another one, too."""
    if not (endpoint.enabled and guarded.enabled) or endpoint.address.startswith("unix:"):
        return False
    return _is_reached_from_outside(endpoint) or not _is_reached_from_outside(guarded)


def _is_reached_from_outside(endpoint: Endpoint) -> bool:
    if endpoint.address.startswith("unix:") or endpoint.address == "localhost":
        return False
    try:
        return not ipaddress.ip_address(endpoint.address).is_loopback
    except ValueError:
        return True
