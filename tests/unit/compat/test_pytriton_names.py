"""Scripts of PyTriton find the names that they import, on request alone, and whoever has PyTriton keeps it."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from alipes.compat.rows import Absent
from alipes.errors import NotOffered

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from alipes.compat import pytriton
    from alipes.compat.pytriton.names import MODULES

ROWS = [(module, name) for module, row in MODULES.items() for name in (row.names if isinstance(row, Absent) else row)]
ABSENT = [
    (module, name)
    for module, name in ROWS
    if isinstance(row := MODULES[module], Absent) or isinstance(row[name], Absent)
]


@pytest.fixture(autouse=True)
def names() -> Iterator[None]:
    pytriton.install()
    yield
    pytriton.uninstall()


@pytest.mark.parametrize(("module", "name"), ROWS, ids=lambda value: value)
def test_every_name_can_be_imported(module: str, name: str) -> None:
    found = import_module(module)
    assert getattr(found, name) is not None
    assert name in dir(found)


@pytest.mark.parametrize("module", MODULES)
def test_every_module_can_be_imported(module: str) -> None:
    space: dict[str, object] = {}
    exec(f"import {module}", space)
    assert "pytriton" in space


@pytest.mark.parametrize(("module", "name"), ABSENT, ids=lambda value: value)
def test_what_is_not_offered_says_so_on_use(module: str, name: str) -> None:
    with pytest.raises(NotOffered, match=rf"{module}\.{name} is not offered: "):
        getattr(import_module(module), name)()


def test_the_package_has_its_modules_and_its_release() -> None:
    space: dict[str, object] = {}
    exec("import pytriton\nfound = pytriton.triton.Triton, pytriton.client.ModelClient, pytriton.__version__", space)
    assert space["found"][2] == "0.7.0"  # type: ignore[index]
    exec("import pytriton.client\nfrom pytriton import model_config\nfound = model_config.Tensor", space)


def run(code: str, folder: Path, *way: str, path: str = "") -> str:
    """What a script prints, or its error."""
    file = folder / "script.py"
    file.write_text(code)
    environment = {"PYTHONPATH": path} if path else None
    done = subprocess.run(
        [sys.executable, *way, str(file)], capture_output=True, text=True, check=False, env=environment
    )
    return done.stdout + done.stderr


def test_names_are_there_on_request_alone(tmp_path: Path) -> None:
    code = "from pytriton.triton import Triton; print(Triton.__module__)"
    assert "No module named 'pytriton'" in run(f"import alipes; {code}", tmp_path)
    assert run(f"import alipes.compat.pytriton; {code}", tmp_path).strip() == "alipes.compat.pytriton.triton"
    assert run(code, tmp_path, "-m", "alipes.compat", "pytriton").strip() == "alipes.compat.pytriton.triton"


def test_an_installed_pytriton_comes_first(tmp_path: Path) -> None:
    (tmp_path / "site" / "pytriton").mkdir(parents=True)
    (tmp_path / "site" / "pytriton" / "__init__.py").write_text("mark = 'theirs'\n")
    printed = run(
        "import alipes.compat.pytriton, pytriton; print(pytriton.mark)", tmp_path, path=str(tmp_path / "site")
    )
    assert "theirs" in printed
    assert "RuntimeWarning: a package 'pytriton' is installed" in printed
