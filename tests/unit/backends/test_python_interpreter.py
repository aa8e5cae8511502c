"""Which interpreters may run models, and what is said of the others."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from alipes.backends.python import interpreter
from alipes.backends.python.interpreter import check_interpreter
from alipes.errors import ModelLoadError
from support.environments import fake_python, find_python, make_venv

GOOD = {"implementation": "CPython", "version": [3, 12, 1], "free_threaded": False, "numpy": ""}


def refusal(python: Path) -> str:
    with pytest.raises(ModelLoadError) as failure:
        check_interpreter(python, {}, "m")
    return failure.value.reason.removeprefix(f"Invalid argument: the interpreter {python} of model 'm' ")


def test_this_interpreter_may() -> None:
    check_interpreter(Path(sys.executable), {}, "m")


@pytest.mark.parametrize("printed", ["", "hello from sitecustomize\n"])
def test_what_else_it_prints_does_not_matter(tmp_path: Path, printed: str) -> None:
    check_interpreter(fake_python(tmp_path, f"{printed}{json.dumps(GOOD)}"), {}, "m")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": [3, 10, 13]}, "is CPython 3.10.13; models run on CPython 3.11 or newer, not free-threaded"),
        ({"version": [2, 7, 18]}, "is CPython 2.7.18; models run on CPython 3.11 or newer, not free-threaded"),
        ({"implementation": "PyPy"}, "is PyPy 3.12.1; models run on CPython 3.11 or newer, not free-threaded"),
        (
            {"free_threaded": True},
            "is CPython 3.12.1 (free-threaded); models run on CPython 3.11 or newer, not free-threaded",
        ),
    ],
)
def test_another_kind_or_version_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    assert refusal(fake_python(tmp_path, json.dumps(GOOD | change))) == message


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.10"])
def test_a_real_old_interpreter_is_named(version: str) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"Python {version} is not on this machine")
    message = refusal(python)
    assert message.startswith(f"is CPython {version}.")
    assert message.endswith("; models run on CPython 3.11 or newer, not free-threaded")


def test_without_numpy_the_text_says_how_to_get_it(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "venv", numpy=False) / "bin" / "python"
    assert refusal(python) == (
        "has no working numpy (ModuleNotFoundError: No module named 'numpy'); "
        f"install it with: {python} -m pip install numpy"
    )


def test_a_numpy_in_the_current_folder_is_not_the_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "numpy.py").write_text("")
    monkeypatch.chdir(tmp_path)
    assert "has no working numpy" in refusal(make_venv(tmp_path / "venv", numpy=False) / "bin" / "python")


@pytest.mark.parametrize("answer", ["", "{}", "[]", "[1]", "3", json.dumps(GOOD | {"version": ["3"]}), "[" * 100_000])
def test_an_answer_of_another_form_is_none(tmp_path: Path, answer: str) -> None:
    assert refusal(fake_python(tmp_path, answer)) == "does not work, exit code 0"


def test_a_program_that_is_no_interpreter_is_described_by_its_end(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho some\necho broken >&2\nexit 7\n")
    program.chmod(0o755)
    assert refusal(program) == "does not work, exit code 7: broken"


def test_a_program_that_does_not_start_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/nowhere/sh\n")
    program.chmod(0o755)
    assert refusal(program) == "cannot be run: No such file or directory"


def test_a_program_that_does_not_end_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "_TIMEOUT_S", 0.1)
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    assert refusal(program) == "gave no answer within 0.1 s"
