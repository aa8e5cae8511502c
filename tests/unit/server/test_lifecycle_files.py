"""Loading a model whose files a request brings, beside every repository."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from alipes.errors import ModelLoadError
from alipes.server.failures import LoadFailed
from alipes.server.index import Index
from alipes.server.lifecycle import Lifecycle
from alipes.server.override import Override
from support.data_plane import DataPlane
from support.lifecycle import failure_of

MakeModel = Callable[..., Path]


def conjure(lifecycle: Lifecycle, files: dict[str, bytes] | None = None, **more: object) -> None:
    """Loads a model that no repository has."""
    port = {"data_type": "TYPE_FP32", "dims": [2]}
    config = {
        "backend": "onnxruntime",
        "max_batch_size": 4,
        "input": [{"name": "X", **port}],
        "output": [{"name": "Y", **port}],
        **more,
    }
    lifecycle.load("conjured", Override(json.dumps(config), files or {"1/model.onnx": b"onnx"}))


def test_files_of_a_request_are_a_model_while_it_is_loaded(
    lifecycle: Lifecycle, data_plane: DataPlane, index: Index
) -> None:
    conjure(lifecycle)
    (version,) = data_plane.published["conjured"]
    path = Path(version.spec["engine"]["model_path"])  # type: ignore[index]
    assert path.read_bytes() == b"onnx"
    assert index.entries() == []
    lifecycle.unload("conjured")
    assert not path.exists()


def test_a_name_that_a_request_brought_is_forgotten_with_it(
    lifecycle: Lifecycle, data_plane: DataPlane, index: Index
) -> None:
    conjure(lifecycle)
    lifecycle.unload("conjured")
    assert data_plane.published == {}
    assert index.touched() == []


def test_files_go_when_others_take_their_place(lifecycle: Lifecycle, data_plane: DataPlane) -> None:
    paths = []
    for content in (b"one", b"two"):
        conjure(lifecycle, {"1/model.onnx": content})
        paths.append(Path(data_plane.published["conjured"][0].spec["engine"]["model_path"]))  # type: ignore[index]
    assert [path.exists() for path in paths] == [False, True]
    lifecycle.close()
    assert not paths[1].exists()


def test_files_of_a_load_that_failed_go_at_once(
    lifecycle: Lifecycle, data_plane: DataPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    data_plane.refused["conjured", 1] = ModelLoadError("it broke")
    failure_of(lambda: conjure(lifecycle))
    assert list(tmp_path.glob("alipes-load-*/*/conjured")) == []
    assert data_plane.published == {}
    assert data_plane.ready is True


def test_a_model_of_a_request_gives_way_to_the_repository(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    folder = model("conjured")
    conjure(lifecycle)
    lifecycle.load("conjured")
    (version,) = data_plane.published["conjured"]
    assert version.spec["engine"]["model_path"] == str(folder / "1" / "model.onnx")  # type: ignore[index]


def test_sums_are_those_of_the_files_that_are_loaded(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel, caplog: pytest.LogCaptureFixture
) -> None:
    (model("conjured") / "1" / "model.onnx").write_bytes(b"of the repository")
    parameters = {"MD5:1/model.onnx": hashlib.md5(b"onnx").hexdigest()}
    agents = {"agents": [{"name": "checksum", "parameters": parameters}]}
    conjure(lifecycle, model_repository_agents=agents)
    assert len(data_plane.published["conjured"]) == 1
    with pytest.raises(LoadFailed, match="failed to load 'conjured', failed to poll from model repository"):
        conjure(lifecycle, {"1/model.onnx": b"of the repository"}, model_repository_agents=agents)
    assert "Poll failed for model directory 'conjured': Mismatched MD5 hash for file 1/model.onnx" in caplog.text
    assert len(data_plane.built) == 1, "what serves is left alone"
