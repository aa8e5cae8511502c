"""Models that a file lists, in the form of KServe's `models.json`."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alipes.errors import RepositoryError
from alipes.repository import model_list
from alipes.repository.model_list import ModelList
from alipes.repository.model_list_file import read_model_list
from alipes.repository.model_store import ModelStore
from alipes.repository.repository import Repository
from alipes.repository.shared_folder import SharedFolder
from alipes.repository.stores import opened_list
from support.waiting import until


def entry(name: str, address: Path | str) -> dict[str, Any]:
    return {"modelName": name, "modelSpec": {"storageUri": str(address), "framework": "onnx", "memory": "1Gi"}}


def model(tmp_path: Path, name: str) -> Path:
    file = tmp_path / "stores" / name / "net.onnx"
    file.parent.mkdir(parents=True)
    file.write_text(name)
    return file.parent


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "configs" / "models.json"


@pytest.fixture
def models(file: Path) -> Iterator[ModelList]:
    file.parent.mkdir()
    listed = opened_list(str(file))
    yield listed
    listed.close()


def text_of(models: ModelList, name: str) -> str:
    folder = models.folder_of(name)
    assert folder is not None
    return next(folder.glob("1/*")).read_text()


def names_after(models: ModelList) -> list[str]:
    models.refresh()
    return models.names()


def test_what_a_list_has_at_the_start_is_there(models: ModelList, file: Path, tmp_path: Path) -> None:
    file.write_text(json.dumps([entry("b", model(tmp_path, "b")), entry("a", f"file://{model(tmp_path, 'a')}")]))
    models.refresh()
    assert models.names() == []  # the start alone begins to fetch
    models.fetch()
    assert models.names() == ["a", "b"]
    assert text_of(models, "a") == "a"


def test_changes_are_followed(models: ModelList, file: Path, tmp_path: Path) -> None:
    first, second = model(tmp_path, "first"), model(tmp_path, "second")
    models.fetch()  # there is no list yet
    with pytest.raises(RepositoryError, match="No such file"):
        models.refresh()
    file.write_text(json.dumps([entry("a", first), entry("gone", first)]))
    until(lambda: names_after(models) == ["a", "gone"], "both are fetched")
    file.write_text(json.dumps([entry("a", second)]))
    until(lambda: names_after(models) == ["a"] and text_of(models, "a") == "second", "one left, one lies elsewhere")


def test_a_look_at_a_list_that_has_not_changed_reads_nothing(
    models: ModelList, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    def counted(path: Path) -> Any:
        read.append(path)
        return read_model_list(path)

    monkeypatch.setattr(model_list, "read_model_list", counted)
    file.write_text(json.dumps([entry(name, model(tmp_path, name)) for name in "abc"]))
    os.utime(file, (1, 1))
    models.fetch()
    for name in ("", "a", "b", "c", "unknown"):
        models.refresh(name)
    assert len(read) == 1
    file.write_text("[]")
    os.utime(file, (2, 2))
    assert (names_after(models), len(read)) == ([], 2)


class Stuck:
    """A place that does not answer, until it does."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answers = threading.Event()

    def fetch(self, cancelled: threading.Event) -> Path:
        until(lambda: self.answers.is_set() or cancelled.is_set(), "it answers")
        return self.path

    def close(self) -> None:
        """Has nothing."""


@pytest.fixture
def stuck(tmp_path: Path) -> Stuck:
    return Stuck(model(tmp_path, "stuck"))


@pytest.fixture
def some_stuck(file: Path, stuck: Stuck) -> Iterator[ModelList]:
    """A list whose models called `stuck…` lie where nobody answers."""
    file.parent.mkdir()

    def opened(address: str, name: str, folder: SharedFolder) -> ModelStore:
        source = stuck if address.startswith("stuck") else None
        return ModelStore(Path(address), name, source=source, folder=folder)

    listed = ModelList(file, opened, longest_gap_s=0.05)
    yield listed
    listed.close()


