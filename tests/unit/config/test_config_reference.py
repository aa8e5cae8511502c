from __future__ import annotations

from pathlib import Path

import pytest
from alipes.config.reference import main, pages

FOLDER = Path(__file__).parents[3] / "docs" / "reference"


@pytest.mark.parametrize("name", list(pages()))
def test_the_page_is_fresh(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == pages()[name]


def test_pages_are_written_into_a_folder(tmp_path: Path) -> None:
    assert main([str(tmp_path / "new")]) == 0
    assert {path.name for path in (tmp_path / "new").iterdir()} == set(pages())


def test_the_projects_own_folder_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([]) == 0
    assert (tmp_path / "docs" / "reference" / "cli-serve.md").exists()


def test_another_number_of_arguments_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["one", "two"]) == 2
    assert "usage" in capsys.readouterr().err


def test_every_table_has_rows_of_one_width() -> None:
    for text in pages().values():
        for table in text.split("\n\n"):
            rows = [line.replace("\\|", "") for line in table.splitlines() if line.startswith("|")]
            assert len({row.count("|") for row in rows}) <= 1
