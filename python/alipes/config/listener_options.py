"""The options of listeners: addresses, encryption, keys, and the limits of connections."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = [
    "ApiKeyOptions",
    "ConnectionOptions",
    "Endpoint",
    "InheritedSocket",
    "KeepaliveOptions",
    "Restriction",
    "TlsOptions",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsOptions:
    """How connections of an endpoint are encrypted, if they are.

    Attributes:
        enabled: Whether they are.
        mutual: Whether they are and clients are asked for a certificate.
        certificate: File of the server's certificate and those between it and a root.
        key: File of the server's key.
        roots: File of the roots that certificates of clients lead to.
    """

    enabled: bool
    mutual: bool
    certificate: str
    key: str
    roots: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One listening socket: HTTP, gRPC or metrics.

    Attributes:
        enabled: Whether it is offered at all.
        address: Host name or address to bind, or `unix:` and a path.
        port: Port to bind; 0 asks the system for one. Of no use to a path.
        tls: How connections are encrypted.
        reuse_port: Whether other processes may listen on the same port.
    """

    enabled: bool
    address: str
    port: int
    tls: TlsOptions
    reuse_port: bool = False

    @property
    def is_path(self) -> bool:
        """Whether it is a Unix socket."""
        return self.address.startswith("unix:")

    @property
    def is_encrypted(self) -> bool:
        """Whether its connections are."""
        return self.tls.enabled or self.tls.mutual


@dataclass(frozen=True, slots=True, kw_only=True)
class InheritedSocket:
    """A listening socket that another process opened.

    Attributes:
        descriptor: Its number in this process.
        name: What the other process calls it; `http`, `grpc` and `metrics` are endpoints.
    """

    descriptor: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restriction:
    """Groups of requests that need a header with an agreed value."""

    groups: tuple[str, ...]
    header: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyOptions:
    """The keys that clients must show.

    Attributes:
        keys: Those that were named; no text that shows the options has them.
        file: A file of more; empty for none.
        open_groups: Groups of requests that need no key.
    """

    keys: tuple[str, ...] = field(repr=False)
    file: str
    open_groups: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    """What connections may take. Times and rates of 0 set no limit.

    Attributes:
        max_connections: Connections at a time; 0 takes what memory and descriptors allow.
        max_header_bytes: Largest head of a request in bytes.
        max_header_count: Most headers of a request.
        header_timeout_s: Seconds until a head has come.
        idle_timeout_s: Seconds without a request.
        stall_timeout_s: Seconds without progress of a body or an answer.
        exit_grace_s: Seconds without a request once the server stops; 0 gives none.
        http2_control_frames_per_s: Frames of HTTP/2 that bring nothing.
        trusted_proxies: Networks that answer for no flood.
        tls_reload_s: Seconds between two looks at certificates; 0 looks once.
    """

    max_connections: int
    max_header_bytes: int
    max_header_count: int
    header_timeout_s: float
    idle_timeout_s: float
    stall_timeout_s: float
    exit_grace_s: float
    http2_control_frames_per_s: int
    trusted_proxies: tuple[str, ...]
    tls_reload_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepaliveOptions:
    """How gRPC connections are kept, in gRPC's own words and units. Times of 0 set no limit.

    Attributes:
        time_ms: Milliseconds between two pings of the server.
        timeout_ms: Milliseconds to wait for the answer to one.
        permit_without_calls: Whether clients without calls may ping as often as those with.
        min_recv_ping_interval_ms: Milliseconds that have to pass between two pings of a client.
        max_ping_strikes: Pings that may come earlier; 0 takes any number.
        max_connection_age_ms: Milliseconds until a connection is asked to go.
        max_connection_age_grace_ms: Milliseconds after which one that was asked is closed.
    """

    time_ms: int
    timeout_ms: int
    permit_without_calls: bool
    min_recv_ping_interval_ms: int
    max_ping_strikes: int
    max_connection_age_ms: int
    max_connection_age_grace_ms: int
