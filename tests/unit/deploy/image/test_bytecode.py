"""Byte code that is made ahead."""

from __future__ import annotations

import importlib.util
import marshal
from pathlib import Path

import pytest
from alipes.deploy.image.bytecode import with_bytecode
from alipes.deploy.image.contents import Contents, file, text

SOURCE = "def where(of={'b', 'a', 'c'}):\n    return __file__ in {'x', 'y', 'z'}, 'lib'\n"
NAME = Path(importlib.util.cache_from_source("lib/a.py")).name
COMPILED = f"lib/__pycache__/{NAME}"


@pytest.fixture
def contents(tmp_path: Path) -> Contents:
    path = tmp_path / "a.py"
    path.write_text(SOURCE)
    return {"lib/a.py": file(path), "lib/data": text("x")}


def test_byte_code_is_beside_its_module_and_knows_its_path_in_the_image(contents: Contents) -> None:
    whole = with_bytecode(contents)
    assert set(whole) == {*contents, COMPILED}
    data = whole[COMPILED].data
    assert data is not None
    assert data[:8] == importlib.util.MAGIC_NUMBER + b"\x01\0\0\0"  # a hash, which nobody is to compare
    assert data[8:16] == importlib.util.source_hash(SOURCE.encode())
    assert marshal.loads(data[16:]).co_filename == "/lib/a.py"


def test_byte_code_is_the_same_in_whichever_process(contents: Contents, monkeypatch: pytest.MonkeyPatch) -> None:
    first = with_bytecode(contents)
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    monkeypatch.setenv("PYTHONOPTIMIZE", "2")
    assert with_bytecode(contents) == first


@pytest.mark.parametrize("source", ["def (", "x = 'a\0b'", "# coding: latin-1\nx = 'é'\n"])
def test_a_file_that_is_no_program_does_not_stop_the_others(source: str, contents: Contents, tmp_path: Path) -> None:
    other = tmp_path / "b.py"
    other.write_text(source, encoding="utf-8")
    assert COMPILED in with_bytecode(contents | {"lib/b.py": file(other)})


def test_without_modules_nothing_is_added() -> None:
    assert with_bytecode({"etc/passwd": text("")}) == {"etc/passwd": text("")}
