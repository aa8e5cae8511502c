"""The documents that cross to the data plane have the same fields on both sides."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from alipes import _core
from alipes.config.load import parse_flags
from alipes.server.boundary import server_config

SPEC = Path(__file__).parents[2] / "crates" / "server" / "src" / "spec.rs"


def rust_fields(struct: str) -> set[str]:
    body = re.search(rf"pub struct {struct} {{(.*?)\n}}", SPEC.read_text(), re.DOTALL)
    assert body is not None, struct
    return set(re.findall(r"^    pub (\w+):", body[1], re.MULTILINE))


def config() -> dict[str, object]:
    flags = [".", *(f"--{door}-port=0" for door in ("http", "grpc", "metrics"))]
    flags += [f"--{door}-address=127.0.0.1" for door in ("http", "grpc", "metrics")]
    return dict(json.loads(server_config(parse_flags(flags, {}))))


def test_the_server_configuration_has_the_fields_of_the_data_plane() -> None:
    assert set(config()) == rust_fields("ServerConfig")
    assert set(config()["http"]) == rust_fields("Endpoint")  # type: ignore[call-overload]


def test_the_data_plane_takes_the_server_configuration() -> None:
    _core.Server(json.dumps(config())).stop()


@pytest.mark.parametrize("change", [{"more": 1}, {"schema": 2}, {"id": None}])
def test_the_data_plane_refuses_a_document_that_does_not_fit(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(change))}|invalid type"):
        _core.Server(json.dumps(config() | change))
