"""Runs over files, arrays and functions give each row once, in order; what fails is set aside by itself."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from alipes import batch
from alipes.errors import BatchError, ConfigError, NotFound
from support.batch_runs import add_files, add_picky, rows_of, set_aside_of
from support.command import alipes, check_readable
from support.models import add_model, small_model
from support.pictures import decoded, file_of, photo
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]


@pytest.fixture(scope="module")
def servers(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory) -> list[ServerProcess]:
    """Two servers of the same models."""
    repository = tmp_path_factory.mktemp("models")
    add_picky(repository, count=1)
    add_model(repository, "double", config="max_batch_size: 8\n")
    notes = tmp_path_factory.mktemp("notes")
    (notes / "go").touch()
    return [serve_module(repository, environment={"NOTES": str(notes)}) for _ in range(2)]


@pytest.mark.slow("starts two servers with a model in Python")
@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_every_row_is_answered_once_by_two_servers_with_two_clients_each(
    servers: list[ServerProcess], tmp_path: Path, protocol: str
) -> None:
    expected = add_files(tmp_path / "data", 90)
    url = [f"{protocol}://{getattr(server, protocol)}" for server in servers]
    summary = batch.run("double", str(tmp_path / "data" / "*.npy"), tmp_path / "out", url=url, clients=2)
    assert rows_of(tmp_path / "out") == expected
    assert (summary.files, summary.rows, summary.set_aside, summary.servers) == (90, 270, 0, 2)
    clients = batch.status(tmp_path / "out").clients
    # A client whose pieces were done by others before it could has asked nobody.
    assert {client.server for client in clients} <= {*url, ""}
    assert len(clients) == 4
    assert all(client.state == "ended" for client in clients)
    # Nothing is sent by a second start.
    again = batch.run("double", str(tmp_path / "data" / "*.npy"), tmp_path / "out", url="localhost:1", clients=3)
    assert (again.rows, again.new_pieces) == (270, 0)


def test_poisoned_files_and_rows_are_set_aside_and_tried_again(servers: list[ServerProcess], tmp_path: Path) -> None:
    expected = add_files(tmp_path / "data", 30)
    (tmp_path / "data" / "0011.npy").write_bytes(b"junk")
    bad = np.array([[1, 1], [2, -1], [3, 3]], np.float32)
    np.save(tmp_path / "data" / "0017.npy", bad)
    words = ("picky", tmp_path / "data", "-o", tmp_path / "out", "--url", servers[0].grpc, "--clients", "2")
    done = alipes("batch", "run", *map(str, words))
    assert (done.code, done.err) == (3, "")
    assert "2 set aside, with reasons" in done.out
    expected = {key: value for key, value in expected.items() if key[0] not in ("0011.npy", "0017.npy")}
    kept_rows = {("0017.npy", 0): [2.0, 2.0], ("0017.npy", 2): [6.0, 6.0]}
    assert rows_of(tmp_path / "out") == dict(sorted((expected | kept_rows).items()))
    assert set_aside_of(tmp_path / "out") == [
        ("0011.npy", None, "EOF: reading magic string, expected 8 bytes got 4"),
        ("0017.npy", 1, "negative"),
    ]


def test_a_failed_row_is_answered_once_its_model_can(servers: list[ServerProcess], tmp_path: Path) -> None:
    rows = np.array([[1, 1], [2, -1]], np.float32)
    how = {"url": servers[0].grpc, "progress": False}
    assert batch.run("picky", rows, tmp_path / "out", **how).set_aside == 1
    assert batch.run("picky", rows, tmp_path / "out", again=True, **how).new_rows == 1
    assert set_aside_of(tmp_path / "out") == [("000000.npz", 1, "negative")]


def test_a_function_is_called_once_for_a_run(servers: list[ServerProcess], tmp_path: Path) -> None:
    calls = []

    def yields() -> Iterator[np.ndarray]:
        calls.append(1)
        for number in range(50):
            yield np.array([number, 1], np.float32)

    for _ in range(2):
        summary = batch.run("double", yields, tmp_path / "out", url=servers[0].grpc, form="jsonl")
        assert summary.rows == 50
    assert len(calls) == 1
    files = sorted((tmp_path / "out" / "pieces").glob("*.jsonl"))
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert rows == [{"Y": [2.0 * number, 2.0]} for number in range(50)]


def test_a_large_file_is_divided_among_clients(servers: list[ServerProcess], tmp_path: Path) -> None:
    rows = np.random.default_rng(1).normal(size=(5000, 2)).astype(np.float32)
    lines = [json.dumps({"X": row.tolist()}) for row in rows[:200]]
    np.savez(tmp_path / "rows.npz", X=rows)
    (tmp_path / "rows.jsonl").write_text("\n".join([*lines[:100], "no row", *lines[100:]]))
    inputs = [tmp_path / "rows.npz", tmp_path / "rows.jsonl"]
    summary = batch.run(
        "double", inputs, tmp_path / "out", url=[server.grpc for server in servers], clients=2, unit_bytes=2000
    )
    assert (summary.rows, summary.set_aside) == (5200, 1)
    assert summary.pieces > 16
    found = rows_of_any(tmp_path / "out")
    assert found[:5000] == [("rows.npz", number, (2 * row).tolist()) for number, row in enumerate(rows)]
    numbers = [*range(100), *range(101, 201)]
    assert found[5000:] == [
        ("rows.jsonl", number, (2 * row).tolist()) for number, row in zip(numbers, rows[:200], strict=True)
    ]
    assert [(file, row) for file, row, _ in set_aside_of(tmp_path / "out")] == [("rows.jsonl", 100)]


def rows_of_any(folder: Path) -> list[tuple[str, int, list[float]]]:
    values = [row.tolist() for columns in batch.results(folder) for row in columns["Y"]]
    places = [(Path(file).name, row) for file, row in batch.places(folder)]
    return [(*place, value) for place, value in zip(places, values, strict=True)]


@pytest.fixture(scope="module")
def finished(servers: list[ServerProcess], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 40 files that is whole."""
    folder = tmp_path_factory.mktemp("finished")
    add_files(folder / "data", 40)
    batch.run("double", folder / "data", folder / "out", url=servers[0].grpc)
    return folder


