"""What a model that cannot be loaded is refused with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alipes.worker.loading import LoadError, load_class, require_numpy, start_model

WORKS = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"


@pytest.fixture(autouse=True)
def clean_imports() -> Iterator[None]:
    """A worker is a process of its own; here its traces are removed."""
    modules, path, hooks = set(sys.modules), list(sys.path), list(sys.path_hooks)
    yield
    for name in set(sys.modules) - modules:
        del sys.modules[name]
    sys.path[:] = path
    sys.path_hooks[:] = hooks
    sys.path_importer_cache.clear()


def write(folder: Path, text: str) -> Path:
    file = folder / "m" / "1" / "model.py"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def refusal(folder: Path, text: str) -> str:
    file = write(folder, text)
    with pytest.raises(LoadError) as caught:
        start_model(load_class(file, file.parent), file, {})
    return str(caught.value).replace(str(folder), "FOLDER")


def test_an_import_that_fails(tmp_path: Path) -> None:
    assert refusal(tmp_path, f"import module_that_is_not_there\n{WORKS}") == (
        "ModuleNotFoundError: No module named 'module_that_is_not_there'\n\nAt:\n  FOLDER/m/1/model.py(1): <module>\n"
    )


def test_a_file_that_is_no_python(tmp_path: Path) -> None:
    text = refusal(tmp_path, "VALUE = 1\nclass TritonPythonModel(:\n    pass\n")
    assert text.startswith(
        "SyntaxError: invalid syntax (model.py, line 2)\n\nAt:\n  FOLDER/m/1/model.py(2): <module>\n"
    )


def test_a_neighbour_that_is_no_python_is_named(tmp_path: Path) -> None:
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "helper.py").write_text("(")
    (tmp_path / "m" / "1" / "model.py").write_text(f"import helper\n{WORKS}")
    file = tmp_path / "m" / "1" / "model.py"
    with pytest.raises(LoadError, match=r"SyntaxError: .*\(helper.py, line 1\)\n\nAt:\n  .*model.py\(1\): <module>\n"):
        load_class(file, file.parent)


def test_a_file_without_the_class(tmp_path: Path) -> None:
    assert refusal(tmp_path, "VALUE = 1\n") == (
        "Python model file FOLDER/m/1/model.py does not define a class `TritonPythonModel`."
    )


def test_a_class_without_execute(tmp_path: Path) -> None:
    assert refusal(tmp_path, "class TritonPythonModel:\n    def initialize(self, args):\n        pass\n") == (
        "Python model file FOLDER/m/1/model.py does not implement `execute` method."
    )


def test_an_execute_that_initialize_sets_is_enough(tmp_path: Path) -> None:
    file = write(tmp_path, "class TritonPythonModel:\n    def initialize(self, args):\n        self.execute = print\n")
    assert start_model(load_class(file, file.parent), file, {}).execute is print


def test_an_initialize_that_raises(tmp_path: Path) -> None:
    text = "class TritonPythonModel:\n    def initialize(self, args):\n        raise RuntimeError('cannot start')\n"
    assert refusal(tmp_path, text) == ("RuntimeError: cannot start\n\nAt:\n  FOLDER/m/1/model.py(3): initialize\n")


def test_a_constructor_that_raises(tmp_path: Path) -> None:
    text = "class TritonPythonModel:\n    def __init__(self):\n        raise RuntimeError('cannot be')\n"
    assert refusal(tmp_path, text) == "RuntimeError: cannot be\n\nAt:\n  FOLDER/m/1/model.py(3): __init__\n"


def test_a_file_that_ends_the_program_is_refused_like_any_other(tmp_path: Path) -> None:
    assert refusal(tmp_path, "raise SystemExit(0)\n") == "SystemExit: 0\n\nAt:\n  FOLDER/m/1/model.py(1): <module>\n"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    folder = tmp_path / "m" / "1"
    folder.mkdir(parents=True)
    with pytest.raises(LoadError, match=f"FileNotFoundError: .*{folder}/model.py"):
        load_class(folder / "model.py", folder)


def test_the_arguments_reach_initialize(tmp_path: Path) -> None:
    file = write(tmp_path, f"{WORKS}\n    def initialize(self, args):\n        self.args = args\n")
    assert start_model(load_class(file, file.parent), file, {"model_name": "m"}).args == {"model_name": "m"}


def test_a_python_without_numpy_gets_the_command_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(LoadError, match=f"numpy is not installed for {sys.executable} .*-m pip install numpy"):
        require_numpy("m")
