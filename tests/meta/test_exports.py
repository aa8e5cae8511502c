"""What `import alipes` offers."""

from __future__ import annotations

import builtins
import pickle
import re
import subprocess
import sys
import tomllib
from operator import attrgetter
from pathlib import Path

import alipes
import pytest
from alipes import errors

ROOT = Path(__file__).parents[2]


def test_every_public_name_has_a_home() -> None:
    assert sorted(alipes.__all__) == sorted(["__version__", "serve", *alipes._HOMES])


def test_a_name_of_the_clients_alone_is_answered_with_its_place() -> None:
    with pytest.raises(AttributeError, match=r"module 'alipes' has no attribute 'Retry': write alipes\.client\.Retry$"):
        alipes.Retry  # type: ignore[attr-defined]  # noqa: B018


def test_every_error_is_a_public_name() -> None:
    assert set(errors.__all__) < set(alipes.__all__)


def test_what_a_reader_of_the_package_sees_is_on_the_page_of_names() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(listed) == sorted({*alipes.__all__} - {"__version__"})


def test_the_page_of_names_says_of_each_error_which_others_it_is() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8").partition("## Errors")[2]
    for name, bases in re.findall(r"^\| `(\w+)` \| (.*?) ?\|", page, re.MULTILINE):
        named = [getattr(alipes, base, getattr(builtins, base, None)) for base in re.findall(r"`(\w+)`", bases)]
        assert issubclass(getattr(alipes, name), tuple(named) or Exception), name
        assert all(issubclass(getattr(alipes, name), base) for base in named), name


@pytest.mark.parametrize("name", alipes.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(alipes, name) is not None
    assert name in dir(alipes)


HERE = sorted({*alipes.__all__} - {"__version__", "serve"})


@pytest.mark.parametrize("name", HERE)
def test_a_public_name_says_that_it_is_of_alipes(name: str) -> None:
    assert getattr(alipes, name).__module__ == "alipes"


@pytest.mark.parametrize("name", [*HERE, "serve.serve"])
def test_a_public_name_can_be_pickled(name: str) -> None:
    public = attrgetter(name)(alipes)
    assert pickle.loads(pickle.dumps(public)) is public


@pytest.mark.parametrize("path", ["alipes.NotFound", "alipes.errors.NotFound", "alipes.errors.InferError"])
def test_a_pickle_of_either_name_of_an_error_can_be_read(path: str) -> None:
    module, _, name = path.rpartition(".")
    text = f"c{module}\n{name}\n.".encode()  # what pickles of former versions hold
    assert pickle.loads(text) is getattr(errors, name)


def test_a_member_of_a_public_enumeration_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(alipes.Platform.ONNX)) is alipes.Platform.ONNX


def printed(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("imports", ["from alipes import NotFound", "from alipes.errors import NotFound"])
def test_a_traceback_names_an_error_as_users_import_it(imports: str) -> None:
    assert printed(f"{imports}; raise NotFound('no such model')").endswith("\nalipes.NotFound: no such model\n")


@pytest.mark.parametrize("package", ["alipes", "alipes.client"])
def test_a_class_is_named_alike_by_whichever_package_it_is_found(package: str) -> None:
    assert printed(f"from {package} import Client; print(Client)") == "<class 'alipes.Client'>\n"


def test_a_class_that_comes_up_unasked_for_is_named_alike() -> None:
    script = "from alipes import Client; from alipes.client.plain.request import Answer; print(Answer)"
    assert printed(script) == "<class 'alipes.Answer'>\n"


def test_dir_lists_what_users_want_and_nothing_else() -> None:
    assert printed("import alipes.client; print(*dir(alipes))").split() == sorted(alipes.__all__)


def test_the_help_of_the_package_begins_with_a_program_of_twenty_lines() -> None:
    help_text = printed("import alipes; help(alipes)")
    head = help_text.partition("PACKAGE CONTENTS")[0].splitlines()
    program = [line for line in head if line.startswith("        ")]
    assert 10 <= len(program) <= 20
    said = "\n".join(program)
    assert all(
        word in said for word in ("import", "export_version", "Server(", "infer", "load(", "unload(", "statistics")
    )
    assert "class Client" in help_text


@pytest.mark.slow("mypy reads the package")
@pytest.mark.timeout(600)  # on a busy machine for minutes
def test_a_type_checker_sees_what_is_there_and_reports_what_is_not(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import alipes\nreveal_type(alipes.NotFound)\nreveal_type(alipes.serve)\nalipes.no_such_name\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={tmp_path}", "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = done.stdout
    assert "def (message: str" in found
    assert "ServerBlock" in found
    assert 'Module has no attribute "no_such_name"' in found
    assert "Found 1 error" in found


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
