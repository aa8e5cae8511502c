"""A repository that is written to: its models, what is broken in it, and what removing leaves."""

from __future__ import annotations

import copy
import io
import shutil
import sys
from pathlib import Path

import pytest
from alipes import repository as qv
from alipes.errors import ConfigError, RepositoryError, RepositoryUseError
from support.exported import scaled


@pytest.fixture
def repo(tmp_path: Path) -> qv.ModelRepository:
    return qv.ModelRepository(tmp_path / "repo")


def exported(repo: qv.ModelRepository, name: str = "m") -> qv.Model:
    model = repo.add(name, qv.Platform.ONNX)
    model.export_version(scaled())
    return model


def test_a_missing_root_is_made_and_empty(tmp_path: Path) -> None:
    repo = qv.ModelRepository(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()
    assert repo.models == {}
    assert str(repo.fs) == str(tmp_path / "a" / "b")


def test_an_added_model_is_the_one_that_is_found(repo: qv.ModelRepository) -> None:
    model = repo.add("my-classifier", platform=qv.Platform.ONNX)
    assert len(repo.models) == 1
    assert model == repo.models["my-classifier"]
    assert repo.models is not repo.models
    assert model.versions == []


def test_a_platform_may_be_a_word(repo: qv.ModelRepository) -> None:
    assert repo.add("a", "onnx").platform is repo.add("b", "ONNX").platform is qv.Platform.ONNX
    assert repo.add("c", "onnxruntime_onnx").platform is qv.Platform.ONNX
    with pytest.raises(RepositoryUseError, match="there is no platform 'onx'; there are 'onnx', "):
        repo.add("d", "onx")
    assert sorted(repo.models) == ["a", "b", "c"]


def test_a_missing_name_is_named_beside_those_there_are(repo: qv.ModelRepository) -> None:
    classifier = repo.add("classifier", platform=qv.Platform.ONNX)
    repo.add("whitener", platform=qv.Platform.ONNX)
    with pytest.raises(KeyError, match="has no model 'whitner'; it has 'whitener', 'classifier'"):
        repo.models["whitner"]
    with pytest.raises(KeyError, match="model 'classifier' has no output 'probs'; it has none"):
        classifier.outputs["probs"]
    classifier.export_version(scaled("x", "prob"))
    with pytest.raises(KeyError, match="model 'classifier' has no output 'probs'; it has 'prob'"):
        classifier.outputs["probs"]
    with pytest.raises(KeyError, match="model 'classifier' has no input 'hoft'; it has 'x'"):
        classifier.inputs["hoft"]
    assert classifier.outputs == {"prob": classifier.outputs["prob"]}
    assert copy.copy(classifier.inputs).keys() == {"x"}


def test_adding_what_is_there_gives_the_model_that_is_there(repo: qv.ModelRepository) -> None:
    model = repo.add("m", qv.Platform.ONNX)
    assert repo.add("m", "onnx") is model
    model.export_version(scaled())
    assert repo.add("m", platform="onnx") is model
    again = qv.ModelRepository(str(repo.fs)).add("m", "onnx")
    assert (again.versions, list(again.inputs)) == ([1], ["x"])
    assert again.export_version(scaled()) == "m/2/model.onnx"


def test_another_platform_under_a_name_says_which_it_has(repo: qv.ModelRepository) -> None:
    repo.add("m", qv.Platform.ONNX)
    message = (
        rf'Model m already exists in {repo.fs} as ONNX, not PYTHON: add it with platform="onnx", take another name, '
        r'or call remove\("m"\) first$'
    )
    with pytest.raises(RepositoryUseError, match=message):
        repo.add("m", "python")
    exported(repo, "written")
    with pytest.raises(RepositoryUseError, match=r"already exists in .* as ONNX, not ENSEMBLE"):
        qv.ModelRepository(str(repo.fs)).add("written", "ensemble")


def test_a_repository_is_a_path_and_has_its_models_by_name(repo: qv.ModelRepository) -> None:
    model = exported(repo)
    assert repo["m"] is model
    assert "m" in repo
    assert "n" not in repo
    assert list(repo) == ["m"]
    assert list(qv.ModelRepository(repo)) == ["m"]
    with pytest.raises(KeyError, match="has no model 'n'; it has 'm'"):
        repo["n"]


def test_a_name_is_added_once_unless_forced(repo: qv.ModelRepository) -> None:
    repo.add("a.b", qv.Platform.ONNX)
    repo.add("axb_0", qv.Platform.ONNX)
    assert [repo.add("a.b", qv.Platform.ONNX, force=True).name for _ in range(3)] == ["a.b_0", "a.b_1", "a.b_2"]
    repo.remove("a.b_1")
    assert repo.add("a.b", qv.Platform.ONNX, force=True).name == "a.b_1"
    exported(repo, "c_0")
    other = qv.ModelRepository(str(repo.fs))
    other.add("c", "python")
    assert other.add("c", "python", force=True).name == "c_1"


def test_nothing_is_on_disk_before_the_first_export(repo: qv.ModelRepository, caplog: pytest.LogCaptureFixture) -> None:
    model = repo.add("m", qv.Platform.ONNX)
    assert list(Path(str(repo.fs)).iterdir()) == []
    assert model.is_new
    repo.refresh()
    assert repo.models["m"] is model
    repo.remove("m")
    assert (repo.models, caplog.text) == ({}, "")
    assert not exported(repo).is_new


@pytest.mark.parametrize("word", ["onnx", "ONNX", "Onnx", "onnxruntime", "onnxruntime_onnx", qv.Platform.ONNX])
def test_a_platform_has_every_name_that_means_it_alone(word: object) -> None:
    assert qv.Platform(word) is qv.Platform.ONNX


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("onx", r"there is no platform 'onx'; there are 'onnx', "),
        ("pytorch", r"there is no platform 'pytorch'; .*: take 'onnx', .*'torchscript'.*'torchexport'"),
        ("torch", "take 'onnx'"),
        ("sklearn", "take 'onnx'"),
        ("keras", "take 'savedmodel'"),
        (None, "there is no platform None; there are "),
        (5, "there is no platform 5; there are "),
    ],
)
def test_a_wrong_platform_names_the_right_ones(repo: qv.ModelRepository, word: object, message: str) -> None:
    with pytest.raises(RepositoryUseError, match=message):
        repo.add("m", word)  # type: ignore[arg-type]
    assert repo.models == {}


