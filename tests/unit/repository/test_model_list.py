"""Models that a file lists, in the form of KServe's `models.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alipes.errors import RepositoryError
from alipes.repository.model_list import ModelList
from alipes.repository.model_list_file import read_model_list
from alipes.repository.repository import Repository
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


def names_after(models: ModelList) -> list[str]:
    models.refresh()
    return models.names()


def test_what_a_list_has_at_the_start_is_there(models: ModelList, file: Path, tmp_path: Path) -> None:
    file.write_text(json.dumps([entry("b", model(tmp_path, "b")), entry("a", f"file://{model(tmp_path, 'a')}")]))
    models.refresh()
    assert models.names() == []  # the start alone begins to fetch
    models.fetch()
    assert models.names() == ["a", "b"]
    folder = models.folder_of("a")
    assert folder is not None
    assert next(folder.glob("1/*")).read_text() == "a"


def test_changes_are_followed(models: ModelList, file: Path, tmp_path: Path) -> None:
    first, second = model(tmp_path, "first"), model(tmp_path, "second")
    models.fetch()  # there is no list yet
    with pytest.raises(RepositoryError, match="No such file"):
        models.refresh()
    file.write_text(json.dumps([entry("a", first), entry("gone", first)]))
    until(lambda: names_after(models) == ["a", "gone"], "both are fetched")
    file.write_text(json.dumps([entry("a", second)]))
    until(lambda: names_after(models) == ["a"], "one left, the other lies elsewhere")
    folder = models.folder_of("a")
    assert folder is not None
    assert next(folder.glob("1/*")).read_text() == "second"


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
