"""What one protocol guards and another leaves open is said at the start."""

from __future__ import annotations

import pytest
from alipes.config.load import parse_flags
from alipes.config.unguarded import unguarded

HTTP_KEY = "--http-restricted-api=model-repository,logging:key=word"
GRPC_KEY = "--grpc-restricted-protocol=model-repository,logging:key=word"
HTTP_TLS = ("--http-use-ssl", "--http-server-cert=a", "--http-server-key=b")
GRPC_TLS = ("--grpc-use-ssl", "--grpc-server-cert=a", "--grpc-server-key=b")
METRICS_TLS = ("--metrics-use-ssl", "--metrics-server-cert=a", "--metrics-server-key=b")


def lines(*flags: str) -> list[str]:
    return unguarded(parse_flags(["models", *flags], {}))


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((HTTP_KEY,), ["--http-restricted-api guards model-repository, logging, and gRPC leaves it open: "]),
        ((GRPC_KEY,), ["--grpc-restricted-protocol guards model-repository, logging, and HTTP leaves it open: "]),
        (
            (HTTP_KEY, "--grpc-restricted-protocol=logging:key=word"),
            ["--http-restricted-api guards model-repository, and gRPC leaves it open: "],
        ),
        ((*HTTP_TLS, "--allow-metrics=false"), ["HTTP is encrypted and gRPC is not: --grpc-use-ssl encrypts it, "]),
        ((*GRPC_TLS, "--allow-metrics=false"), ["gRPC is encrypted and HTTP is not: --http-use-ssl encrypts it, "]),
        (
            (*HTTP_TLS, *GRPC_TLS),
            ["HTTP is encrypted and the metrics endpoint is not: --metrics-use-ssl encrypts it, "],
        ),
        (
            (*HTTP_TLS, "--http-use-ssl-mutual", "--http-root-cert=c", *GRPC_TLS, "--allow-metrics=false"),
            ["HTTP asks clients for certificates and gRPC does not: --grpc-use-ssl-mutual asks for them, "],
        ),
        (
            ("--http-restricted-api=model-control:key=word",),
            ["--http-restricted-api guards model-control, and gRPC leaves it open: "],
        ),
        # The control leaves the index open.
        (
            ("--http-restricted-api=model-repository:key=word", "--grpc-restricted-protocol=model-control:key=word"),
            ["--http-restricted-api guards model-repository, and gRPC leaves it open: "],
        ),
        (
            ("--http-restricted-api=model-control:key=word", "--grpc-restricted-protocol=model-repository:key=word"),
            ["--grpc-restricted-protocol guards model-repository, and HTTP leaves it open: "],
        ),
        ((HTTP_KEY, "--http-address=127.0.0.1"), ["--http-restricted-api guards model-repository"]),
        (
            HTTP_TLS[1:],
            [
                "--http-server-cert and --http-server-key have no effect without --http-use-ssl=true: "
                "HTTP is not encrypted"
            ],
        ),
        (GRPC_TLS[1:2], ["--grpc-server-cert has no effect without --grpc-use-ssl=true: gRPC is not encrypted"]),
        (METRICS_TLS[2:], ["--metrics-server-key has no effect without --metrics-use-ssl=true: the metrics endpoint"]),
        (
            (*HTTP_TLS, "--http-root-cert=c", "--allow-grpc=false", "--allow-metrics=false"),
            ["--http-root-cert has no effect without --http-use-ssl-mutual=true: HTTP asks clients for no certificate"],
        ),
    ],
)
def test_what_another_protocol_leaves_open_is_one_line(flags: tuple[str, ...], expected: list[str]) -> None:
    found = lines(*flags)
    assert len(found) == len(expected), found
    assert all(line.startswith(start) for line, start in zip(found, expected, strict=True)), found


@pytest.mark.parametrize(
    "flags",
    [
        (),
        (HTTP_KEY, GRPC_KEY),
        (HTTP_KEY, "--allow-grpc=false"),
        (GRPC_KEY, "--allow-http=false"),
        (HTTP_KEY, "--grpc-address=unix:socket"),
        (HTTP_KEY, "--grpc-address=127.0.0.1"),
        ("--http-restricted-api=endpoint,openapi:key=word",),
        ("--http-restricted-api=model-control:key=word", "--grpc-restricted-protocol=model-control:key=word"),
        (*HTTP_TLS, *GRPC_TLS, *METRICS_TLS),
        (*HTTP_TLS, "--grpc-address=localhost", "--metrics-address=::1"),
    ],
)
def test_what_is_guarded_alike_or_reached_by_others_is_no_line(flags: tuple[str, ...]) -> None:
    assert lines(*flags) == []
