"""Frames that arrive one by one are answered as one series, each once, whatever happens to them or to their reader."""

from __future__ import annotations

import os
import re
import signal
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import pytest
from alipes import batch
from alipes.batch import OnlineSummary
from alipes.errors import BatchError, ConfigError, TransportError
from support.batch_runs import BatchProcess, await_held
from support.frames import (
    BROKEN,
    CHANNELS,
    HELD,
    SAMPLES,
    STRIDE,
    add_stream_models,
    answers_of,
    arrive,
    cleaned,
    frames_of,
    kinds_of,
    manifest_of,
)
from support.sequences import windows
from support.server import ServerProcess
from support.terminal import TerminalScript
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]
WAIT_S = 0.2


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notes")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = tmp_path_factory.mktemp("models")
    add_stream_models(repository)
    return repository


@pytest.fixture(scope="module")
def server(serve_module: Serve, models: Path, notes: Path) -> ServerProcess:
    return serve_module(models, environment={"NOTES": str(notes)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where frames arrive."""
    made = tmp_path / "strain"
    made.mkdir()
    return made


@contextmanager
def streaming(server: ServerProcess, folder: Path, **options: Any) -> Iterator[list[OnlineSummary]]:
    """A stream in a thread of its own; the block waits for its end, and what it came to is in the list then."""
    found: list[OnlineSummary] = []
    settings = {"model": "chain", "url": server.grpc, "wait_s": WAIT_S, "progress": False} | options
    model = settings.pop("model")
    thread = threading.Thread(
        target=lambda: found.append(batch.online(model, folder, folder.parent / "out", **settings)), daemon=True
    )
    thread.start()
    yield found
    thread.join(TIMEOUT_S)
    assert found, "the stream did not end"


def done(folder: Path, number: int) -> bool:
    return (folder.parent / "out" / "frames" / f"{number:010}.npz").exists()


def run_through(server: ServerProcess, folder: Path, most: int, **options: Any) -> OnlineSummary:
    """A stream over frames that are there."""
    settings: dict[str, Any] = {"model": "chain", "wait_s": WAIT_S, "most_frames": most} | options
    return batch.online(
        settings.pop("model"), folder, folder.parent / "out", url=server.grpc, progress=False, **settings
    )


def series_of(folder: Path) -> np.ndarray[Any, Any]:
    return np.concatenate(list(answers_of(folder.parent / "out").values()), axis=-1)


@pytest.mark.slow("starts a server with a model in Python")
def test_frames_are_answered_as_one_series_with_their_latency(server: ServerProcess, folder: Path) -> None:
    frames = frames_of(6)
    with streaming(server, folder, most_frames=6) as found:
        for number, frame in enumerate(frames, 100):
            until(lambda number=number: number == 100 or done(folder, number - 1))  # type: ignore[misc]
            arrive(folder, number, frame)
    assert series_of(folder).tobytes() == cleaned(frames).tobytes()
    (summary,) = found
    assert (summary.frames, summary.missing, summary.late) == (6, 0, 0)
    assert summary.median_s is not None
    assert summary.most_s is not None
    assert 0 < summary.median_s <= summary.most_s
    assert [line.get("new", False) for line in manifest_of(folder.parent / "out")] == [True] + 5 * [False]


def test_windows_of_frames_are_rows(server: ServerProcess, folder: Path) -> None:
    frames = frames_of(3)
    for number, frame in enumerate(frames):
        arrive(folder, number, frame)
    run_through(server, folder, 3, model="halves")
    expected = windows(np.concatenate(frames, axis=-1), STRIDE, 32) / np.float32(2)
    found = np.concatenate(list(answers_of(folder.parent / "out").values()))
    assert found.tobytes() == expected.tobytes()


@pytest.mark.slow("a stream that is killed and started again")
def test_a_stream_is_the_same_after_kill_9_in_the_middle_of_a_frame(
    server: ServerProcess, folder: Path, notes: Path
) -> None:
    frames = frames_of(8)
    frames[4][:, SAMPLES // 2 - 1] = HELD
    out = folder.parent / "out"
    words = ("chain", folder, "-o", out, "--url", server.grpc, "--frames")
    with BatchProcess(*words, 8, command=("stream",)) as run:
        for number, frame in enumerate(frames):
            arrive(folder, number, frame)
        await_held(notes)
        assert sorted(answers_of(out)) == [0, 1, 2, 3]
        os.killpg(run.process.pid, signal.SIGKILL)
        run.wait()
    (notes / "go").touch()
    for number in range(4):  # whoever makes frames has removed the old ones
        (folder / f"strain-{number}.npy").unlink()
    before = {number: (out / "frames" / f"{number:010}.npz").stat().st_mtime_ns for number in range(4)}
    with BatchProcess(*words, 4, command=("stream",)) as run:
        ended = run.wait()
    assert (ended.code, ended.err) == (0, "")
    assert "the answers to 4 frames are in" in ended.out
    assert series_of(folder).tobytes() == cleaned(frames).tobytes()
    assert {number: (out / "frames" / f"{number:010}.npz").stat().st_mtime_ns for number in range(4)} == before
    assert kinds_of(out) == [(number, "done") for number in range(8)]
    assert [line.get("new", False) for line in manifest_of(out)] == [True] + 7 * [False]


def test_a_gap_begins_the_state_anew_and_is_named(server: ServerProcess, folder: Path) -> None:
    frames = frames_of(6)
    for number in (0, 1, 4, 5):
        arrive(folder, number, frames[number])
    summary = run_through(server, folder, 4)
    assert summary.missing == 2
    expected = np.concatenate([cleaned(frames[:2]), cleaned(frames[4:])], axis=-1)
    assert series_of(folder).tobytes() == expected.tobytes()
    lines = manifest_of(folder.parent / "out")
    assert lines[2] == {"frame": 2, "kind": "gap", "next": 4, "reason": "did not arrive"}
    assert (lines[3]["frame"], lines[3]["new"], lines[3]["reason"]) == (4, True, "a gap")


def test_zeros_fill_a_gap_where_that_is_chosen_also_after_a_restart(server: ServerProcess, folder: Path) -> None:
    frames = frames_of(6)
    for number in (0, 1, 4, 5):
        arrive(folder, number, frames[number])
    # The first start ends with zeros: what the second one's state depends on.
    first = run_through(server, folder, 4, gaps="fill")
    second = run_through(server, folder, 2, gaps="fill")
    assert (first.filled, second.frames) == (2, 2)
    frames[2] = frames[3] = np.zeros_like(frames[0])
    assert series_of(folder).tobytes() == cleaned(frames).tobytes()
    expected = [(0, "done"), (1, "done"), (2, "filled"), (3, "filled"), (4, "done"), (5, "done")]
    assert kinds_of(folder.parent / "out") == expected
    assert manifest_of(folder.parent / "out")[2]["reason"] == "did not arrive"


def test_a_late_frame_is_named_and_changes_nothing(server: ServerProcess, folder: Path) -> None:
    frames = frames_of(4)
    with streaming(server, folder, most_frames=3) as found:
        arrive(folder, 0, frames[0])
        arrive(folder, 2, frames[2])
        until(lambda: done(folder, 2))
        arrive(folder, 1, frames[1])
        arrive(folder, 3, frames[3])
    assert found[0].late == 1
    assert sorted(answers_of(folder.parent / "out")) == [0, 2, 3]
    late = [line for line in manifest_of(folder.parent / "out") if line["kind"] == "late"]
    assert late == [{"frame": 1, "kind": "late", "file": "strain-1.npy", "reason": "others took its place"}]
    # The files are still there at the next start, which does none of them again.
    arrive(folder, 4, frames[1])
    run_through(server, folder, 1)
    assert kinds_of(folder.parent / "out")[-1] == (4, "done")
    assert [line for line in manifest_of(folder.parent / "out") if line["kind"] == "late"] == late


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda file: np.save(file, np.zeros((CHANNELS, SAMPLES - STRIDE), np.float32)), "has 248 samples, and frames"),
        (lambda file: np.save(file, np.zeros((3, SAMPLES), np.float32)), "it has the shape"),
        (lambda file: np.save(file, np.zeros((CHANNELS, SAMPLES))), "it holds float64, and the model takes float32"),
        (lambda file: file.write(b"\x93NUMPY junk"), "magic string is not correct|invalid|version"),
        (lambda file: file.write(b""), "EOF"),
    ],
)
def test_a_frame_that_cannot_be_used_is_a_gap_with_its_reason(
    server: ServerProcess, folder: Path, make: Callable[[Any], Any], reason: str
) -> None:
    frames = frames_of(2)
    arrive(folder, 0, frames[0])
    with (folder / "strain-1.npy").open("wb") as file:
        make(file)
    arrive(folder, 2, frames[1])
    run_through(server, folder, 2)
    line = manifest_of(folder.parent / "out")[1]
    assert (line["frame"], line["kind"], line["file"]) == (1, "gap", "strain-1.npy")
    assert any(part in line["reason"] for part in reason.split("|")), line["reason"]
    expected = np.concatenate([cleaned(frames[:1]), cleaned(frames[1:])], axis=-1)
    assert series_of(folder).tobytes() == expected.tobytes()


def test_a_frame_that_is_mended_in_time_is_no_gap(server: ServerProcess, folder: Path) -> None:
    frames = frames_of(2)
    arrive(folder, 0, frames[0])
    with streaming(server, folder, most_frames=2, wait_s=60.0) as found:
        until(lambda: done(folder, 0))
        with (folder / "strain-1.npy").open("wb") as file:  # by a writer that does not rename
            np.save(file, frames[1])
            file.seek(-100, os.SEEK_END)
            file.truncate()
            file.flush()
        np.save(folder / "strain-1.npy", frames[1])
    assert found[0].missing == 0
    assert series_of(folder).tobytes() == cleaned(frames).tobytes()


def test_a_frame_that_the_model_fails_on_is_a_gap(server: ServerProcess, folder: Path) -> None:
    frames = frames_of(4)
    broken = frames[1].copy()
    broken[:, SAMPLES // 2 - 1] = BROKEN
    for number, frame in enumerate([frames[0], broken, frames[2], frames[3]]):
        arrive(folder, number, frame)
    run_through(server, folder, 3, gaps="fill")
    line = manifest_of(folder.parent / "out")[1]
    assert (line["kind"], line["file"]) == ("gap", "strain-1.npy")
    assert "broken" in line["reason"]
    expected = np.concatenate([cleaned(frames[:1]), cleaned(frames[2:])], axis=-1)
    assert series_of(folder).tobytes() == expected.tobytes()


def test_clocks_that_jump_change_neither_order_nor_latency(server: ServerProcess, folder: Path) -> None:
    frames = frames_of(5)
    with streaming(server, folder, most_frames=5) as found:
        for number, frame in enumerate(frames[:3]):
            arrive(folder, number, frame)
            # The clock that dates files has gone back, and far ahead.
            at = (0, 4_000_000_000, 1)[number]
            os.utime(folder / f"strain-{number}.npy", (at, at))
            os.utime(folder, (at, at))
            until(lambda number=number: done(folder, number))  # type: ignore[misc]
        # The clock that numbers frames jumps ahead: the stream goes on there.
        arrive(folder, 10**9, frames[3])
        arrive(folder, 10**9 + 1, frames[4])
    assert found[0].most_s is not None
    assert 0 < found[0].most_s < TIMEOUT_S
    expected = np.concatenate([cleaned(frames[:3]), cleaned(frames[3:])], axis=-1)
    assert series_of(folder).tobytes() == expected.tobytes()
    assert (3, "gap") in kinds_of(folder.parent / "out")


def test_numbers_that_go_back_are_a_new_beginning(server: ServerProcess, folder: Path) -> None:
    frames = frames_of(4)
    with streaming(server, folder, most_frames=4) as _:
        arrive(folder, 1000, frames[3])
        until(lambda: done(folder, 1000))
        for number, frame in enumerate(frames[:3], 10):
            arrive(folder, number, frame)
    found = answers_of(folder.parent / "out")
    assert (
        np.concatenate([found[number] for number in (10, 11, 12)], axis=-1).tobytes() == cleaned(frames[:3]).tobytes()
    )
    assert (1001, "back") in kinds_of(folder.parent / "out")


@pytest.mark.slow("a stream that meets a full disk and is started again")
def test_a_full_disk_ends_a_stream_and_room_continues_it(server: ServerProcess, folder: Path) -> None:
    frames = frames_of(5)
    for number, frame in enumerate(frames):
        arrive(folder, number, frame)
    words = ("chain", folder, "-o", folder.parent / "out", "--url", server.grpc, "--frames")
    # Frames are larger than the limit, answers of a window are not: the second file of samples does not fit.
    with BatchProcess(*words, 5, command=("stream",), largest_file=SAMPLES * 4) as run:
        ended = run.wait()
    assert ended.code == 1
    assert "there is no room for results in" in ended.err
    assert answers_of(folder.parent / "out") == {}
    with BatchProcess(*words, 5, command=("stream",)) as run:
        assert run.wait().code == 0
    assert series_of(folder).tobytes() == cleaned(frames).tobytes()
    assert not list(folder.parent.glob("out/frames/.*"))


@pytest.mark.slow("starts two servers one after the other")
def test_a_server_that_is_killed_is_found_again_and_nothing_is_lost(serve: Serve, models: Path, folder: Path) -> None:
    frames = frames_of(4)
    first = serve(models)
    second = serve(models)
    with streaming(first, folder, url=[first.grpc, second.grpc], most_frames=4) as found:
        for number, frame in enumerate(frames):
            if number == 2:
                os.kill(first.process.pid, signal.SIGKILL)
            arrive(folder, number, frame)
            until(lambda number=number: done(folder, number))  # type: ignore[misc]
    assert found[0].missing == 0
    assert series_of(folder).tobytes() == cleaned(frames).tobytes()


def test_a_sequence_that_the_server_has_forgotten_is_made_again(server: ServerProcess, folder: Path) -> None:
    frames = frames_of(3)
    sequence = zlib.crc32(os.fsencode(folder.parent / "out")) % 0x7FFF_FFFF + 1
    with streaming(server, folder, most_frames=3) as found:
        for number, frame in enumerate(frames):
            arrive(folder, number, frame)
            until(lambda number=number: done(folder, number))  # type: ignore[misc]
            if number < 2:
                for model in ("windows", "mean")[number:]:
                    state = f"http://{server.http}/v2/models/{model}/sequences/{sequence}/state"
                    with urlopen(Request(state, method="DELETE")) as answer:
                        assert answer.status == 200
    assert found[0].missing == 0
    assert series_of(folder).tobytes() == cleaned(frames).tobytes()


@pytest.mark.extra("batch")
def test_frames_and_answers_may_be_hdf5(server: ServerProcess, folder: Path) -> None:
    import h5py

    frames = frames_of(3)
    for number, frame in enumerate(frames):
        with h5py.File(folder / f".{number}.h5", "w") as file:
            file["strain"] = frame
        (folder / f".{number}.h5").rename(folder / f"H-H1_STRAIN-{number}-1.h5")
    run_through(server, folder, 3, form="h5")
    found = []
    for path in sorted((folder.parent / "out" / "frames").glob("*.h5")):
        with h5py.File(path) as file:
            (dataset,) = file.values()
            found.append(dataset[...])
    assert np.concatenate(found, axis=-1).tobytes() == cleaned(frames).tobytes()


def test_frames_that_are_there_can_be_left_out(server: ServerProcess, folder: Path) -> None:
    frames = frames_of(4)
    for number in (0, 1):
        arrive(folder, number, frames[number])
    (folder / "latest.npy").touch()
    with streaming(server, folder, most_frames=2, newest=True):
        until((folder.parent / "out" / "manifest.jsonl").exists)  # names that file: the first look is over
        for number in (2, 3):
            arrive(folder, number, frames[number])
    assert sorted(answers_of(folder.parent / "out")) == [2, 3]
    run_through(server, folder, 0)
    assert kinds_of(folder.parent / "out") == [(-1, "ignored"), (2, "done"), (3, "done")]


def test_a_terminal_shows_the_latency_of_a_stream(server: ServerProcess, folder: Path) -> None:
    for number, frame in enumerate(frames_of(2)):
        arrive(folder, number, frame)
    script = f"""
import threading, time
import numpy as np
from pathlib import Path
from alipes import batch
folder = Path({str(folder)!r})
def arrive():
    while not (folder.parent / "out" / "frames" / "0000000001.npz").exists():
        time.sleep(0.005)
    for number in (2, 4):
        np.save(folder / ".next.npy", np.zeros(({CHANNELS}, {SAMPLES}), np.float32))
        (folder / ".next.npy").rename(folder / f"{{number}}.npy")
threading.Thread(target=arrive).start()
batch.online("chain", folder, folder.parent / "out", url={server.grpc!r}, most_frames=4, wait_s=0.5)
"""
    with TerminalScript(script) as shown:
        shown.finish()
    assert "stream chain" in shown.text
    assert re.search(r"\d ms \(median [\d.]+, p99 [\d.]+\)", shown.text)


def test_a_silent_folder_ends_a_stream_that_is_to_end_by_that(server: ServerProcess, folder: Path) -> None:
    (folder / "latest.npy").touch()
    summary = batch.online("chain", folder, folder.parent / "out", url=server.grpc, silence_s=0.2, progress=False)
    assert (summary.frames, summary.median_s) == (0, None)
    assert manifest_of(folder.parent / "out") == [
        {"frame": -1, "kind": "ignored", "file": "latest.npy", "reason": "its name has no number"}
    ]


def test_wrong_arguments_of_a_stream_are_refused(server: ServerProcess, folder: Path) -> None:
    out = folder.parent / "out"
    with pytest.raises(ConfigError, match="takes 0 streams, and frames are those of one"):
        batch.online("net", folder, out, url=server.grpc, progress=False)
    with pytest.raises(ConfigError, match="streams need gRPC"):
        batch.online("chain", folder, out, url=server.http, progress=False)
    with pytest.raises(ConfigError, match="gaps are handled by reset or fill, not by guess"):
        batch.online("chain", folder, out, url=server.grpc, gaps="guess", progress=False)
    with pytest.raises(ConfigError, match="written as npz, npy or h5, not as jsonl"):
        batch.online("chain", folder, out, url=server.grpc, form="jsonl", progress=False)
    with pytest.raises(TransportError):
        batch.online("chain", folder, out, url="grpc://127.0.0.1:1", progress=False)
    arrive(folder, 0, frames_of(1)[0])
    run_through(server, folder, 1)
    with pytest.raises(ConfigError, match="has model 'chain', and this start 'halves'"):
        batch.online("halves", folder, out, url=server.grpc, progress=False)


def test_a_folder_that_goes_away_ends_a_stream_with_that_reason(server: ServerProcess, folder: Path) -> None:
    arrive(folder, 0, frames_of(1)[0])
    problems: list[BaseException] = []

    def stream() -> None:
        try:
            batch.online("chain", folder, folder.parent / "out", url=server.grpc, progress=False)
        except BatchError as error:
            problems.append(error)

    thread = threading.Thread(target=stream, daemon=True)
    thread.start()
    until(lambda: done(folder, 0))
    (folder / "strain-0.npy").unlink()
    folder.rmdir()
    thread.join(TIMEOUT_S)
    assert "where frames arrive, cannot be read" in str(problems[0])
