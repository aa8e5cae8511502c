"""A model that `alipes repo add` has put into a repository is served, and asked from the shell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.command import alipes
from support.models import times
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]


def test_an_added_file_is_served_at_once(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "double.onnx").write_bytes(times(2.0).SerializeToString())
    assert alipes("repo", "add", "models", "double.onnx", folder=tmp_path).code == 0
    server = serve(tmp_path / "models")
    assert alipes("ask", "--url", server.http, "double", "[1, 2]").out == "[2.0, 4.0]\n"
    assert alipes("repo", "list", str(tmp_path / "models"), "--check").code == 0


@pytest.mark.extra("buckets")
def test_a_bucket_is_added_to_and_listed_as_a_folder_is(tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="buckets need fsspec: pip install 'alipes[gcs]'")
    (tmp_path / "double.onnx").write_bytes(times(2.0).SerializeToString())
    bucket = f"memory://{tmp_path.name}"
    done = alipes("repo", "add", bucket, "double.onnx", folder=tmp_path)
    assert done.out.startswith(f"added {bucket}/double/1/model.onnx\n")
    assert alipes("repo", "list", bucket).rows[1] == ["double", "onnxruntime", "1"]
    assert "└── double/" in alipes("repo", "tree", bucket).out
