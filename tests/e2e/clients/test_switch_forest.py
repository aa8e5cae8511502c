"""The forest on the page "From MLServer" gives the same numbers on both servers, over the same protocol."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.server import ServerProcess
from support.switched import Document, environment_of, post, start_mlserver, written_by

pytestmark = [pytest.mark.extra("trees"), pytest.mark.proof, pytest.mark.timeout(600)]

PATH = "/v2/models/forest/infer"


def _document(shape: tuple[int, ...], **changes: Any) -> dict[str, Any]:
    data = np.random.default_rng(7).standard_normal(shape).ravel().tolist()
    return {"inputs": [{"name": "input", "datatype": "FP32", "shape": list(shape), "data": data, **changes}]}


def _output(answer: Any) -> dict[str, Any]:
    (output,) = answer["outputs"]
    return {key: output[key] for key in ("name", "datatype", "shape", "data")}


def test_the_same_file_answers_the_same(serve: Callable[..., ServerProcess]) -> None:
    environment = environment_of("mlserver")
    if environment is None:
        pytest.skip("mlserver is not there: `make clients` brings it")
    models = written_by("forest", Path(sys.executable))
    ours = serve(models).http
    first = _document((1, 32))
    expected = _output(post(ours, PATH, first)[1])
    document = Document("forest", PATH, first, tuple(expected["data"]), lambda answer: answer["outputs"][0]["data"])
    theirs = start_mlserver(environment, "forest", models / "forest" / "1" / "model.ubj", document)
    with theirs.process:
        address = f"127.0.0.1:{theirs.http_port}"
        for rows in (1, 2, 64):
            found = [post(server, PATH, _document((rows, 32))) for server in (ours, address)]
            assert [status for status, _ in found] == [200, 200]
            assert _output(found[0][1]) == _output(found[1][1])
        # What the page says of requests that do not fit.
        short, other = _document((1, 31)), _document((1, 32), name="x", datatype="FP64")
        assert [post(server, PATH, short)[0] for server in (ours, address)] == [400, 500]
        assert [post(server, PATH, other)[0] for server in (ours, address)] == [400, 200]
        assert [post(server, PATH, b"{")[0] for server in (ours, address)] == [500, 422]
