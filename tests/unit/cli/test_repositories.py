"""`alipes repo`: what is printed of a repository, and what is put into it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command import alipes, alipes_process, check_readable
from support.models import add_model, times

_MODEL = """
class TritonPythonModel:
    def execute(self, requests):
        return []
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "double.onnx"
    path.write_bytes(times(2.0).SerializeToString())
    return path


def test_a_repository_is_listed_with_what_is_wrong(repository: Path) -> None:
    add_model(repository, "double", versions=(1, 2))
    (repository / "late").mkdir()
    done = alipes("repo", "list", str(repository))
    assert (done.code, done.err) == (0, "")
    assert done.rows[:3] == [
        ["model", "kind", "versions"],
        ["double", "onnxruntime", "1,", "2"],
        ["late", "-", "-"],
    ]
    assert done.out.splitlines()[-1] == "late: put the model's file at late/1/model.onnx: it has no version"


def test_a_check_fails_where_something_is_wrong(repository: Path) -> None:
    add_model(repository, "double")
    assert [alipes("repo", verb, str(repository), "--check").code for verb in ("list", "tree")] == [0, 0]
    (repository / "late").mkdir()
    assert [alipes("repo", verb, str(repository), "--check").code for verb in ("list", "tree")] == [1, 1]


def test_a_listing_is_json_for_programs(repository: Path) -> None:
    add_model(repository, "double")
    (repository / "stray.pt").touch()
    document = json.loads(alipes("repo", "list", str(repository), "--json").out)
    assert document["models"] == [{"name": "double", "kind": "onnxruntime", "versions": [1]}]
    assert [problem["path"] for problem in document["problems"]] == ["stray.pt"]


def test_a_tree_says_beside_a_folder_what_is_missing(repository: Path) -> None:
    add_model(repository, "double")
    (repository / "late" / "1").mkdir(parents=True)
    lines = alipes("repo", "tree", "models", folder=repository.parent).out.splitlines()
    assert lines == [
        "models/",
        "├── double/",
        "│   └── 1/",
        "│       └── model.onnx",
        "└── late/",
        "    └── 1/  <- put model.onnx or model.py into it: it has no model",
    ]


def test_a_tree_counts_the_files_of_a_large_folder(repository: Path) -> None:
    folder = add_model(repository, "double")
    for number in range(100):
        (folder / "1" / f"weights{number:03}").touch()
    lines = alipes("repo", "tree", str(repository)).out.splitlines()
    assert len(lines) < 30
    assert "... 101 files in all" in lines[-1]


def test_a_file_is_added_as_the_next_version(file: Path, tmp_path: Path) -> None:
    for version in (1, 2):
        done = alipes("repo", "add", "models", file.name, folder=tmp_path)
        assert (done.code, done.err) == (0, "")
        assert done.out == f"added models/double/{version}/model.onnx\nserve it with: alipes serve models\n"
    assert 'name: "X"' in (tmp_path / "models" / "double" / "config.pbtxt").read_text()


def test_models_that_are_broken_do_not_disturb_another(file: Path, tmp_path: Path) -> None:
    add_model(tmp_path / "models", "broken", config="max_batch_sise: 8")
    done = alipes_process("repo", "add", "models", file.name, folder=tmp_path)
    assert (done.code, done.err) == (0, "")
    done = alipes("repo", "add", "models", file.name, "--name=broken", folder=tmp_path)
    assert (done.code, "first, or choose a --name" in done.err) == (1, True)


def test_the_name_and_the_version_can_be_chosen(file: Path, tmp_path: Path) -> None:
    done = alipes("repo", "add", "models", str(file), "--name=twice", "--model-version=7", folder=tmp_path)
    assert done.out.startswith("added models/twice/7/model.onnx\n")


def test_a_file_called_model_gives_its_model_the_name_of_its_folder(tmp_path: Path) -> None:
    add_model(tmp_path / "old", "double")
    done = alipes("repo", "add", "models", "old/double/1/model.onnx", folder=tmp_path)
    assert done.out.startswith("added models/double/1/model.onnx\n")


@pytest.mark.parametrize("source", ["louder.py", "louder"])
def test_a_model_in_python_is_added_with_what_lies_beside_it(source: str, tmp_path: Path) -> None:
    (tmp_path / "louder").mkdir()
    (tmp_path / "louder" / "model.py").write_text(_MODEL)
    (tmp_path / "louder" / "words.txt").touch()
    (tmp_path / "louder.py").write_text(_MODEL)
    done = alipes("repo", "add", "models", source, folder=tmp_path)
    assert done.out.startswith("added models/louder/1/model.py\n")
    assert (tmp_path / "models" / "louder" / "1" / "words.txt").exists() == (source == "louder")


@pytest.mark.parametrize(
    ("words", "mend"),
    [
        (["repo", "list", "modles"], "did you mean models?"),
        (["repo", "list", "elsewhere"], "alipes repo add"),
        (["repo", "tree", "double.onnx"], "name the folder that holds the models"),
        (["repo", "add", "models", "doubel.onnx"], "did you mean double.onnx?"),
        (["repo", "add", "models", "forest.joblib"], "--allow-pickles=MODEL"),
        (["repo", "add", "models", "net.keras"], "copy net.keras to net/1/model.keras in the repository"),
        (["repo", "add", "models", "notes.txt"], "name a .onnx file, a model.py"),
        (["repo", "add", "models", "function.py"], "write a class TritonPythonModel"),
        (["repo", "add", "models", "broken.onnx"], "ONNX Runtime cannot load the file"),
        (["repo", "add", "models", "model.py", "--name=known"], "choose another --name"),
        (["repo", "add", "models", "double.onnx", "--name=a/b"], "invalid model name"),
    ],
)
def test_a_mistake_is_named_with_its_mend(words: list[str], mend: str, file: Path, tmp_path: Path) -> None:
    add_model(tmp_path / "models", "known")
    for name in ("forest.joblib", "net.keras", "notes.txt", "broken.onnx"):
        (tmp_path / name).write_text("no model")
    (tmp_path / "function.py").write_text("def louder(x):\n    return 2 * x\n")
    (tmp_path / "model.py").write_text(_MODEL)
    done = alipes(*words, folder=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert mend in " ".join(done.err.split())
    check_readable(done)
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["known"]
    assert not (tmp_path / "modles").exists()
