"""Several repository paths read as one list of models."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from alipes.errors import RepositoryError
from alipes.repository.repository import NotAFolder, Repository
from alipes.repository.stamp import ABSENT
from alipes.types import ModelKey


def make(tmp_path: Path, **repositories: tuple[str, ...]) -> list[Path]:
    for repository, models in repositories.items():
        for model in models:
            (tmp_path / repository / model).mkdir(parents=True)
    return [tmp_path / name for name in repositories]


def test_models_of_all_repositories_are_listed_by_name(tmp_path: Path) -> None:
    listing = Repository(make(tmp_path, one=("b", "d"), two=("a", "c"))).read()
    assert listing.names == ("a", "b", "c", "d")
    assert listing.folders[ModelKey("a")].path == tmp_path / "two" / "a"
    assert listing.duplicates == frozenset()


def test_a_name_in_two_repositories_can_be_served_from_neither(tmp_path: Path) -> None:
    repository = Repository(make(tmp_path, one=("a", "b"), two=("b",)))
    listing = repository.read()
    assert (list(listing.folders), listing.duplicates, listing.names) == ([ModelKey("a")], {"b"}, ("a", "b"))
    with pytest.raises(RepositoryError, match="failed to poll model 'b': not unique across all model repositories"):
        repository.find("b")


def test_a_repeated_path_counts_once(tmp_path: Path) -> None:
    (path,) = make(tmp_path, one=("a",))
    assert Repository([path, str(path)]).read().duplicates == frozenset()


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, one=("a",))
    monkeypatch.chdir(tmp_path)
    assert [folder.path for folder in Repository(["one"]).find("a")] == [tmp_path / "one" / "a"]


def test_an_absent_repository_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match=f"failed to stat file {tmp_path}/nowhere"):
        Repository([tmp_path / "nowhere"])


def test_a_file_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotAFolder, match=f"repository path is not a valid directory: {tmp_path}/file"):
        Repository([tmp_path / "file"])


def test_one_path_that_is_there_is_enough_where_one_is_needed(tmp_path: Path) -> None:
    (one,) = make(tmp_path, one=("a",))
    repository = Repository([tmp_path / "two", one], need="one")
    listing = repository.read()
    assert listing.names == ("a",)
    assert listing.unreadable == {
        str(tmp_path / "two"): f"failed to open directory {tmp_path}/two: No such file or directory"
    }
    assert [folder.path for folder in repository.find("a")] == [one / "a"]
    with pytest.raises(RepositoryError, match=f"failed to stat file {tmp_path}/two"):
        Repository([tmp_path / "two"], need="one")


def test_a_path_that_comes_later_is_read_like_the_others(tmp_path: Path) -> None:
    repository = Repository([tmp_path / "one"], need="none")
    before = repository.stamp()
    with pytest.raises(RepositoryError, match=f"not found in any model repository. '{tmp_path}/one' cannot be read"):
        repository.find("a")
    make(tmp_path, one=("a",))
    assert repository.stamp() != before
    listing = repository.read()
    assert (listing.names, listing.unreadable) == (("a",), {})
    assert [folder.path for folder in repository.find("a")] == [tmp_path / "one" / "a"]


def test_what_is_gone_holds_nothing_what_is_unreadable_what_it_held(tmp_path: Path) -> None:
    one, two, three = make(tmp_path, one=("a",), two=("b",), three=("c",))
    repository = Repository([one, two, three])
    repository.read()
    one.rename(tmp_path / "elsewhere")
    two.rename(tmp_path / "unmounted")
    two.symlink_to(two)  # nobody can read a link to itself, whatever they may do
    listing = repository.read()
    assert (listing.names, set(listing.unreadable)) == (("b", "c"), {str(one), str(two)})


def test_an_unknown_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="failed to poll model 'x': model not found in any model repository"):
        Repository(make(tmp_path, one=("a",))).find("x")


def test_a_name_does_not_lead_out_of_the_repository(tmp_path: Path) -> None:
    one, _ = make(tmp_path, one=("a",), two=("b",))
    with pytest.raises(RepositoryError, match="invalid model name"):
        Repository([one]).find("../two/b")


def test_the_stamp_changes_when_a_model_comes(tmp_path: Path) -> None:
    (path,) = make(tmp_path, one=("a",))
    repository = Repository([path])
    os.utime(path, ns=(1, 1))  # long ago, however coarse the file system's clock is
    before = repository.stamp()
    assert repository.stamp() == before
    (path / "b").mkdir()
    assert repository.stamp() != before


def test_with_namespaces_a_name_may_stand_in_several_repositories(tmp_path: Path) -> None:
    one, two = make(tmp_path, one=("a", "b"), two=("b",))
    repository = Repository([one, two], namespacing=True)
    listing = repository.read()
    assert (list(listing.folders), listing.duplicates) == (
        [ModelKey("a", str(one)), ModelKey("b", str(one)), ModelKey("b", str(two))],
        frozenset(),
    )
    assert listing.names == ("a", "b")
    assert [folder.path for folder in repository.find("b")] == [one / "b", two / "b"]


def test_links_in_a_circle_hide_nothing_else(tmp_path: Path) -> None:
    (path,) = make(tmp_path, one=("a",))
    for place in (path, path / "a"):
        (place / "7").symlink_to("8")
        (place / "8").symlink_to("7")
    (path / "a" / "1").mkdir()
    repository = Repository([path])
    assert repository.read().names == ("a",)
    (folder,) = repository.find("a")
    before = folder.stamp()
    assert before != ABSENT
    assert folder.scan_versions().versions == (1,)
    (folder.path / "1" / "more").write_text("x")
    assert folder.stamp() != before
    with pytest.raises(RepositoryError, match="failed to poll model '7': model not found"):
        repository.find("7")


@pytest.mark.parametrize("name", ["m" * 256, "m" * 5_000_000, "\u00fc" * 128])
def test_a_name_that_no_folder_can_have_is_refused_in_few_words(tmp_path: Path, name: str) -> None:
    with pytest.raises(RepositoryError, match="expected at most 255 bytes") as refused:
        Repository(make(tmp_path, one=("a",))).find(name)
    assert len(str(refused.value)) < 200


def test_a_folder_whose_name_is_no_text_is_no_model(tmp_path: Path) -> None:
    (path,) = make(tmp_path, one=("a",))
    (path / "b-\udcff").mkdir()
    (path / "a" / "1-\udcff").mkdir()
    repository = Repository([path])
    listing = repository.read()
    assert (listing.names, listing.nameless) == (("a",), {str(path / "b-\udcff")})
    assert repository.find("a")[0].scan_versions().versions == ()
    with pytest.raises(RepositoryError, match="model repository path is not UTF-8: "):
        Repository([path / "b-\udcff"])


@pytest.mark.parametrize(("asked", "hint"), [("digit", " Did you mean 'digits'?"), ("letters", "")])
def test_a_misspelt_name_is_refused_with_the_nearest_one(tmp_path: Path, asked: str, hint: str) -> None:
    repository = Repository(make(tmp_path, one=("noise", "window"), two=("digits",)))
    repository.read()
    with pytest.raises(RepositoryError) as refused:
        repository.find(asked)
    assert str(refused.value) == f"failed to poll model '{asked}': model not found in any model repository.{hint}"


@pytest.mark.parametrize("file", ["config.pbtxt", "1/model.onnx", "12/model.py"])
def test_the_folder_of_a_model_is_known_from_a_repository(tmp_path: Path, file: str) -> None:
    one, two = make(tmp_path, one=("digits", "1"), two=("a",))
    (two / "README.md").write_text("")
    (one / "digits" / file).parent.mkdir(exist_ok=True)
    (one / "digits" / file).write_text("")
    (one / "1" / "1").mkdir()
    (one / "1" / "config.pbtxt").write_text("")
    assert Repository([one, two]).mistakes() == ()
    (mistake,) = Repository([two, one / "digits"]).mistakes()
    assert mistake.startswith(
        f"serve its parent: alipes serve {one} (model repository '{one}/digits' looks like the folder of one model;"
    )
    assert mistake.endswith("--load-model=digits serves it alone)")


def test_a_file_address_is_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "my models"
    folder.mkdir()
    for address in (f"file://{folder}", f"file://localhost{folder}", f"file://{tmp_path}/my%20models"):
        assert Repository([address, folder]).paths == (folder,)


@pytest.mark.parametrize(
    "address", ["hf://org/model", "http://host/models", "https://host/models", "oci://host/models"]
)
def test_a_scheme_that_is_not_offered_names_those_that_are(address: str) -> None:
    with pytest.raises(RepositoryError) as caught:
        Repository([address])
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{address.partition(':')[0]}:// is not offered")
    assert "gs://, s3:// or az://" in line
    assert "alipes[gcs]" in line


@pytest.mark.parametrize("scheme", ["as", "azure", "wasb", "wasbs"])
def test_another_scheme_for_azure_names_ours(scheme: str) -> None:
    with pytest.raises(RepositoryError, match=rf"^say az://.*'alipes\[azure\]'.*: {scheme}:// is not offered$"):
        Repository([f"{scheme}://account/container"])
