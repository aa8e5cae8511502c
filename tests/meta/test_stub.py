"""The stub of the extension module says what the binary offers."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import alipes
import pytest
from alipes import _core
from support.syntax import syntax_tree

STUB = Path(alipes.__file__).with_name("_core.pyi")
TREE = syntax_tree(STUB)


def functions(body: list[ast.stmt]) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def members(body: list[ast.stmt]) -> set[str]:
    """Public methods and constants of a class; an overloaded method is one."""
    constants = {
        node.target.id for node in body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return {name for name in {*functions(body), *constants} if not name.startswith("_")}


CLASSES = {node.name: node for node in TREE.body if isinstance(node, ast.ClassDef)}
FUNCTIONS = functions(TREE.body)


def public(thing: object) -> set[str]:
    return {name for name in vars(thing) if not name.startswith("_")}


def parameters(node: ast.FunctionDef) -> list[tuple[str, bool]]:
    """Name, and whether it has a default, without ``self``."""
    names = [argument.arg for argument in node.args.args]
    defaults = [False] * (len(names) - len(node.args.defaults)) + [True] * len(node.args.defaults)
    return [pair for pair in zip(names, defaults, strict=True) if pair[0] not in ("self", "cls")]


def real_parameters(function: object) -> list[tuple[str, bool]]:
    found = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    return [(p.name, p.default is not p.empty) for p in found if p.name != "self"]


def test_the_binary_and_the_stub_offer_the_same_names() -> None:
    assert public(_core) == {*CLASSES, *FUNCTIONS}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_takes_what_the_stub_says(name: str) -> None:
    assert real_parameters(getattr(_core, name)) == parameters(FUNCTIONS[name])


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_a_class_has_what_the_stub_says(name: str) -> None:
    assert public(getattr(_core, name)) == members(CLASSES[name].body)


@pytest.mark.parametrize(
    ("owner", "name"),
    [(c, f) for c in sorted(CLASSES) for f, node in functions(CLASSES[c].body).items() if not node.decorator_list],
)
def test_a_method_takes_what_the_stub_says(owner: str, name: str) -> None:
    real = getattr(_core, owner)
    assert real_parameters(real if name == "__new__" else getattr(real, name)) == parameters(
        functions(CLASSES[owner].body)[name]
    )


@pytest.mark.proof
@pytest.mark.slow("mypy reads the whole package")
@pytest.mark.timeout(600)  # mypy reads the whole package first, on a busy machine for minutes
def test_mypy_finds_no_difference() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "alipes._core"],
        capture_output=True,
        text=True,
        check=False,
        cwd=STUB.parents[2],
    )
    assert run.returncode == 0, run.stdout + run.stderr
