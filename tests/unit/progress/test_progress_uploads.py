"""Uploads tell their bytes where somebody sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from alipes.progress.work import Silent
from alipes.repository.store.uploads import upload
from support.terminal import TerminalScript

fsspec = pytest.importorskip("fsspec", reason="buckets need the package fsspec, which the extra buckets brings")

EXPORT = """
from pathlib import Path
import sys
from alipes import repository as qv

pytestmark = pytest.mark.extra("buckets")
repository = qv.ModelRepository("memory://bucket/models")
print(repository.add("net", qv.Platform.ONNX).export_version(Path(sys.argv[1])))
"""


class Counted(Silent):
    """Counts what it is told."""

    shown = True  # type: ignore[misc]

    def __init__(self) -> None:
        self.bytes = 0.0

    def advance(self, amount: float = 1) -> None:
        self.bytes += amount


class Mute:
    """A file system that tells nothing."""

    def put_file(self, file: str, place: str, callback: Any = None) -> None:
        """Takes it."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "weights"
    path.write_bytes(b"w" * 100_000)
    return path


def test_every_byte_is_counted_even_where_the_store_is_silent(file: Path) -> None:
    for files in (fsspec.filesystem("memory"), fsspec.filesystem("local"), Mute()):
        task = Counted()
        upload(files, file, str(file.with_name("copy")), task)
        assert task.bytes == 100_000


def test_the_store_needs_no_callback_without_progress(file: Path) -> None:
    class Plain:
        def put_file(self, *arguments: str) -> None:
            calls.append(arguments)

    calls: list[tuple[str, ...]] = []
    upload(Plain(), file, "place", Silent())
    assert calls == [(str(file), "place")]


def test_a_terminal_shows_an_upload(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="a model to export is made with the package onnx")
    from support.exported import scaled

    onnx.save(scaled(), tmp_path / "net.onnx")
    with TerminalScript(EXPORT, str(tmp_path / "net.onnx")) as script:
        assert script.finish() == "net/1/model.onnx\n"
    assert "uploading" in script.text
    assert "100%" in script.text
