"""Repositories in buckets, against real emulators: what local ones promise, and none of the old traps of buckets."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alipes import repository as qv
from alipes.errors import ExportError, RepositoryError, RepositoryUseError
from alipes.repository.mirror import Mirror
from alipes.repository.store.base import NoFilesFoundError, PathExists
from alipes.repository.store.open import open_store
from support.buckets import EMULATORS, Place, emulated, fresh
from support.exported import scaled

pytest.importorskip("fsspec", reason="buckets need fsspec: pip install 'alipes[gcs]'")
pytestmark = [
    pytest.mark.extra("buckets"),
    pytest.mark.slow("talks to emulated stores for seconds"),
    pytest.mark.filterwarnings("ignore"),
]  # the stores' clients warn of each other


@pytest.fixture(scope="module", params=list(EMULATORS))
def emulator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with emulated(request.param, tmp_path_factory.mktemp(request.param)) as place:
        yield place


@pytest.fixture
def place(emulator: Place) -> Place:
    return fresh(emulator)


def opened(place: Place, **options: Any) -> qv.ModelRepository:
    return qv.ModelRepository(place.url, **options, **place.options)


def objects(repo: qv.ModelRepository) -> set[str]:
    store: Any = repo.fs
    return {one[len(store._root) + 1 :] for one in store._objects(store._root)}


def test_a_repository_in_a_bucket_is_what_a_local_one_is(place: Place, tmp_path: Path) -> None:
    repo = opened(place)
    assert repo.models == {}
    assert str(repo.fs) == place.url
    model = repo.add("m", qv.Platform.ONNX)
    assert (len(repo.models), model.versions) == (1, [])
    assert model.export_version(scaled()) == "m/1/model.onnx"
    for _ in range(10):
        model.export_version(scaled())
    assert model.versions == list(range(1, 12))
    assert objects(repo) == {"m/config.pbtxt", *(f"m/{version}/model.onnx" for version in model.versions)}
    model.config.add_instance_group("cpu", count=2)
    model.config.write()
    ensemble = repo.add("e", qv.Platform.ENSEMBLE)
    ensemble.add_input(model.inputs["x"])
    ensemble.add_output(model.outputs["y"])
    assert ensemble.export_version(None) == "e/1/model.empty"

    again = opened(place)
    assert list(again.models) == ["e", "m"]
    assert again.models["m"].config.instance_group[0].count == 2
    assert repo.fs.read("m/1/model.onnx", "rb") == scaled().SerializeToString()
    assert repo.fs.list("m/2") == ["model.onnx"]
    assert repo.fs.glob("m/1/*") == ["m/1/model.onnx"]


def test_models_whose_names_begin_alike_are_left_alone(place: Place) -> None:
    repo = opened(place)
    for name in ("m", "m_0", "m2"):
        repo.add(name, qv.Platform.ONNX).export_version(scaled())
    assert repo.fs.list("m") == ["1", "config.pbtxt"]
    repo.remove("m")
    assert objects(repo) == {f"{name}/{file}" for name in ("m_0", "m2") for file in ("1/model.onnx", "config.pbtxt")}
    with pytest.raises(NoFilesFoundError):
        repo.fs.remove("m")
    repo.refresh()
    assert set(repo.models) == {"m_0", "m2"}


def test_clean_and_delete_keep_to_the_prefix(place: Place) -> None:
    repo = opened(place)
    beside = qv.ModelRepository(f"{place.url}-too", **place.options)
    for one in (repo, beside):
        for name in "abc":
            one.add(name, qv.Platform.ONNX).export_version(scaled())
    repo.fs.write("stray", "note.txt")
    assert opened(place, clean=True).models == {}
    assert objects(repo) == set()
    repo.delete()
    assert repo.models == {}
    assert set(qv.ModelRepository(f"{place.url}-too", **place.options).models) == set("abc")


def test_an_export_that_fails_leaves_nothing(place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    repo = opened(place)
    model = repo.add("m", qv.Platform.ONNX)
    with pytest.raises(ExportError):
        model.export_version(scaled(), output_names=["z"])
    assert objects(repo) == set()
    store: Any = repo.fs
    put = store._files.put_file

    def broken(local: str, remote: str) -> None:
        put(local, remote)
        raise OSError("the connection broke")

    monkeypatch.setattr(store._files, "put_file", broken)
    with pytest.raises(OSError, match="the connection broke"):
        model.export_version(scaled())
    monkeypatch.undo()
    assert objects(repo) == set()
    assert model.inputs == {}
    model.export_version(scaled())
    with monkeypatch.context() as patch:
        patch.setattr(store, "swap", lambda *_: (_ for _ in ()).throw(OSError("the connection broke")))
        with pytest.raises(OSError, match="the connection broke"):
            model.export_version(scaled())
    assert model.versions == [1]


def test_a_configuration_is_replaced_only_while_unchanged(place: Place) -> None:
    store = opened(place).fs
    store.swap("one", "m/config.pbtxt", None)
    for expected in (None, "two"):
        with pytest.raises(PathExists):
            store.swap("three", "m/config.pbtxt", expected)
    store.swap("two", "m/config.pbtxt", "one")
    store.swap("two", "m/config.pbtxt", "something else, though it says the same")
    assert store.read("m/config.pbtxt") == "two"


def test_a_concurrent_write_is_not_overwritten(place: Place, emulator: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    if emulator.url == "memory://":
        pytest.skip("a dictionary has no conditions on writing")
    model = opened(place).add("m", qv.Platform.ONNX)
    model.export_version(scaled())
    other = opened(place).models["m"]
    other.config.add_instance_group("cpu", count=2)
    store: Any = model.fs
    read = store.read

    def slow(path: str, mode: str = "r") -> Any:
        found = read(path, mode)
        if path.endswith(".pbtxt") and other.config._seen != str(other.config):
            other.config.write()
        return found

    model.config.add_instance_group("cpu", count=3)
    monkeypatch.setattr(store, "read", slow)
    with pytest.raises(RepositoryUseError, match="changed by another program"):
        model.config.write()
    monkeypatch.undo()
    model.config.reload()
    assert model.config.instance_group[0].count == 2


def copied(mirror: Mirror) -> dict[str, bytes]:
    found = (path for path in mirror.folder.rglob("*") if path.is_file())
    return {path.relative_to(mirror.folder).as_posix(): path.read_bytes() for path in found}


def test_a_servers_copy_follows_the_bucket(emulator: Place, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(place).fs
    # A server has no more than the address; what else it needs it takes from the environment.
    monkeypatch.setattr("alipes.repository.mirror.open_store", lambda url, *, create: store)
    store.write("one", "m/config.pbtxt")
    store.write("weights", "m/1/model.onnx")
    store.write("other", "m2/1/model.onnx")
    for odd in ("stray.txt", "m/.hidden", "m/.claim-2", "m/2/model.onnx", ".git/1/model.onnx"):
        store.write("odd", odd)
    mirror = Mirror(place.url)
    assert copied(mirror) == {}
    mirror.refresh()
    expected = {"m/config.pbtxt": b"one", "m/1/model.onnx": b"weights", "m2/1/model.onnx": b"other"}
    assert copied(mirror) == expected
    stayed = (mirror.folder / "m/1/model.onnx").stat().st_ino

    store.swap("two", "m/config.pbtxt", "one")
    store.remove("m/.claim-2")
    store.remove("m2")
    mirror.refresh("m")
    assert copied(mirror) == expected | {"m/config.pbtxt": b"two", "m/2/model.onnx": b"odd"}
    mirror.refresh()
    assert sorted(path.name for path in mirror.folder.iterdir()) == ["m"]
    assert (mirror.folder / "m/1/model.onnx").stat().st_ino == stayed
    mirror.close()
    assert not mirror.folder.exists()


def test_a_bucket_that_is_not_there_is_not_made_for_a_server(place: Place, emulator: Place) -> None:
    if emulator.url == "memory://":
        pytest.skip("a dictionary has no buckets")
    with pytest.raises(RepositoryError, match="there is no bucket"):
        open_store(place.url, create=False, **place.options)
    assert opened(place).models == {}


def test_a_version_is_replaced_with_all_its_files(place: Place, tmp_path: Path) -> None:
    import onnx

    onnx.save(scaled(), str(tmp_path / "a.onnx"), save_as_external_data=True, location="w.bin", size_threshold=0)
    repo = opened(place)
    model = repo.add("m", qv.Platform.ONNX)
    model.export_version(tmp_path / "a.onnx")
    assert repo.fs.list("m/1") == ["model.onnx", "w.bin"]
    model.export_version(scaled(), version=1)
    assert objects(repo) == {"m/1/model.onnx", "m/config.pbtxt"}


def test_a_claim_that_a_killed_exporter_left_costs_its_number(place: Place) -> None:
    repo = opened(place)
    repo.fs.write("", "m/.claim-1")
    model = repo.add("m", qv.Platform.ONNX)
    assert model.export_version(scaled()) == "m/2/model.onnx"
    with pytest.raises(RepositoryUseError, match="version 1 of model 'm' is being exported by another program"):
        model.export_version(scaled(), version=1)


def export_many(place: Place, count: int, start: Any, found: Any) -> None:
    model = opened(place).add("m", qv.Platform.ONNX)
    start.wait()  # what has been exported cannot be added any more
    found.put([model.export_version(scaled()) for _ in range(count)])


def test_exporters_beside_each_other_get_versions_of_their_own(place: Place, emulator: Place) -> None:
    if emulator.url == "memory://":
        pytest.skip("a dictionary belongs to one process")
    workers, each = 3, 3
    context = multiprocessing.get_context("spawn")  # the stores' clients do not outlive a fork
    opened(place)
    start, found = context.Barrier(workers), context.Queue()
    processes = [context.Process(target=export_many, args=(place, each, start, found)) for _ in range(workers)]
    for process in processes:
        process.start()
    paths = [path for _ in processes for path in found.get(timeout=100)]
    for process in processes:
        process.join(60)
    assert len(set(paths)) == workers * each
    repo = opened(place)
    assert objects(repo) == {*paths, "m/config.pbtxt"}


def test_a_wrong_key_is_an_error(emulator: Place) -> None:
    if emulator.url != "s3://":
        pytest.skip("this emulator lets everybody in")
    wrong = Place(fresh(emulator).url, emulator.options | {"secret": "no"})
    with pytest.raises(RepositoryError, match="cannot open s3://"):
        opened(wrong)


def test_tritons_way_to_name_a_server_is_understood(emulator: Place) -> None:
    if emulator.url != "s3://":
        pytest.skip("only S3 servers are named so")
    options = dict(emulator.options)
    endpoint = options.pop("endpoint_url")
    place = fresh(emulator)
    repo = qv.ModelRepository(f"s3://{endpoint}/{place.url.removeprefix('s3://')}", **options)
    repo.add("m", qv.Platform.ONNX).export_version(scaled())
    assert list(opened(place).models) == ["m"]
