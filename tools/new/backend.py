"""A backend in Python: its class, its name in the registry, its test; or a package of its own with all of it."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from names import camel, template, word
from plan import Plan, Refused

REGISTRY = "python/alipes/backends/registry.py"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the recipe's arguments."""
    parser.add_argument("name", help="what configurations say: backend: NAME")
    parser.add_argument("--package", type=Path, metavar="DIR", help="write an installable package into this folder")


def plan(plan: Plan, options: argparse.Namespace) -> None:
    """Plans the files."""
    name = word(options.name, "backend")
    registry = plan.text(REGISTRY)
    if f'"{name}"' in registry and (options.package is None or f'        "{name}": ' in registry):
        raise Refused(f"{REGISTRY} has a backend '{name}' already")
    if options.package is None:
        _in_the_checkout(plan, name)
    else:
        _as_a_package(plan, name, options.package.absolute())


def _in_the_checkout(plan: Plan, name: str) -> None:
    folder, made = f"python/alipes/backends/{name}", f"{camel(name)}Backend"
    module = f"alipes.backends.{name}.backend"
    if plan.exists(folder) or plan.exists(f"{folder}.py"):
        raise Refused(f"python/alipes/backends has a module '{name}' already")
    plan.create(f"{folder}/__init__.py", f'"""The backend `{name}`."""\n')
    plan.create(f"{folder}/backend.py", template("backend.txt", name=name, made=made))
    test = f"tests/unit/backends/test_{name}_backend.py"
    plan.create(
        test, template("backend_test.txt", name=name, imports=_imports(f"from {module} import {made}"), made=made)
    )
    plan.insert_sorted(REGISTRY, f"from {module} import {made}", like=r"from (alipes[\w.]*) import .*")
    plan.insert_sorted(
        REGISTRY,
        f'"{name}": {made},',
        like=r'("\w+"): \w+,',
        inside=("OFFERED: Mapping[str, type[Backend]] = MappingProxyType(", "{"),
    )
    plan.then(f"make t T={test}")
    plan.then("a platform or a model file of its own: a row in python/alipes/config/model_files.py")
    plan.then(
        "an engine of its own: a folder in crates/engine/src, a variant of EngineSpec in crates/spec/src/engine.rs"
    )


def _as_a_package(plan: Plan, name: str, folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Refused(f"{folder} exists already and is no empty folder")
    package, made = f"alipes_{name}", f"{camel(name)}Backend"
    values = {"name": name, "made": made, "package": package, "distribution": package.replace("_", "-")}
    plan.create(f"{folder}/pyproject.toml", template("pyproject.txt", **values))
    plan.create(f"{folder}/src/{package}/__init__.py", f'"""The backend `{name}` of alipes."""\n')
    plan.create(f"{folder}/src/{package}/py.typed", "")
    plan.create(f"{folder}/src/{package}/backend.py", template("backend.txt", **values))
    imports = _imports(f"from {package}.backend import {made}")
    plan.create(f"{folder}/tests/test_{name}_backend.py", template("backend_test.txt", imports=imports, **values))
    plan.then(f"pip install -e {folder} in the environment of the server, and start the server again")
    plan.then(f"pytest {folder}")


def _imports(own: str) -> str:
    """The imports of a test, sorted as ruff sorts them."""
    lines = [own, *_TEST_IMPORTS]
    return "\n".join(sorted(lines, key=lambda line: re.findall(r"[\w.]+", line)[1]))


_TEST_IMPORTS = (
    "from alipes.backends.base import Draft",
    "from alipes.backends.prepare import LoadPlan, prepare_version",
    "from alipes.backends.registry import backend_of",
    "from alipes.config.load import parse_flags",
    "from alipes.config.poll import poll_model",
    "from alipes.errors import ConfigError",
)