def test_the_largest_batch_may_come_with_the_name(repo: qv.ModelRepository) -> None:
    model = repo.add("m", "onnx", max_batch_size=8)
    model.export_version(scaled())
    assert (model.config.max_batch_size, model.inputs["x"].shape) == (8, (None, 4))
    assert list(model.config.input[0].dims) == [4]
    assert model.config.HasField("dynamic_batching")
    assert repo.add("m", "onnx").config.max_batch_size == 8
    assert repo.add("m", "onnx", max_batch_size=0).config.max_batch_size == 0
    assert not model.config.HasField("dynamic_batching")
    assert list(model.config.input[0].dims) == [-1, 4]


@pytest.mark.parametrize("wrong", [-1, "8", 2.5, True])
def test_a_batch_of_no_such_size_is_refused_by_its_name(repo: qv.ModelRepository, wrong: object) -> None:
    with pytest.raises(ConfigError, match="max_batch_size"):
        repo.add("m", "onnx", max_batch_size=wrong)  # type: ignore[arg-type]
    assert repo.models == {}


@pytest.mark.parametrize("name", ["", " ", "../x", "a/b", ".hidden", "a\0b"])
def test_a_name_that_no_folder_can_have_is_refused(repo: qv.ModelRepository, name: str) -> None:
    with pytest.raises(RepositoryError, match="invalid model name"):
        repo.add(name, qv.Platform.ONNX)


def test_what_was_exported_is_there_when_the_repository_is_opened_again(repo: qv.ModelRepository) -> None:
    model = exported(repo)
    again = qv.ModelRepository(str(repo.fs))
    assert list(again.models) == ["m"]
    assert again.models["m"].versions == [1]
    assert str(again.models["m"].config) == str(model.config)
    assert again.broken == {}


def test_broken_entries_are_reported_and_the_others_can_be_used(repo: qv.ModelRepository) -> None:
    exported(repo, "good")
    root = Path(str(repo.fs))
    texts = {
        "wrong-name": 'name: "other" platform: "onnxruntime_onnx"',
        "wrong-platform": 'platform: "no_such_platform"',
        "unknown-field": 'platform: "onnxruntime_onnx" no_such_field: 1',
        "no-text": "\0\1",
    }
    for name, text in texts.items():
        (root / name).mkdir()
        (root / name / "config.pbtxt").write_text(text)
    (root / "stray").mkdir()
    (root / "stray" / "notes.txt").touch()
    (root / "a-file").touch()
    again = qv.ModelRepository(root)
    assert list(again.models) == ["good"]
    assert set(again.broken) == {*texts, "stray"}
    assert "both names must be the same" in again.broken["wrong-name"]
    assert "no_such_platform" in again.broken["wrong-platform"]
    assert "no_such_field" in again.broken["unknown-field"]
    again.models["good"].export_version(scaled())
    assert again.models["good"].versions == [1, 2]
    again.remove("stray")
    assert not (root / "stray").exists()


def test_an_empty_folder_is_no_trouble(repo: qv.ModelRepository) -> None:
    Path(str(repo.fs), "reserved").mkdir()
    again = qv.ModelRepository(str(repo.fs))
    assert (again.models, again.broken) == ({}, {})
    assert again.add("reserved", qv.Platform.ONNX).name == "reserved"


def test_a_model_without_configuration_is_known_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "bare" / "3").mkdir(parents=True)
    (tmp_path / "bare" / "3" / "model.onnx").write_bytes(scaled().SerializeToString())
    (tmp_path / "code" / "1").mkdir(parents=True)
    (tmp_path / "code" / "1" / "model.py").touch()
    repo = qv.ModelRepository(tmp_path)
    assert {name: model.platform for name, model in repo.models.items()} == {
        "bare": qv.Platform.ONNX,
        "code": qv.Platform.PYTHON,
    }
    repo.models["bare"].export_version(scaled())
    assert repo.models["bare"].versions == [3, 4]
    assert list(repo.models["bare"].inputs) == ["x"]


