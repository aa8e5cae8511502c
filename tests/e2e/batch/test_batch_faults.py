"""Whatever is killed in the middle of a run, each row is there once in the end, and nothing is done twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.batch_runs import (
    FILES,
    BatchProcess,
    RowsByPlace,
    await_held,
    clients_of,
    done_pieces,
    rows_of,
)
from support.command import alipes
from support.server import ServerProcess
from support.waiting import until

Serve = Callable[..., ServerProcess]


def words_of(tmp_path: Path, *more: object) -> tuple[object, ...]:
    return ("picky", tmp_path / "data", "-o", tmp_path / "out", "--in-flight", 1, "--batch", 3, *more)


@pytest.mark.slow("a server with a model in Python, and four clients")
def test_the_pieces_of_a_client_that_is_killed_are_done_by_others(
    server: ServerProcess, tmp_path: Path, notes: Path, expected: RowsByPlace
) -> None:
    out = tmp_path / "out"
    with BatchProcess(*words_of(tmp_path, "--url", server.grpc, "--clients", 2)) as run:
        await_held(notes)
        # The other client does all other pieces meanwhile.
        until(lambda: len(list((out / "pieces").glob("*.json"))) == FILES // 3 - 1)
        before = done_pieces(out)
        holders = [client for client in clients_of(out) if client.state == "runs"]
        for client in holders:
            os.kill(client.pid, signal.SIGKILL)
        (notes / "go").touch()
        done = run.wait()
    assert (done.code, done.err) == (0, "")
    assert rows_of(out) == expected
    assert before.items() <= done_pieces(out).items(), "what was done is not done again"


@pytest.mark.slow("a server with a model in Python, and six clients")
def test_a_run_that_is_killed_goes_on_with_what_is_missing(
    server: ServerProcess, tmp_path: Path, notes: Path, expected: RowsByPlace
) -> None:
    out = tmp_path / "out"
    with BatchProcess(*words_of(tmp_path, "--url", server.grpc, "--clients", 2)) as run:
        await_held(notes)
        status = alipes("batch", "status", str(out))
        assert "not complete" in status.out
        assert "runs" in status.out
        os.killpg(run.process.pid, signal.SIGKILL)
        assert run.wait().code == -signal.SIGKILL
    before = done_pieces(out)
    assert not (out / "_SUCCESS").exists()
    merged = alipes("batch", "merge", str(out), str(tmp_path / "all.npy"))
    assert merged.code == 1
    assert "is not whole yet" in merged.message
    (notes / "go").touch()
    with BatchProcess(*words_of(tmp_path, "--url", server.grpc, "--clients", 3)) as run:
        assert run.wait().code == 0
    assert rows_of(out) == expected
    assert before.items() <= done_pieces(out).items()
    assert not list(out.rglob(".[0-9]*")), "nothing half-written is left"


@pytest.mark.slow("servers with a model in Python")
def test_another_server_does_what_one_that_is_killed_has_left(
    serve: Serve, server: ServerProcess, repository: Path, tmp_path: Path, notes: Path, expected: RowsByPlace
) -> None:
    other = serve(repository, environment={"NOTES": str(notes)})
    url = f"{server.grpc},{other.grpc}"
    with BatchProcess(*words_of(tmp_path, "--url", url, "--clients", 1)) as run:
        os.kill(await_held(notes), signal.SIGKILL)
        (notes / "go").touch()
        done = run.wait()
    assert (done.code, done.err) == (0, "")
    assert rows_of(tmp_path / "out") == expected


@pytest.mark.slow("servers with a model in Python")
def test_a_server_of_the_run_that_ends_is_started_again(
    repository: Path, tmp_path: Path, notes: Path, expected: RowsByPlace
) -> None:
    out = tmp_path / "out"
    with BatchProcess(*words_of(tmp_path, "--repository", repository, "--servers", 1), notes=notes) as run:
        os.kill(await_held(notes), signal.SIGKILL)
        (notes / "go").touch()
        done = run.wait()
    assert done.code == 0
    assert "was ended by signal 9" in done.err
    assert rows_of(out) == expected


@pytest.mark.slow("a server with a model in Python, and four clients")
def test_two_starts_of_one_run_share_its_pieces(
    server: ServerProcess, tmp_path: Path, notes: Path, expected: RowsByPlace
) -> None:
    out = tmp_path / "out"
    words = words_of(tmp_path, "--url", server.grpc, "--clients", 2)
    with BatchProcess(*words) as first:
        await_held(notes)
        with BatchProcess(*words) as second:
            until(lambda: len({client.pid for client in clients_of(out)}) == 2 and clients_of(out)[0].start == 2)
            (notes / "go").touch()
            assert (first.wait().code, second.wait().code) == (0, 0)
    assert rows_of(out) == expected
    from alipes.batch.folder import RunFolder

    done = [client.pieces for client in RunFolder(out).workers()]
    assert sum(done) == len(list((out / "pieces").glob("*.json"))), "no piece was done twice"


@pytest.mark.slow("a server with a model in Python")
def test_a_run_that_is_interrupted_says_so_and_goes_on(
    server: ServerProcess, tmp_path: Path, notes: Path, expected: RowsByPlace
) -> None:
    words = words_of(tmp_path, "--url", server.grpc)
    with BatchProcess(*words) as run:
        await_held(notes)
        run.process.send_signal(signal.SIGINT)
        (notes / "go").touch()
        done = run.wait()
    assert (done.code, done.out) == (130, "")
    assert [client.state for client in clients_of(tmp_path / "out")] == ["stopped"]
    with BatchProcess(*words) as run:
        assert run.wait().code == 0
    assert rows_of(tmp_path / "out") == expected


@pytest.mark.slow("a server with a model in Python")
def test_a_full_disk_is_one_message_and_the_run_goes_on_later(
    server: ServerProcess, tmp_path: Path, notes: Path
) -> None:
    (notes / "go").touch()
    rows = np.arange(12_000, dtype=np.float32).reshape(-1, 2)
    np.save(tmp_path / "rows.npy", rows)
    words = ("picky", tmp_path / "rows.npy", "-o", tmp_path / "out", "--url", server.grpc)
    # The plan fits; no piece does.
    with BatchProcess(*words, largest_file=20_000) as run:
        done = run.wait()
    assert done.code == 1
    assert len(done.err.splitlines()) <= 4
    assert "there is no room for results" in " ".join(done.err.split())
    with BatchProcess(*words) as run:
        assert run.wait().code == 0
    assert list(rows_of(tmp_path / "out").values()) == (2 * rows).tolist()


@pytest.mark.slow("a server with a model in Python")
def test_a_run_without_any_server_left_ends_with_that(
    server: ServerProcess, tmp_path: Path, notes: Path, expected: RowsByPlace
) -> None:
    with BatchProcess(*words_of(tmp_path, "--url", server.grpc, "--reconnect", "0.5")) as run:
        await_held(notes)
        server.kill()
        done = run.wait()
    assert done.code == 1
    assert "no server answers any more" in " ".join(done.err.split())
    assert "pieces are missing, the others stay" in " ".join(done.err.split())