@pytest.mark.parametrize("end", ["npy", "npz"])
def test_results_are_merged_into_one_array(finished: Path, tmp_path: Path, end: str) -> None:
    done = alipes("batch", "merge", str(finished / "out"), str(tmp_path / f"all.{end}"))
    assert (done.code, done.out) == (0, f"120 rows in {tmp_path / f'all.{end}'}\n")
    held = np.load(tmp_path / f"all.{end}")
    assert np.array_equal(held if end == "npy" else held["Y"], list(rows_of(finished / "out").values()))


def test_merged_lines_say_where_each_row_is_from(finished: Path, tmp_path: Path) -> None:
    batch.merge(finished / "out", tmp_path / "all.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert {(Path(one["file"]).name, one["row"]): one["Y"] for one in lines} == rows_of(finished / "out")


def test_a_file_is_not_merged_over_another_one(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "all.npy").write_bytes(b"precious")
    done = alipes("batch", "merge", str(finished / "out"), str(tmp_path / "all.npy"))
    assert done.code == 1
    check_readable(done)
    assert "is there already" in done.message
    assert (tmp_path / "all.npy").read_bytes() == b"precious"
    assert batch.merge(finished / "out", tmp_path / "all.npy", replace=True) == 120


def test_a_changed_result_is_not_merged(servers: list[ServerProcess], tmp_path: Path) -> None:
    add_files(tmp_path / "data", 3)
    batch.run("double", tmp_path / "data", tmp_path / "out", url=servers[0].grpc)
    (tmp_path / "out" / "pieces" / "000000.npz").write_bytes(b"other")
    with pytest.raises(BatchError, match=r"000000\.npz was changed since it was written"):
        batch.merge(tmp_path / "out", tmp_path / "all.npy")


def test_the_cost_of_an_hour_of_data_is_that_of_the_servers(servers: list[ServerProcess], tmp_path: Path) -> None:
    add_files(tmp_path / "data", 30)
    url = ",".join(server.grpc for server in servers)
    words = (
        "double",
        tmp_path / "data",
        "-o",
        tmp_path / "out",
        "--url",
        url,
        "--price",
        "3600",
        "--rows-per-hour",
        "45",
    )
    done = alipes("batch", "run", *map(str, words), "--json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert (found["new_rows"], found["servers"]) == (90, 2)
    # 3600 an hour are 1 a second for each of the two servers; 90 rows are two hours of data.
    assert found["cost"] == pytest.approx(2 * found["seconds"])
    assert found["cost_per_data_hour"] == pytest.approx(found["seconds"])
    again = alipes("batch", "run", *map(str, words))
    assert again.out.splitlines()[1:] == ["nothing was left to do", "cost 0"]


@pytest.mark.slow("starts a server")
def test_pictures_are_pixels_or_files_as_the_model_takes_them(serve: Serve, repository: Path, tmp_path: Path) -> None:
    kinds = {"pixels": (onnx.TensorProto.UINT8, [4, 6, 3]), "files": (onnx.TensorProto.STRING, [1])}
    for name, (kind, shape) in kinds.items():
        ports = [onnx.helper.make_tensor_value_info(port, kind, ["batch", *shape]) for port in ("X", "Y")]
        node = onnx.helper.make_node("Identity", ["X"], ["Y"])
        add_model(repository, name, small_model([node], ports[:1], ports[1:], []), config="max_batch_size: 8\n")
    (tmp_path / "data").mkdir()
    pixels = []
    for number in range(12):
        kind = "PNG" if number % 2 else "BMP"
        picture = photo(6, 4, seed=number)
        (tmp_path / "data" / f"{number:02}.{kind.lower()}").write_bytes(file_of(picture, kind))
        pixels.append(np.asarray(picture))
    (tmp_path / "data" / "12.png").write_bytes(b"no picture")
    server = serve(repository)
    words = ("-o", "out", "--url", server.grpc, "--clients", "2")
    done = alipes("batch", "run", "pixels", "data", *words, folder=tmp_path)
    assert (done.code, done.err) == (3, "")
    ((file, row, reason),) = set_aside_of(tmp_path / "out")
    assert (file, row) == ("12.png", 0)
    assert reason.startswith("it is no picture that can be read")
    found = [row for columns in batch.results(tmp_path / "out") for row in columns["Y"]]
    assert np.array_equal(found, pixels)
    batch.run("pixels", tmp_path / "data", tmp_path / "pictures", url=server.grpc, form="zip")
    batch.merge(tmp_path / "pictures", tmp_path / "all.zip")
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert archive.namelist() == [f"Y/{number:08}.png" for number in range(12)]
        assert np.array_equal([decoded(archive.read(name)) for name in archive.namelist()], pixels)
    # What came out goes in again.
    batch.run("pixels", tmp_path / "all.zip", tmp_path / "again", url=server.grpc)
    assert np.array_equal([row for columns in batch.results(tmp_path / "again") for row in columns["Y"]], pixels)
    batch.run("files", str(tmp_path / "data" / "*.png"), tmp_path / "files", url=server.grpc)
    contents = [bytes(row[0]) for columns in batch.results(tmp_path / "files") for row in columns["Y"]]
    assert contents == [path.read_bytes() for path in sorted((tmp_path / "data").glob("*.png"))]


def test_status_is_that_of_a_whole_run(finished: Path) -> None:
    done = alipes("batch", "status", str(finished / "out"), "--json")
    document = json.loads(done.out)
    assert (document["complete"], document["rows"], document["set_aside"]) == (True, 120, 0)
    assert document["pieces_done"] == document["pieces"]
    assert "complete" in alipes("batch", "status", str(finished / "out")).out


def test_the_manifest_and_the_mark_count_what_is_there(finished: Path) -> None:
    manifest = json.loads((finished / "out" / "manifest.json").read_text())
    success = json.loads((finished / "out" / "_SUCCESS").read_text())
    assert sum(piece["rows"] for piece in manifest["pieces"]) == manifest["rows"] == success["rows"] == 120
    assert success["files"] == 40
    assert {piece["file"] for piece in manifest["pieces"]} == {
        f"pieces/{file.name}" for file in (finished / "out" / "pieces").glob("*.npz")
    }


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": "picky"}, "holds a run of model 'double', and this is one of 'picky'"),
        ({"form": "npy"}, "holds a run of form 'npz', and this is one of 'npy'"),
        ({"inputs": "0*1.npy"}, r"holds a run of 40 files, and now there are 4 \(0 of them new\)"),
    ],
)
def test_the_results_of_something_else_stay(finished: Path, change: dict[str, str], reason: str) -> None:
    arguments = {"model": "double", "inputs": "*.npy", "form": "npz"} | change
    pattern = str(finished / "data" / arguments["inputs"])
    with pytest.raises(ConfigError, match=reason):
        batch.run(arguments["model"], pattern, finished / "out", url="localhost:1", form=arguments["form"])


