"""A stream's folder after a kill between any two of its writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from alipes.batch.frames.arrivals import Arrivals
from alipes.batch.frames.folder import FrameFolder, FrameReport, Replay, StreamFacts
from alipes.errors import ConfigError


def report_of(number: int, output: str) -> FrameReport:
    return FrameReport(number, "done", f"{number}.npy", output, number + 1)


def write(folder: FrameFolder, number: int) -> None:
    folder.add_copy(number, np.full(4, number, np.float32), 2)
    output = folder.write_answers(number, "npy", {"y": np.full(4, number, np.float32)})
    folder.add(report_of(number, output))


def test_answers_whose_line_is_written_get_into_their_place(tmp_path: Path) -> None:
    folder = FrameFolder(tmp_path / "out")
    write(folder, 1)
    output = folder.write_answers(2, "npy", {"y": np.full(4, 2, np.float32)})
    with (tmp_path / "out" / "manifest.jsonl").open("ab") as file:  # killed before the rename
        file.write(b'{"frame":2,"kind":"done","output":"%s","next":3}\n' % output.encode())
    folder.close()
    again = FrameFolder(tmp_path / "out")
    assert [report.frame for report in again.reports()] == [1, 2]
    assert np.load(tmp_path / "out" / output).tolist() == [2, 2, 2, 2]
    again.close()


def test_a_line_that_was_cut_is_dropped(tmp_path: Path) -> None:
    folder = FrameFolder(tmp_path / "out")
    write(folder, 1)
    with (tmp_path / "out" / "manifest.jsonl").open("ab") as file:
        file.write(b'{"frame":2,"ki')
    folder.close()
    again = FrameFolder(tmp_path / "out")
    assert [report.frame for report in again.reports()] == [1]
    write(again, 2)
    assert [report.frame for report in again.reports()] == [1, 2]
    again.close()


def test_copies_are_those_that_the_state_depends_on(tmp_path: Path) -> None:
    folder = FrameFolder(tmp_path / "out")
    for number in range(5):
        write(folder, number)
    assert sorted(file.name for file in (tmp_path / "out" / ".replay").iterdir()) == [
        "0000000003.npy",
        "0000000004.npy",
    ]
    found = folder.replay(iter([Replay(3, False), Replay(9, True)]), lambda: np.zeros(4, np.float32))
    assert found is not None
    assert [array.tolist() for array in found] == [[3] * 4, [0] * 4]
    assert folder.replay(iter([Replay(1, False)]), lambda: np.zeros(4)) is None
    folder.close()


def test_a_folder_of_a_stream_has_one_writer(tmp_path: Path) -> None:
    folder = FrameFolder(tmp_path / "out")
    with pytest.raises(ConfigError, match="another process writes the same stream"):
        FrameFolder(tmp_path / "out")
    folder.close()
    FrameFolder(tmp_path / "out").close()


def test_a_folder_with_other_files_is_refused_for_a_stream(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ConfigError, match="has files and no stream"):
        FrameFolder(tmp_path)


def test_a_stream_of_another_version_is_refused(tmp_path: Path) -> None:
    folder = FrameFolder(tmp_path)
    folder.write_facts(StreamFacts("m", "", "npz", 8, 64, format=99))
    with pytest.raises(ConfigError, match="another version of alipes"):
        folder.facts()
    folder.close()


def test_files_are_seen_once_and_half_written_ones_never(tmp_path: Path) -> None:
    (tmp_path / "1.npy").touch()
    arrivals = Arrivals(tmp_path)
    assert [(one.file, one.at_start) for one in arrivals.look(0.0)] == [("1.npy", True)]
    (tmp_path / ".2.npy").touch()
    (tmp_path / "3.npy.part").touch()
    assert arrivals.look(10.0) == []
    (tmp_path / ".2.npy").rename(tmp_path / "2.npy")
    assert [(one.file, one.at_start) for one in arrivals.look(20.0)] == [("2.npy", False)]
    (tmp_path / "1.npy").unlink()
    assert arrivals.look(30.0) == []


def test_a_pattern_says_which_files_are_frames(tmp_path: Path) -> None:
    for name in ("H1-1.npy", "L1-1.npy", "H1-2.txt"):
        (tmp_path / name).touch()
    assert [one.file for one in Arrivals(tmp_path / "H1-*").look(0.0)] == ["H1-1.npy"]
    with pytest.raises(ConfigError, match="is no folder"):
        Arrivals(tmp_path / "missing" / "*.npy")
