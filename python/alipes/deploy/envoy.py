"""A configuration of Envoy, which gives several servers one address: what it says, and how it is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final

from alipes.errors import ConfigError, Unsupported

__all__ = ["SEQUENCE_HEADER", "Backend", "EnvoySettings", "configuration", "written"]

SEQUENCE_HEADER: Final = "x-sequence-id"
"""The header in which the clients of alipes say the sequence of a request."""

_READY: Final = "/v2/health/ready"

_PLACE: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]/\s,]+)(?::(?P<http>\d+))?(?::(?P<grpc>\d+))?")
_LAST_PORT: Final = 65535

_MOST_OPEN: Final = 65_536
"""Most connections, requests and waiting requests of a cluster. Envoy's own bound, 1,024, is one load test's."""

_GRPC_WINDOW_BYTES: Final = 1 << 20
"""What may be on its way in a call of gRPC: an image of 3x224x224 FP32 and more need no pause at 64 KiB."""

_TYPES: Final = "type.googleapis.com/envoy.extensions"


@dataclass(frozen=True, slots=True)
class Backend:
    """A server behind Envoy.

    Attributes:
        host: Its name or IP address. A name stands for every address that it has.
        http: Port of its HTTP endpoint, where its health is asked.
        grpc: Port of its gRPC endpoint.
    """

    host: str
    http: int = 8000
    grpc: int = 8001

    @classmethod
    def parse(cls, text: str) -> Backend:
        """Reads `HOST`, `HOST:HTTP` or `HOST:HTTP:GRPC`; without the last, gRPC is one port above HTTP.

        Raises:
            ConfigError: If it is none of them.
        """
        found = _PLACE.fullmatch(text)
        if found is None:
            write = "write HOST, HOST:HTTP or HOST:HTTP:GRPC"
            raise ConfigError(f"the server '{text}' cannot be read: {write}", key="server")
        http = int(found["http"] or 8000)
        grpc = int(found["grpc"] or http + 1)
        for port in (http, grpc):
            if not 0 < port <= _LAST_PORT:
                raise ConfigError(f"the server '{text}' cannot be used: {port} is no port", key="server")
        return cls(found["host"].strip("[]"), http, grpc)


@dataclass(frozen=True, slots=True)
class EnvoySettings:
    """What the configuration is made from.

    Attributes:
        backends: The servers.
        address: The address at which Envoy listens.
        http: Its port for HTTP.
        grpc: Its port for gRPC.
        admin: The port of its own pages, on the loopback interface.
    """

    backends: tuple[Backend, ...]
    address: str = "0.0.0.0"
    http: int = 8000
    grpc: int = 8001
    admin: int = 9901


def configuration(settings: EnvoySettings) -> dict[str, Any]:
    """The configuration as Envoy reads it.

    Requests of a sequence go by a ring hash of its id, so that all of them reach one server, and others to the server
    with the fewest requests in flight. A server whose health check fails gets none.

    Raises:
        ConfigError: If there is no server, or one is there twice.
    """
    backends = settings.backends
    if not backends:
        raise ConfigError("name at least one server", key="server")
    for backend in backends:
        if backends.count(backend) > 1:
            raise ConfigError(f"the server '{backend.host}' is there twice", key="server")
    clusters = [
        _cluster(wire, backends, by_sequence=by_sequence) for wire in ("http", "grpc") for by_sequence in (False, True)
    ]
    return {
        "admin": {"address": _socket("127.0.0.1", settings.admin)},
        "static_resources": {
            "listeners": [
                _listener("http", settings.address, settings.http),
                _listener("grpc", settings.address, settings.grpc),
            ],
            "clusters": clusters,
        },
    }


def written(settings: EnvoySettings) -> str:
    """The configuration as YAML.

    Raises:
        ConfigError: As `configuration`.
        Unsupported: Without the package PyYAML.
    """
    document = configuration(settings)
    try:
        import yaml
    except ImportError as error:
        raise Unsupported("YAML needs PyYAML: install it with `pip install 'alipes[deploy]'`") from error
    text: str = yaml.safe_dump(document, sort_keys=False, width=120)
    return text


def _listener(wire: str, address: str, port: int) -> dict[str, Any]:
    manager = {
        "@type": f"{_TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": wire,
        "codec_type": "AUTO",
        # A stream of gRPC, or a load of a large model, may be silent for as long as it needs.
        "stream_idle_timeout": "0s",
        "request_timeout": "0s",
        "route_config": {
            "name": wire,
            "virtual_hosts": [
                {
                    "name": "servers",
                    "domains": ["*"],
                    "routes": [
                        _route(f"{wire}-sequences", {"headers": [{"name": SEQUENCE_HEADER, "present_match": True}]}),
                        _route(wire, {}),
                    ],
                }
            ],
        },
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": f"{_TYPES}.filters.http.router.v3.Router"},
            }
        ],
    }
    network = {"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}
    return {"name": wire, "address": _socket(address, port), "filter_chains": [{"filters": [network]}]}


def _route(cluster: str, match: dict[str, Any]) -> dict[str, Any]:
    route: dict[str, Any] = {
        "cluster": cluster,
        "timeout": "0s",
        # Only what no server has begun: whether more may be repeated, clients know.
        "retry_policy": {
            "retry_on": "connect-failure,refused-stream",
            "num_retries": 3,
            "retry_host_predicate": [
                {
                    "name": "envoy.retry_host_predicates.previous_hosts",
                    "typed_config": {"@type": f"{_TYPES}.retry.host.previous_hosts.v3.PreviousHostsPredicate"},
                }
            ],
            "host_selection_retry_max_attempts": 5,
        },
    }
    if match:
        route["hash_policy"] = [{"header": {"header_name": SEQUENCE_HEADER}}]
    return {"match": {"prefix": "/", **match}, "route": route}


def _cluster(wire: str, backends: Sequence[Backend], *, by_sequence: bool) -> dict[str, Any]:
    name = f"{wire}-sequences" if by_sequence else wire
    protocol = (
        {
            "http2_protocol_options": {
                "initial_stream_window_size": _GRPC_WINDOW_BYTES,
                "initial_connection_window_size": 16 * _GRPC_WINDOW_BYTES,
            }
        }
        if wire == "grpc"
        else {"http_protocol_options": {}}
    )
    return {
        "name": name,
        "type": "STATIC" if all(_is_number(backend.host) for backend in backends) else "STRICT_DNS",
        "connect_timeout": "1s",
        "lb_policy": "RING_HASH" if by_sequence else "LEAST_REQUEST",
        # Where no server is healthy, say so, and send nothing to servers that are gone.
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": f"{_TYPES}.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": protocol,
            }
        },
        "circuit_breakers": {
            "thresholds": [
                {"max_connections": _MOST_OPEN, "max_pending_requests": _MOST_OPEN, "max_requests": _MOST_OPEN}
            ]
        },
        "health_checks": [
            {
                "timeout": "1s",
                "interval": "1s",
                # Without traffic Envoy would look once a minute, and send the next requests to a server that is gone.
                "no_traffic_interval": "1s",
                "unhealthy_threshold": 1,
                "healthy_threshold": 1,
                "http_health_check": {"path": _READY, "codec_client_type": "HTTP1"},
            }
        ],
        # A model that fails answers with a 500, which is no fault of its server: connections that fail are.
        "outlier_detection": {
            "split_external_local_origin_errors": True,
            "consecutive_local_origin_failure": 2,
            "enforcing_consecutive_5xx": 0,
            "enforcing_success_rate": 0,
            "enforcing_local_origin_success_rate": 0,
            "interval": "1s",
            "base_ejection_time": "1s",
            "max_ejection_percent": 100,
        },
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [_endpoint(wire, backend) for backend in backends]}],
        },
    }


def _endpoint(wire: str, backend: Backend) -> dict[str, Any]:
    port = backend.grpc if wire == "grpc" else backend.http
    endpoint: dict[str, Any] = {"address": _socket(backend.host, port)}
    if port != backend.http:
        endpoint["health_check_config"] = {"port_value": backend.http}
    return {"endpoint": endpoint}


def _socket(address: str, port: int) -> dict[str, Any]:
    return {"socket_address": {"address": address, "port_value": port}}


def _is_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
