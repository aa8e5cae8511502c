"""The copy of a bucket: models that have nothing in common never wait for each other."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from alipes.config.agents import run_agents
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError, RepositoryError
from alipes.repository.mirror import Mirror
from alipes.repository.repository import Repository
from alipes.repository.store.bucket import BucketStore
from support.waiting import until

TIMEOUT_S = 30


class Folder(BucketStore):
    """A folder as a bucket, whose objects are fetched once they may be."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.held: dict[str, threading.Event] = {}
        self.fetched: list[str] = []

    def write(self, content: str | bytes, path: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(str(content))

    def tokens(self, path: str = "") -> dict[str, str]:
        found = (place for place in (self.root / path).rglob("*") if place.is_file())
        return {place.relative_to(self.root).as_posix(): place.read_text() for place in found}

    def fetch(self, path: str, file: Path) -> None:
        self.fetched.append(path)
        if path in self.held:
            assert self.held[path].wait(TIMEOUT_S)
        file.write_text((self.root / path).read_text())


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    made = Folder(tmp_path / "bucket")
    monkeypatch.setattr("alipes.repository.mirror.open_store", lambda url, *, create: made)
    for model in ("a", "b"):
        made.write("one", f"{model}/1/model.onnx")
    return made


@pytest.fixture
def mirror(store: Folder) -> Iterator[Mirror]:
    made = Mirror("s3://bucket")
    yield made
    made.close()


def beside(mirror: Mirror, model: str) -> threading.Thread:
    thread = threading.Thread(target=mirror.refresh, args=(model,))
    thread.start()
    return thread


@pytest.mark.parametrize("slow", ["a", ""], ids=["a model", "all"])
def test_a_slow_object_holds_up_no_other_model(mirror: Mirror, store: Folder, slow: str) -> None:
    store.held["a/1/model.onnx"] = threading.Event()
    thread = beside(mirror, slow)
    until(lambda: "a/1/model.onnx" in store.fetched)
    mirror.refresh("b")
    assert (mirror.folder / "b/1/model.onnx").read_text() == "one"
    store.held["a/1/model.onnx"].set()
    thread.join()
    mirror.refresh()
    assert sorted(store.fetched) == ["a/1/model.onnx", "b/1/model.onnx"], "each once"


def test_looks_at_one_model_come_one_after_the_other(mirror: Mirror, store: Folder) -> None:
    store.held["a/1/model.onnx"] = threading.Event()
    first = beside(mirror, "a")
    until(lambda: store.fetched)
    store.write("two", "a/2/model.onnx")
    second = beside(mirror, "a")
    store.held["a/1/model.onnx"].set()
    first.join()
    second.join()
    assert sorted(path.name for path in (mirror.folder / "a").iterdir()) == ["1", "2"]
    assert store.fetched.count("a/1/model.onnx") == 1


def test_what_is_gone_goes(mirror: Mirror, store: Folder) -> None:
    mirror.refresh()
    (store.root / "a/1/model.onnx").unlink()
    mirror.refresh()
    assert [path.name for path in mirror.folder.iterdir()] == ["b"]


def test_a_bucket_that_cannot_be_read_is_named(mirror: Mirror, store: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str = "") -> dict[str, str]:
        raise TimeoutError("no answer")

    monkeypatch.setattr(store, "tokens", refuse)
    for model in ("", "a"):
        with pytest.raises(RepositoryError, match="failed to read s3://bucket: TimeoutError: no answer"):
            mirror.refresh(model)


def test_a_bucket_that_is_not_there_yet_keeps_no_folder_from_being_read(
    store: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = RepositoryError("cannot open s3://bucket: there is no bucket bucket")

    def refuse(url: str, *, create: bool) -> Folder:
        raise missing

    (tmp_path / "folder" / "c").mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr("alipes.repository.mirror.open_store", refuse)
        patch.setattr("alipes.repository.repository.client_of", str)  # its package may be missing
        with (
            closing(Repository([tmp_path / "folder", "s3://bucket"])) as needed,
            pytest.raises(RepositoryError, match="there is no bucket"),
        ):
            needed.fetch()
        repository = Repository([tmp_path / "folder", "s3://bucket"], need="none")
        repository.fetch()
        listing = repository.read()
        assert (listing.names, listing.unreadable) == (("c",), {"s3://bucket": str(missing)})
        assert [folder.name for folder in repository.find("c")] == ["c"]
        with pytest.raises(
            RepositoryError, match=r"'a': model not found .*\. 's3://bucket' cannot be read: cannot open"
        ):
            repository.find("a")
    listing = repository.read()
    assert (listing.names, listing.unreadable) == (("a", "b", "c"), {})
    repository.close()


@pytest.mark.parametrize(("folder", "starts"), [("folder", True), ("absent", False)])
def test_one_place_that_can_be_read_is_enough_and_none_is_not(
    folder: str, starts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(url: str, *, create: bool) -> Folder:
        raise RepositoryError(f"cannot open {url}")

    (tmp_path / "folder").mkdir()
    monkeypatch.setattr("alipes.repository.mirror.open_store", refuse)
    monkeypatch.setattr("alipes.repository.repository.client_of", str)
    with closing(Repository([tmp_path / folder, "s3://bucket"], need="one")) as repository:
        if starts:
            repository.fetch()
        else:
            with pytest.raises(RepositoryError, match="cannot open s3://bucket"):
                repository.fetch()


def test_sums_of_files_are_compared_with_the_copy_that_is_loaded(mirror: Mirror, store: Folder) -> None:
    def config(content: str) -> ModelConfig:
        parameters = f'key: "MD5:1/model.onnx" value: "{hashlib.md5(content.encode()).hexdigest()}"'
        return parse_pbtxt(f'model_repository_agents {{ agents {{ name: "checksum" parameters {{ {parameters} }} }} }}')

    mirror.refresh("a")
    run_agents(config("one"), mirror.folder / "a")
    store.write("two", "a/1/model.onnx")
    mirror.refresh("a")
    run_agents(config("two"), mirror.folder / "a")
    with pytest.raises(ConfigError, match=r"Mismatched MD5 hash for file 1/model.onnx"):
        run_agents(config("one"), mirror.folder / "a")
