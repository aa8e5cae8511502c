"""What a new checkout takes over from another one's build folder."""

from __future__ import annotations

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def settings() -> ModuleType:
    """The tool, as a module."""
    loader = SourceFileLoader("settings_tool", str(ROOT / "tools" / "settings"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_a_build_that_runs_there_may_take_files_away(
    settings: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sibling, target = tmp_path / "target-sibling", tmp_path / "target-new"
    folder = Path("dev") / "deps"
    (sibling / folder).mkdir(parents=True)
    (sibling / settings.OWNER).write_text(f"{ROOT}\n")
    # One of each kind goes: files of either are taken over in ways of their own.
    gone = ["gone.rcgu.o", "gone.d"]
    for name in [*gone, "stays.rlib", "stays.d"]:
        (sibling / folder / name).write_text(name)
    listed = settings.our_own

    def list_and_take_away(path: str, names: list[str]) -> list[str]:
        for name in gone:
            (Path(path) / name).unlink(missing_ok=True)
        return listed(path, names)  # type: ignore[no-any-return]

    monkeypatch.setattr(settings, "our_own", list_and_take_away)
    settings.begin(target)
    assert sorted(file.name for file in (target / folder).iterdir()) == ["stays.d", "stays.rlib"]