def test_a_store_that_does_not_answer_holds_up_no_other(
    some_stuck: ModelList, stuck: Stuck, file: Path, tmp_path: Path
) -> None:
    names = [f"stuck{number}" for number in range(3)]
    file.write_text(json.dumps([*(entry(name, name) for name in names), entry("good", model(tmp_path, "good"))]))
    some_stuck.fetch()
    assert some_stuck.names() == ["good"]
    assert dict(some_stuck.failures()) == dict.fromkeys(names, "model is being fetched")
    before = some_stuck.stamp()
    stuck.answers.set()
    until(lambda: names_after(some_stuck) == ["good", *names], "they come later")
    assert some_stuck.stamp() != before


def test_a_moved_model_serves_until_the_new_one_is_here(
    some_stuck: ModelList, stuck: Stuck, file: Path, tmp_path: Path
) -> None:
    file.write_text(json.dumps([entry("a", model(tmp_path, "first"))]))
    some_stuck.fetch()
    before = some_stuck.folder_of("a")
    file.write_text(json.dumps([entry("a", "stuck")]))
    some_stuck.refresh()
    some_stuck.refresh("a")  # it is asked for, and it is here
    assert (some_stuck.names(), some_stuck.folder_of("a")) == (["a"], before)
    stuck.answers.set()
    until(lambda: some_stuck.folder_of("a") != before, "it is replaced")
    assert text_of(some_stuck, "a") == "stuck"
    assert not some_stuck.failures()


def test_a_list_that_is_half_written_changes_nothing(models: ModelList, file: Path, tmp_path: Path) -> None:
    whole = json.dumps([entry("a", model(tmp_path, "a"))])
    file.write_text(whole)
    models.fetch()
    file.write_text(whole[: len(whole) // 2])
    with pytest.raises(RepositoryError, match="no list of models in KServe's form"):
        models.refresh()
    assert models.names() == ["a"]


def test_what_is_listed_and_not_there_has_its_reason(models: ModelList, file: Path, tmp_path: Path) -> None:
    twice = entry("twice", model(tmp_path, "twice"))
    several = model(tmp_path, "several/one").parent
    model(tmp_path, "several/two")
    wrong = [entry("git", "https://host/x.git"), entry("none", tmp_path / "none"), entry("../up", "x"), twice, twice]
    file.write_text(json.dumps([*wrong, entry("several", several), entry("good", model(tmp_path, "good"))]))
    models.fetch()
    failures = models.failures()
    assert models.names() == ["good"]
    assert failures["twice"] == "model is listed twice"
    assert "clone it, and serve that folder" in failures["git"]
    assert "holds one, two, and no single model" in failures["several"]
    assert failures["none"] == f"failed to stat file {tmp_path / 'none'}"
    assert "../up" in failures
    repository = Repository([], stores=[models])
    listing = repository.read()
    assert (listing.absent, "twice" in listing.names) == (failures, True)
    with pytest.raises(RepositoryError, match="clone it, and serve that folder"):
        repository.find("git")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no list of models"),
        ("{}", "no list of models"),
        ('[{"modelName": "a"}]', "modelSpec"),
        ('[{"modelName": 1, "modelSpec": {"storageUri": "x"}}]', "modelName"),
        (json.dumps([entry("a", "x")] * 10_001), "10001 models, and 10000 are allowed"),
    ],
    ids=["empty", "no list", "no address", "no name", "too long"],
)
def test_what_is_no_list_is_refused(file: Path, text: str, message: str) -> None:
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(RepositoryError, match=message):
        read_model_list(file)


def test_fields_of_newer_releases_are_passed_over(file: Path) -> None:
    file.parent.mkdir()
    newer = entry("a", "x")
    newer["modelSpec"]["newer"] = newer["newer"] = {"deep": [1]}
    file.write_text(json.dumps([newer]))
    assert read_model_list(file).addresses == {"a": "x"}
