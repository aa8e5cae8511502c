"""The page of limits says what the data plane's constants say."""

from __future__ import annotations

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """`tools/limits-page`, which is a program without a suffix."""
    loader = SourceFileLoader("limits_page", str(ROOT / "tools" / "limits-page"))
    spec = importlib.util.spec_from_loader("limits_page", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_page_of_limits_is_fresh(tool: ModuleType) -> None:
    assert tool.page() == tool.PAGE.read_text(encoding="utf-8"), "run `make docs`"


def test_every_limit_stands_on_the_page(tool: ModuleType) -> None:
    declared = sum(line.startswith("pub const ") for line in tool.SOURCE.read_text(encoding="utf-8").splitlines())
    assert tool.page().count("\n| `") == declared


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("1 << 26", "67,108,864"),
        ("i32::MAX as u64", "2,147,483,647"),
        ("Duration::from_secs(30)", "30 s"),
        ("Duration::from_millis(5)", "5 ms"),
        ("1_000_000", "1,000,000"),
    ],
)
def test_values_are_shown_as_people_read_them(tool: ModuleType, value: str, shown: str) -> None:
    assert tool.shown(value) == shown
