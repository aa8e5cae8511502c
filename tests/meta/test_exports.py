"""What `import alipes` offers."""

from __future__ import annotations

import tomllib
from pathlib import Path

import alipes
import pytest

ROOT = Path(__file__).parents[2]


def test_every_public_name_has_a_home() -> None:
    assert sorted(alipes.__all__) == sorted(["__version__", *alipes._HOMES])


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
