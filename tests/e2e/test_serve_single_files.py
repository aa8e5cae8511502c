"""`alipes serve iris.onnx`: one file is served as it is, under its own name, by the command and from Python."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from alipes import Client, Server
from support.models import times
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]
ROWS = np.array([[1, 2], [3, 4]], np.float32)


def test_a_file_and_a_folder_of_models_are_served_side_by_side(tmp_path: Path, serve: Serve) -> None:
    for file, factor in (("twice.onnx", 2.0), ("triple/model.onnx", 3.0)):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_bytes(times(factor).SerializeToString())
    server = serve(tmp_path / "twice.onnx", str(tmp_path / "triple" / "model.onnx"))
    with Client(server.http) as client:
        assert [entry.name for entry in client.models()] == ["triple", "twice"]
        assert client.infer("twice", ROWS).tolist() == (2 * ROWS).tolist()
        assert client.infer("triple", ROWS).tolist() == (3 * ROWS).tolist()
        assert client.call("twice", X=[[1, 2]]).tolist() == [[2, 4]]


def test_a_file_is_served_from_python(tmp_path: Path) -> None:
    (tmp_path / "twice.onnx").write_bytes(times().SerializeToString())
    with Server(tmp_path / "twice.onnx", host="127.0.0.1", port=0) as server, server.client() as client:
        assert client.infer("twice", ROWS).tolist() == (2 * ROWS).tolist()


@pytest.mark.extra("sklearn")
def test_a_pickle_that_is_named_by_itself_is_read(tmp_path: Path, serve: Serve) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model", reason="pip install 'alipes[sklearn]'")
    model = linear_model.LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0])
    (tmp_path / "line.pkl").write_bytes(pickle.dumps(model))
    server = serve(tmp_path / "line.pkl")
    assert "model 'line': its file may run code while it is read, which is allowed" in server.output
    with Client(server.http) as client:
        assert np.allclose(client.infer("line", np.array([[2.0]])), 5.0)
