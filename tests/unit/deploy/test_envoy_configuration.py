"""The configuration of Envoy that stands in front of several servers, without an Envoy."""

from __future__ import annotations

import pytest
from alipes.deploy.envoy import SEQUENCE_HEADER, Backend, EnvoySettings, configuration
from alipes.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "backend"),
    [
        ("a", Backend("a", 8000, 8001)),
        ("10.0.0.1:9000", Backend("10.0.0.1", 9000, 9001)),
        ("a.b:9000:80", Backend("a.b", 9000, 80)),
        ("[::1]:9000", Backend("::1", 9000, 9001)),
    ],
)
def test_a_server_is_a_host_with_or_without_ports(text: str, backend: Backend) -> None:
    assert Backend.parse(text) == backend


@pytest.mark.parametrize("text", ["", "a:b", "a:1:2:3", "::1", "a b", "http://a", "a:0", "a:65535", "a:1:70000"])
def test_what_is_no_server_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigError, match=f"^the server '{text}' cannot be "):
        Backend.parse(text)


def test_servers_are_named_once_each() -> None:
    with pytest.raises(ConfigError, match="name at least one server"):
        configuration(EnvoySettings(()))
    with pytest.raises(ConfigError, match="the server 'a' is there twice"):
        configuration(EnvoySettings((Backend("a"), Backend("b"), Backend("a"))))


def test_both_protocols_have_a_cluster_for_sequences_and_one_for_the_rest() -> None:
    document = configuration(EnvoySettings((Backend("10.0.0.1"), Backend("10.0.0.2", 9000, 9001))))
    assert document["admin"]["address"]["socket_address"]["address"] == "127.0.0.1"
    clusters = {cluster["name"]: cluster for cluster in document["static_resources"]["clusters"]}
    assert {name: cluster["lb_policy"] for name, cluster in clusters.items()} == {
        "http": "LEAST_REQUEST",
        "http-sequences": "RING_HASH",
        "grpc": "LEAST_REQUEST",
        "grpc-sequences": "RING_HASH",
    }
    for cluster in clusters.values():
        assert cluster["type"] == "STATIC"
        (check,) = cluster["health_checks"]
        assert (check["no_traffic_interval"], check["http_health_check"]["path"]) == ("1s", "/v2/health/ready")
    first, second = clusters["grpc"]["load_assignment"]["endpoints"][0]["lb_endpoints"]
    assert first["endpoint"]["health_check_config"] == {"port_value": 8000}
    assert second["endpoint"]["address"]["socket_address"] == {"address": "10.0.0.2", "port_value": 9001}
    for listener in document["static_resources"]["listeners"]:
        manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
        assert manager["stream_idle_timeout"] == "0s"
        routes = manager["route_config"]["virtual_hosts"][0]["routes"]
        assert [route["route"]["timeout"] for route in routes] == ["0s", "0s"]
        assert routes[0]["match"]["headers"] == [{"name": SEQUENCE_HEADER, "present_match": True}]


def test_a_name_stands_for_all_its_addresses() -> None:
    clusters = configuration(EnvoySettings((Backend("10.0.0.1"), Backend("models"))))["static_resources"]["clusters"]
    assert {cluster["type"] for cluster in clusters} == {"STRICT_DNS"}
