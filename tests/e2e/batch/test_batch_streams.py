"""A time series that is cut among clients gives what one sequence gives, bit for bit, whatever is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import StreamClient, batch
from alipes.errors import BatchError, ConfigError
from support.batch_runs import BatchProcess, await_held, set_aside_of
from support.python_models import write_model
from support.sequences import add_chain, add_streaming, means, windows
from support.server import ServerProcess
from support.waiting import until

Serve = Callable[..., ServerProcess]

CHANNELS, STRIDE, LENGTH, UPDATES, BATCH = 2, 8, 32, 3, 4
STRIDES = 1001  # the last update is short
HELD = 777.0
BROKEN = 888.0

# Halves windows; holds the one that ends with 777 until there is a note `go`, and fails that which ends with 888.
HALVES = f"""
class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(given(request)) for request in requests]

    def answer(self, window):
        if (window[..., -1] == {HELD}).any() and not (NOTES / "go").exists():
            note("reached", os.getppid())
            await_note("go")
        if (window[..., -1] == {BROKEN}).any():
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("broken"))
        return answer(Y=window / window.dtype.type(2))
"""


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notes")


@pytest.fixture(scope="module")
def servers(serve_module: Serve, notes: Path, tmp_path_factory: pytest.TempPathFactory) -> list[ServerProcess]:
    """Two servers of `chain`, whose answers are means, and of `halves`, whose answers are windows."""
    repository = tmp_path_factory.mktemp("models")
    add_streaming(
        repository, "windows", "snapshotter", stride_size=STRIDE, snapshot_size=LENGTH, channels="w:2", batch_size=BATCH
    )
    add_streaming(
        repository,
        "mean",
        "averager",
        update_size=STRIDE,
        num_updates=UPDATES,
        kernel_size=LENGTH,
        channels=CHANNELS,
        batch_size=BATCH,
    )
    (repository / "net" / "1").mkdir(parents=True)
    write_model(repository / "net" / "1" / "model.py", HALVES)
    (repository / "net" / "config.pbtxt").write_text(
        f'backend: "python" input {{ name: "X" data_type: TYPE_FP32 dims: [ {BATCH}, {CHANNELS}, {LENGTH} ] }} '
        f'output {{ name: "Y" data_type: TYPE_FP32 dims: [ {BATCH}, {CHANNELS}, {LENGTH} ] }} '
        "instance_group { count: 2 kind: KIND_CPU }"
    )
    steps = [("windows", "snapshot_update", "w"), ("net", "X", "Y")]
    update = [1, CHANNELS, STRIDE * BATCH]
    add_chain(repository, "chain", [*steps, ("mean", "update", "output_stream")], update, update)
    add_chain(repository, "halves", steps, update, [BATCH, CHANNELS, LENGTH])
    return [serve_module(repository, environment={"NOTES": str(notes)}) for _ in range(2)]


@pytest.fixture(scope="module")
def series() -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).standard_normal((CHANNELS, STRIDES * STRIDE), np.float32)


def url_of(servers: list[ServerProcess]) -> str:
    return ",".join(server.grpc for server in servers)


def rows_of_run(folder: Path) -> np.ndarray[Any, Any]:
    (name,) = next(batch.results(folder))
    return np.concatenate([columns[name] for columns in batch.results(folder)])


@pytest.mark.slow("starts two servers with a model in Python")
@pytest.mark.parametrize(("count", "clients"), [(1, 1), (2, 2)])
def test_a_series_in_pieces_is_the_series_bit_for_bit(
    servers: list[ServerProcess], series: np.ndarray[Any, Any], tmp_path: Path, count: int, clients: int
) -> None:
    summary = batch.run(
        "chain", series, tmp_path / "out", url=url_of(servers[:count]), clients=clients, stream=True, in_flight=32
    )
    found = rows_of_run(tmp_path / "out")
    assert summary.rows == STRIDES
    assert summary.pieces > 4
    kernels = windows(series, STRIDE, LENGTH) / np.float32(2)
    assert np.concatenate(list(found), axis=-1).tobytes() == means(kernels, STRIDE, UPDATES).tobytes()
    with StreamClient(servers[0].grpc, "chain") as client:
        assert np.concatenate(list(client.stream(series)), axis=-1).tobytes() == np.concatenate([*found], -1).tobytes()


def test_windows_are_rows(servers: list[ServerProcess], series: np.ndarray[Any, Any], tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", series[:, : 101 * STRIDE])
    np.save(tmp_path / "b.npy", series[:, 101 * STRIDE : 151 * STRIDE])
    batch.run("halves", str(tmp_path / "*.npy"), tmp_path / "out", url=url_of(servers), stream=True)
    first, second = series[:, : 101 * STRIDE], series[:, 101 * STRIDE : 151 * STRIDE]
    parts = [windows(one, STRIDE, LENGTH) for one in (first, second)]
    assert rows_of_run(tmp_path / "out").tobytes() == (np.concatenate(parts) / np.float32(2)).tobytes()
    places = [(Path(file).name, row) for file, row in batch.places(tmp_path / "out")]
    assert places == [*(("a.npy", row) for row in range(101)), *(("b.npy", row) for row in range(50))]


@pytest.mark.slow("a run that is killed and started again")
def test_a_series_is_the_same_after_a_kill_in_the_middle(
    servers: list[ServerProcess], series: np.ndarray[Any, Any], notes: Path, tmp_path: Path
) -> None:
    held = series.copy()
    held[:, STRIDE * 500 - 1] = HELD
    np.save(tmp_path / "series.npy", held)
    words = ("chain", tmp_path / "series.npy", "-o", tmp_path / "out", "--stream", "--url", url_of(servers))
    with BatchProcess(*words, "--clients", 2) as run:
        await_held(notes)
        until(lambda: len(list((tmp_path / "out" / "pieces").glob("*.json"))) > 2)
        os.killpg(run.process.pid, signal.SIGKILL)
        run.wait()
    (notes / "go").touch()
    with pytest.raises(BatchError, match="is not whole yet"):
        rows_of_run(tmp_path / "out")
    with BatchProcess(*words, "--clients", 3) as run:
        done = run.wait()
    assert (done.code, done.err) == (0, "")
    kernels = windows(held, STRIDE, LENGTH) / np.float32(2)
    found = np.concatenate([*rows_of_run(tmp_path / "out")], axis=-1)
    assert found.tobytes() == means(kernels, STRIDE, UPDATES).tobytes()


def test_a_stretch_that_cannot_be_answered_is_set_aside(
    servers: list[ServerProcess], series: np.ndarray[Any, Any], tmp_path: Path
) -> None:
    broken = series[:, : 101 * STRIDE].copy()
    broken[:, STRIDE * 60 - 1] = BROKEN
    np.save(tmp_path / "a.npy", series[:, : 101 * STRIDE])
    np.save(tmp_path / "b.npy", broken)
    (tmp_path / "c.npy").write_bytes(b"junk")
    summary = batch.run("chain", str(tmp_path / "*.npy"), tmp_path / "out", url=url_of(servers), stream=True)
    assert summary.set_aside >= 2
    aside = set_aside_of(tmp_path / "out")
    assert [(file, reason) for file, _, reason in aside][-1][0] == "c.npy"
    assert {(file, reason) for file, _, reason in aside if file != "c.npy"} == {
        ("b.npy", "in ensemble 'chain', broken")
    }
    assert 101 < summary.rows < 202


@pytest.mark.parametrize(
    ("model", "array", "reason"),
    [
        ("chain", np.zeros((3, 100), np.float32), r"it has the shape \[3, 100\], and the model takes \[2\]"),
        ("net", np.zeros((2, 100), np.float32), "takes 0 streams, and a run cuts one"),
    ],
)
def test_what_is_no_stream_is_refused(
    servers: list[ServerProcess], tmp_path: Path, model: str, array: Any, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        batch.run(model, array, tmp_path / "out", url=servers[0].grpc, stream=True)


def test_a_stream_needs_grpc(servers: list[ServerProcess], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="streams need gRPC"):
        batch.run("chain", np.zeros((2, 100), np.float32), tmp_path / "out", url=servers[0].http, stream=True)
