"""`/openapi.json` describes models of repositories, where that is wanted or a function is described."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.kserve_script import ask
from support.models import add_model, times
from support.python_models import DECOUPLED, add_python_model
from support.server import ServerProcess

APP = "import alipes\n\n\n@alipes.model\ndef one(x: int) -> int:\n    return x\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    add_model(repository, "long", times(columns=1000))
    add_python_model(repository, "texts", signature="X: BYTES[1] -> Y: BYTES[1]", config="max_batch_size: 8\n")
    add_python_model(repository, "open", signature="X: BOOL[-1, 2] -> Y: BOOL[-1, 2]")
    add_python_model(repository, "many", signature="X: FP32[2] -> Y: FP32[2]", config=DECOUPLED)
    return serve_module(repository, "--enable-docs-url=true", "--model-control-mode=explicit", "--load-model=*")


def document(server: ServerProcess) -> dict[str, Any]:
    found: dict[str, Any] = ask(f"http://{server.http}/openapi.json").document
    return found


def test_every_path_of_a_model_answers(server: ServerProcess) -> None:
    asked = []
    for path, methods in document(server)["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {})
            body = content["application/json"].get("example") if content else None
            if method == "post" and body is None:
                continue
            answer = ask(f"http://{server.http}{path}", body)
            assert answer.status == 200, (path, body, answer)
            asked.append(path)
    for model in ("double", "texts", "open"):
        assert {f"/v1/models/{model}", f"/v1/models/{model}:predict", f"/v2/models/{model}/infer"} <= set(asked)
    assert {"/v1/models", "/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/many/ready"} <= set(asked)


def test_long_tensors_and_streams_have_no_example(server: ServerProcess) -> None:
    paths = document(server)["paths"]
    body = paths["/v1/models/long:predict"]["post"]["requestBody"]["content"]["application/json"]
    assert "example" not in body
    assert "/v1/models/many:predict" not in paths
    assert "/v2/models/many" in paths
    assert not [path for path in paths if path.endswith(":explain")]


def test_operations_have_names_of_their_own(server: ServerProcess) -> None:
    operations = [one["operationId"] for methods in document(server)["paths"].values() for one in methods.values()]
    assert len(set(operations)) == len(operations)


def test_the_page_follows_loads_and_unloads(server: ServerProcess) -> None:
    assert ask(f"http://{server.http}/docs").status == 200
    for verb, is_there in (("unload", False), ("load", True)):
        assert ask(f"http://{server.http}/v2/repository/models/texts/{verb}", {}).status == 200
        assert ("/v2/models/texts/infer" in document(server)["paths"]) is is_there


def test_models_stand_beside_functions(repository: Path, tmp_path: Path, serve: Callable[..., ServerProcess]) -> None:
    add_model(repository, "double")
    (tmp_path / "app.py").write_text(APP)
    server = serve(tmp_path / "app.py", repository)
    paths = document(server)["paths"]
    assert {"/one", "/v1/models/double:predict", "/v2/models/double/infer"} <= set(paths)
    assert "/v1/models/one:predict" not in paths


def test_there_is_no_page_unless_it_is_wanted(repository: Path, serve: Callable[..., ServerProcess]) -> None:
    add_model(repository, "double")
    server = serve(repository)
    for path in ("/openapi.json", "/docs"):
        answer = ask(f"http://{server.http}{path}")
        hint = "start the server with --enable-docs-url=true for /docs and /openapi.json"
        assert (answer.status, json.loads(answer.body)) == (404, {"error": f"Not Found; {hint}"})