def test_clean_begins_with_an_empty_repository(repo: qv.ModelRepository) -> None:
    exported(repo)
    root = Path(str(repo.fs))
    (root / "a-file").touch()
    (root / "m2").mkdir()
    assert qv.ModelRepository(root, clean=True).models == {}
    assert list(root.iterdir()) == []
    assert qv.ModelRepository(root, clean=True).models == {}


def test_removing_a_model_leaves_those_whose_names_begin_alike(repo: qv.ModelRepository) -> None:
    for name in ("m", "m_0", "m2"):
        exported(repo, name)
    repo.remove("m")
    repo.remove(repo.models["m2"])
    assert list(repo.models) == ["m_0"]
    assert [path.name for path in Path(str(repo.fs)).iterdir()] == ["m_0"]
    with pytest.raises(ValueError, match="no model 'm'"):
        repo.remove("m")


def test_a_model_whose_folder_is_gone_can_still_be_removed(repo: qv.ModelRepository) -> None:
    model = exported(repo)
    shutil.rmtree(Path(str(repo.fs), "m"))
    repo.remove(model)
    assert repo.models == {}


def test_deleting_forgets_every_model(repo: qv.ModelRepository) -> None:
    for name in "abcd":
        exported(repo, name)
    repo.delete()
    assert repo.models == {}
    assert not Path(str(repo.fs)).exists()


def test_versions_are_numbers_in_their_order(repo: qv.ModelRepository) -> None:
    model = exported(repo)
    for version in (10, 2):
        model.export_version(scaled(), version=version)
    for other in ("011", "notes", "-1", "00", "0"):
        Path(str(repo.fs), "m", other).mkdir()
    assert model.versions == [0, 1, 2, 10]
    assert model.export_version(scaled()) == "m/11/model.onnx"


def test_refreshing_keeps_the_objects_and_reads_them_again(repo: qv.ModelRepository) -> None:
    model = exported(repo)
    empty = repo.add("empty", qv.Platform.ONNX)
    other = qv.ModelRepository(str(repo.fs))
    other.models["m"].config.add_instance_group("cpu", count=3)
    other.models["m"].config.write()
    other.add("new", qv.Platform.ONNX).export_version(scaled())
    repo.refresh()
    assert repo.models["m"] is model
    assert repo.models["empty"] is empty
    assert model.config.instance_group[0].count == 3
    assert set(repo.models) == {"m", "new", "empty"}


def test_a_folder_with_another_kind_of_model_is_refused(repo: qv.ModelRepository) -> None:
    other = qv.ModelRepository(str(repo.fs))
    exported(other)
    with pytest.raises(RepositoryUseError, match="already exists"):
        repo.add("m", qv.Platform.PYTHON)
    assert repo.add("m", qv.Platform.ONNX).versions == [1]


def test_a_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RepositoryError, match="cannot make the repository"):
        qv.ModelRepository(tmp_path / "file")
    with pytest.raises(RepositoryError, match="ftp://"):
        qv.ModelRepository("ftp://host/models")


def test_a_folder_says_that_it_needs_no_credentials(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert qv.ModelRepository(tmp_path, credentials="key.json").models == {}
    assert "is a folder, which needs no 'credentials'" in caplog.text


def test_the_tree_shows_folders_before_files(repo: qv.ModelRepository) -> None:
    exported(repo)
    shown = io.StringIO()
    repo.print_tree(shown)
    expected = "repo/\n    m/\n        1/\n            model.onnx\n        config.pbtxt\n"
    assert shown.getvalue() == expected
    shown = io.StringIO()
    qv.print_tree(str(repo.fs), shown)
    assert shown.getvalue() == expected.replace("repo/", f"{repo.fs}/", 1)


def test_models_of_two_repositories_are_not_the_same(tmp_path: Path) -> None:
    one, other = (qv.ModelRepository(tmp_path / name).add("m", qv.Platform.ONNX) for name in ("a", "b"))
    assert one != other
    assert len({one, other}) == 2
    assert one != "m"


def test_a_configuration_that_is_another_models_is_refused(repo: qv.ModelRepository) -> None:
    root = Path(str(repo.fs))
    (root / "m").mkdir()
    (root / "m" / "config.pbtxt").write_text('name: "n" platform: "onnxruntime_onnx"')
    with pytest.raises(ConfigError, match="both names must be the same"):
        repo.add("m", qv.Platform.ONNX)
    assert repo.models == {}


@pytest.mark.parametrize(("url", "package"), [("gs://b", "gcsfs"), ("s3://b", "s3fs"), ("az://b", "adlfs")])
def test_a_place_whose_package_is_missing_says_what_to_install(
    url: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(RepositoryError, match=rf"needs the package {package}: pip install 'alipes\["):
        qv.ModelRepository(url)
