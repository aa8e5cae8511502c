"""The documents that cross to the data plane have the same fields on both sides."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from alipes import _core
from alipes.backends.base import Draft
from alipes.backends.prepare import prepare_version
from alipes.backends.registry import backend_of
from alipes.config.api_keys import OPEN_GROUPS
from alipes.config.call_endpoint import METHODS, CallEndpoint
from alipes.config.load import parse_flags
from alipes.config.poll import poll_model
from alipes.server.boundary import server_config
from support.configurations import backend_of as onnx_backend_of

CRATES = Path(__file__).parents[2] / "crates"
RESTRICTED = CRATES / "net" / "src" / "restricted.rs"
SPECS = sorted((CRATES / "spec" / "src").glob("*.rs"))

TENSORS = """
input { name: "X" data_type: TYPE_FP32 dims: [ -1, 2 ] }
output { name: "Y" data_type: TYPE_FP32 dims: [ -1, 2 ] }
"""


def rust_fields(struct: str) -> set[str]:
    text = "\n".join(path.read_text() for path in SPECS)
    body = re.search(rf"pub struct {struct} {{(.*?)\n}}", text, re.DOTALL)
    assert body is not None, struct
    return set(re.findall(r"^    pub (\w+):", body[1], re.MULTILINE))


def config(*more: str) -> dict[str, Any]:
    flags = [".", *more, *(f"--{door}-port=0" for door in ("http", "grpc", "metrics"))]
    flags += [f"--{door}-address=127.0.0.1" for door in ("http", "grpc", "metrics")]
    return dict(json.loads(server_config(parse_flags(flags, {}))))


def test_the_server_configuration_has_the_fields_of_the_data_plane() -> None:
    assert set(config()) == rust_fields("ServerConfig")
    assert set(config()["http"]) == rust_fields("Endpoint")
    assert set(config()["connections"]) == rust_fields("ConnectionSpec")
    assert set(config()["keepalive"]) == rust_fields("KeepaliveSpec")
    assert set(config()["paths"]) == rust_fields("PathSpec")


def test_endpoints_have_the_fields_of_the_data_plane() -> None:
    restricted = config("--http-restricted-api=health:key=value")["http_restricted"]
    assert set(restricted[0]) == rust_fields("RestrictionSpec")
    keys = config("--api-key=key")["api_keys"]
    assert set(keys) == rust_fields("ApiKeySpec")
    tls = config("--http-use-ssl", "--http-server-cert=a", "--http-server-key=b")["http"]["tls"]
    assert set(tls) == rust_fields("TlsSpec")


def test_flags_restrict_and_open_the_groups_that_the_data_plane_knows() -> None:
    assert tuple(re.findall(r'Group::\w+ => "([^"]+)"', RESTRICTED.read_text())) == OPEN_GROUPS


def test_the_data_plane_takes_the_server_configuration() -> None:
    _core.Server(json.dumps(config())).stop()


def prepared(tmp_path: Path, name: str, file: str) -> dict[str, object]:
    """The specification of a model whose file nobody opens."""
    folder = tmp_path / name
    (folder / "1").mkdir(parents=True)
    (folder / "1" / file).write_bytes(b"")
    (folder / "config.pbtxt").write_text(TENSORS)
    options = parse_flags([str(tmp_path), "--disable-auto-complete-config"], {})
    backend = {"model.onnx": onnx_backend_of, "model.py": backend_of}[file]
    return prepare_version(Draft(poll_model(folder, name, options), folder, 1, options), backend_of=backend).spec


@pytest.mark.parametrize(("file", "struct"), [("model.onnx", "OnnxruntimeSpec"), ("model.py", "WorkerSpec")])
def test_the_specification_of_a_version_has_the_fields_of_the_data_plane(
    tmp_path: Path, file: str, struct: str
) -> None:
    spec = prepared(tmp_path, "m", file)
    assert set(spec) == rust_fields("ModelSpec")
    assert set(spec["engine"]) == {"kind", *rust_fields(struct)}  # type: ignore[call-overload]
    for side in ("inputs", "outputs"):
        assert set(spec[side][0]) <= rust_fields("Port")  # type: ignore[index]


def test_an_endpoint_has_the_fields_and_methods_of_the_data_plane() -> None:
    assert set(CallEndpoint.__annotations__) == rust_fields("CallEndpoint")
    source = (CRATES / "spec" / "src" / "call_endpoint.rs").read_text()
    assert tuple(re.findall(r'CallMethod::\w+ => "([^"]+)"', source)) == METHODS


def test_a_streaming_model_has_the_fields_of_the_data_plane(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    (folder / "1").mkdir(parents=True)
    sizes = {"stride_size": "4", "snapshot_size": "8", "channels": "a:2"}
    rows = [f'parameters {{ key: "{key}" value {{ string_value: "{size}" }} }}' for key, size in sizes.items()]
    (folder / "config.pbtxt").write_text("\n".join(['backend: "snapshotter"', *rows]))
    options = parse_flags([str(tmp_path)], {})
    spec = prepare_version(Draft(poll_model(folder, "m", options), folder, 1, options), backend_of=backend_of).spec
    assert set(spec["engine"]) == {"kind", *rust_fields("StreamingSpec")}


@pytest.mark.parametrize("change", [{"more": 1}, {"schema": 2}, {"id": None}])
def test_the_data_plane_refuses_a_document_that_does_not_fit(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(change))}|invalid type"):
        _core.Server(json.dumps(config() | change))


@pytest.mark.parametrize(
    ("backend", "struct"),
    [("picture", "PictureSpec"), ("top_k", "TopKSpec"), ("mean_pooling", "PoolingSpec")],
)
def test_a_native_step_has_the_fields_of_the_data_plane(tmp_path: Path, backend: str, struct: str) -> None:
    folder = tmp_path / "m"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(f'backend: "{backend}"')
    options = parse_flags([str(tmp_path)], {})
    spec = prepare_version(Draft(poll_model(folder, "m", options), folder, 1, options), backend_of=backend_of).spec
    assert set(spec["engine"]) == {"kind", *rust_fields("NativeSpec")}
    assert set(spec["engine"]["step"]) == {"kind", *rust_fields(struct)}
    numbers = spec["engine"]["step"].get("numbers")
    assert numbers is None or set(numbers) == rust_fields("NumberSpec")
