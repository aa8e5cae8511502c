"""README's table of backends says what the registry has, and each row names a page and a test that exist."""

from __future__ import annotations

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest
from alipes.backends.registry import NOT_OFFERED, OFFERED

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """`tools/backends-page`, which is a program without a suffix."""
    loader = SourceFileLoader("backends_page", str(ROOT / "tools" / "backends-page"))
    spec = importlib.util.spec_from_loader("backends_page", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_table_of_backends_is_fresh(tool: ModuleType) -> None:
    assert tool.readme() == tool.README.read_text(encoding="utf-8"), "run `make docs`"


def test_every_backend_has_its_row(tool: ModuleType) -> None:
    table = tool.table()
    assert all(f"| `{name}` |" in table for name in (*OFFERED, *NOT_OFFERED))


@pytest.mark.parametrize("name", sorted(OFFERED))
def test_a_row_names_a_page_and_a_test_of_the_backend(tool: ModuleType, name: str) -> None:
    proof = tool.PROOFS[name]
    called = {"attached": "attach", "onnxruntime": "onnx", "python": "worker"}.get(name, name)
    assert (ROOT / "docs" / f"{proof.page}.md").is_file()
    assert called in (ROOT / "tests" / "e2e" / f"{proof.test}.py").read_text(encoding="utf-8")
