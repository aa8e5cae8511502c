"""What a command line says of the endpoints fits together."""

from __future__ import annotations

import pytest
from alipes.config.load import parse_flags
from alipes.errors import ConfigError


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--http-address=unix:/a", "--grpc-address=unix:/a"], "at the same address and port unix:/a"),
        (["--http-port=9", "--grpc-port=9"], "at the same address and port 0.0.0.0:9"),
        (["--http-use-ssl"], "--http-use-ssl needs --http-server-cert"),
        (["--grpc-use-ssl", "--grpc-server-cert=c"], "--grpc-use-ssl needs --grpc-server-key"),
        (
            ["--metrics-use-ssl-mutual", "--metrics-server-cert=c", "--metrics-server-key=k"],
            "--metrics-use-ssl-mutual needs --metrics-root-cert",
        ),
    ],
)
def test_endpoints_that_cannot_work_are_refused(flags: list[str], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_flags(["models", *flags], {})
    assert text in str(caught.value)


def test_paths_are_distinct_whatever_the_ports_say() -> None:
    flags = ["--http-address=unix:/a", "--grpc-address=unix:/b", "--http-port=9", "--grpc-port=9"]
    options = parse_flags(["models", *flags], {})
    assert (options.http.is_path, options.grpc.is_path) == (True, True)


def test_metrics_of_a_server_on_a_path_stay_on_the_machine() -> None:
    assert parse_flags(["models", "--http-address=unix:/a"], {}).metrics.address == "127.0.0.1"
    assert parse_flags(["models", "--http-address=::1"], {}).metrics.address == "::1"


def test_an_endpoint_that_is_off_needs_no_certificate() -> None:
    assert parse_flags(["models", "--allow-http=false", "--http-use-ssl"], {}).http.tls.enabled
