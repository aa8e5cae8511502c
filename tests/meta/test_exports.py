"""What `import alipes` offers."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import alipes
import pytest
from alipes import errors

ROOT = Path(__file__).parents[2]


def test_every_public_name_has_a_home() -> None:
    assert sorted(alipes.__all__) == sorted(["__version__", "serve", *alipes._HOMES])


def test_every_error_is_a_public_name() -> None:
    assert set(errors.__all__) < set(alipes.__all__)


def test_what_a_reader_of_the_package_sees_is_on_the_page_of_names() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert listed == {name for name in alipes.__all__ if name not in errors.__all__} - {"__version__"} | {"AlipesError"}


@pytest.mark.parametrize("name", alipes.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(alipes, name) is not None
    assert name in dir(alipes)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        alipes.no_such_name  # noqa: B018


def test_the_version_is_that_of_the_workspace() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())
    assert alipes.__version__ == workspace["workspace"]["package"]["version"]


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(alipes.__file__).parent / "py.typed").is_file()


@pytest.mark.parametrize(
    "imports",
    [
        "from alipes import serve; from alipes.serve import launch, serve as function",
        "from alipes.serve import launch, serve as function; from alipes import serve",
        "import alipes.serve; launch, function = alipes.serve.launch, alipes.serve.serve; serve = alipes.serve",
        "from alipes.serve.context import serve as function; from alipes import launch, serve",
    ],
)
def test_serve_is_a_package_and_a_function_in_any_order_of_imports(imports: str) -> None:
    script = (
        f"{imports}; import alipes, inspect; assert alipes.launch is launch; "
        "assert inspect.signature(serve) == inspect.signature(function); serve('no such folder')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "there is no model repository at" in done.stderr.splitlines()[-1]