def test_a_folder_with_files_of_others_is_refused(tmp_path: Path) -> None:
    add_files(tmp_path / "data", 1)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").touch()
    with pytest.raises(ConfigError, match="has files and no plan of a batch run: choose another folder"):
        batch.run("double", tmp_path / "data", tmp_path / "out", url="localhost:1")
    with pytest.raises(ConfigError, match="is a file: name a folder"):
        batch.run("double", tmp_path / "data", tmp_path / "out" / "thesis.tex", url="localhost:1")


def test_inputs_that_do_not_fit_are_refused_before_anything_is_sent(
    servers: list[ServerProcess], tmp_path: Path
) -> None:
    np.save(tmp_path / "a.npy", np.ones((4, 3), np.float32))
    with pytest.raises(ConfigError, match=r"do not fit model 'double': .*takes rows of the shape \[2\]"):
        batch.run("double", tmp_path / "a.npy", tmp_path / "out", url=servers[0].grpc)
    with pytest.raises(ConfigError, match="takes at most 8 rows in a request, not 9"):
        batch.run("double", tmp_path / "a.npy", tmp_path / "out", url=servers[0].grpc, batch=9)
    assert not (tmp_path / "out" / "plan.json").exists()


def test_a_model_that_no_server_has_is_named(servers: list[ServerProcess], tmp_path: Path) -> None:
    add_files(tmp_path / "data", 1)
    with pytest.raises(NotFound, match="the server has 'double', 'picky'"):
        batch.run("duble", tmp_path / "data", tmp_path / "out", url=servers[0].grpc)


