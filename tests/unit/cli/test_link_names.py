"""`alipes link-names`, and programs that have the names of Triton's."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest
from alipes.cli import PROGRAMS, main
from support.command import alipes, check_readable

PROGRAM = Path(sysconfig.get_path("scripts")) / "alipes"

pytestmark = pytest.mark.skipif(not PROGRAM.is_file(), reason="alipes is not installed as a program")


def test_each_name_becomes_a_link_to_alipes(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    done = alipes("link-names", str(folder))
    assert (done.code, done.err) == (0, "")
    assert {link.name for link in folder.iterdir()} == {"perf_analyzer", "model-analyzer", "tritonserver"}
    assert all(link.resolve() == PROGRAM.resolve() for link in folder.iterdir())
    assert alipes("link-names", str(folder)).code == 0  # again changes nothing


def test_another_program_stays_and_nothing_is_linked(tmp_path: Path) -> None:
    other = tmp_path / "tritonserver"
    other.write_text("#!/bin/sh\n")
    done = alipes("link-names", str(tmp_path))
    assert done.code == 1
    check_readable(done)
    assert "is another program" in done.message
    assert list(tmp_path.iterdir()) == [other]


def test_a_link_that_leads_nowhere_stays(tmp_path: Path) -> None:
    (tmp_path / "perf_analyzer").symlink_to(tmp_path / "gone")
    assert alipes("link-names", str(tmp_path)).code == 1
    assert not (tmp_path / "tritonserver").is_symlink()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    done = alipes("link-names", str(file / "bin"))
    assert done.code == 1
    check_readable(done)


@pytest.mark.parametrize(("name", "words"), [("perf_analyzer", "Perf Analyzer of alipes"), ("alipes", "alipes ")])
def test_a_program_answers_by_its_name(
    name: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [f"/anywhere/{name}", "--version"])
    assert main() == 0
    assert capsys.readouterr().out.startswith(words)


def test_every_name_has_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out
    assert [command for command, *_ in PROGRAMS.values() if f" {command} " not in listed] == []