def test_rows_that_all_fail_end_the_run(servers: list[ServerProcess], tmp_path: Path) -> None:
    rows = -np.ones((20, 2), np.float32)
    with pytest.raises(BatchError, match=r"the first 20 rows all failed: negative; .*1 of 1 pieces are missing"):
        batch.run("picky", rows, tmp_path / "out", url=servers[0].grpc)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["double", "none*.npy", "--url", "localhost:1"], "no file matches none*.npy"),
        (["double", "a.npy"], "name the servers with --url, or their models with --repository"),
        (["double", "a.npy", "--url", "localhost:1", "--servers", "2"], "give --servers with --repository"),
        (["double", "a.npy", "--url", "localhost:1", "--form", "csv"], "written as npz, npy, h5, parquet, jsonl, zip"),
        (["double", "a.npy", "--url", "localhost:1"], "start a server with"),
    ],
)
def test_a_wrong_command_line_is_answered_in_one_sentence(tmp_path: Path, words: list[str], reason: str) -> None:
    np.save(tmp_path / "a.npy", np.ones((1, 2), np.float32))
    done = alipes("batch", "run", *words, "-o", "out", folder=tmp_path)
    assert done.code in (1, 2)
    check_readable(done)
    assert reason in done.message


def test_status_and_merge_of_no_run_say_so(tmp_path: Path) -> None:
    for words in (["status", str(tmp_path)], ["merge", str(tmp_path), "all.npy"]):
        done = alipes("batch", *words)
        assert done.code == 1
        assert "holds no batch run" in done.message
        check_readable(done)
