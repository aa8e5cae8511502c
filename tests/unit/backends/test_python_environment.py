"""What `EXECUTION_ENV_PATH` may name, with real environments."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from alipes.backends.python.environment import Environment, find_environment
from alipes.errors import ConfigError, ModelLoadError
from support.environments import find_python, make_venv, pack, site_packages


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with a package of its own."""
    made = make_venv(tmp_path_factory.mktemp("environments") / "venv")
    (site_packages(made) / "only_here.py").write_text("VALUE = 7\n")
    return made


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def run(environment: Environment, code: str) -> str:
    """What a program prints that runs as a worker would."""
    variables = {**os.environ, **environment.variables}
    done = subprocess.run([environment.python, "-c", code], env=variables, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def wrapper(program: Path, python: Path) -> Path:
    """A program that does what an interpreter does."""
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(str(python))} "$@"\n')
    program.chmod(0o755)
    return program


def test_without_it_the_servers_own_interpreter_is_used(tmp_path: Path) -> None:
    assert find_environment("", tmp_path, "m") == Environment(Path(sys.executable))


def test_a_virtual_environment_brings_its_packages_and_programs(venv: Path, tmp_path: Path) -> None:
    found = find_environment(str(venv), tmp_path, "m")
    assert found.python == venv / "bin" / "python"
    assert found.variables["VIRTUAL_ENV"] == str(venv)
    assert run(found, "import numpy, only_here; print(only_here.VALUE)") == "7"
    assert run(found, "import shutil; print(shutil.which('python'))") == str(venv / "bin" / "python")


def test_the_interpreter_of_an_environment_brings_it_along(venv: Path, tmp_path: Path) -> None:
    found = find_environment(str(venv / "bin" / "python3"), tmp_path, "m")
    assert found.python == venv / "bin" / "python3"
    assert found.variables["VIRTUAL_ENV"] == str(venv)
    assert run(found, "import only_here; print(only_here.VALUE)") == "7"


def test_an_interpreter_without_an_environment_is_used_alone(tmp_path: Path) -> None:
    program = wrapper(tmp_path / "python-mine", Path(sys.executable))
    assert find_environment(str(program), tmp_path, "m") == Environment(program, {})


def test_the_models_folder_may_stand_in_front(venv: Path) -> None:
    found = find_environment(f"$$TRITON_MODEL_DIRECTORY/{venv.name}", venv.parent, "m")
    assert found.python == venv / "bin" / "python"


def test_a_conda_environment_is_known_by_its_folder(venv: Path, tmp_path: Path) -> None:
    home = tmp_path / "conda"
    (home / "conda-meta").mkdir(parents=True)
    (home / "bin").mkdir()
    wrapper(home / "bin" / "python", venv / "bin" / "python")
    found = find_environment(str(home), tmp_path, "m")
    assert found.variables["CONDA_PREFIX"] == str(home)
    assert "VIRTUAL_ENV" not in found.variables


def test_a_packed_environment_is_unpacked_and_used(tmp_path: Path, temporary: Path) -> None:
    made = make_venv(tmp_path / "packed", "--copies")
    (site_packages(made) / "only_here.py").write_text("VALUE = 8\n")
    archive = pack(made, tmp_path / "environment.tar.gz")
    found = find_environment("$$TRITON_MODEL_DIRECTORY/environment.tar.gz", tmp_path, "m")
    assert temporary / f"alipes-{os.getuid()}" in found.python.parents
    assert run(found, "import numpy, only_here; print(only_here.VALUE)") == "8"
    assert find_environment(str(archive), tmp_path, "other") == found


def test_an_archive_of_links_to_outside_says_what_to_do(venv: Path, tmp_path: Path, temporary: Path) -> None:
    archive = pack(venv, tmp_path / "environment.tar.gz")
    with pytest.raises(ModelLoadError, match="a virtual environment must be made with --copies to be packed"):
        find_environment(str(archive), tmp_path, "m")


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_another_version_is_used_if_it_has_numpy(version: str, tmp_path: Path) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"Python {version} is not on this machine")
    has_numpy = subprocess.run([python, "-c", "import numpy"], capture_output=True, check=False).returncode == 0
    if has_numpy:
        assert find_environment(str(python), tmp_path, "m").python == python
    else:
        with pytest.raises(ModelLoadError, match="has no working numpy"):
            find_environment(str(python), tmp_path, "m")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("/nowhere", "'/nowhere', which does not exist"),
        ("$$TRITON_MODEL_DIRECTORY/absent.tar.gz", "'$$TRITON_MODEL_DIRECTORY/absent.tar.gz', which does not exist"),
        ("/etc", "'/etc', which holds no bin/python"),
        ("/etc/passwd", "'/etc/passwd', which is none of these"),
        ("/bin/sh", "'/bin/sh', which is none of these"),
    ],
)
def test_anything_else_is_refused(tmp_path: Path, value: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_environment(value, tmp_path, "m")
    assert str(caught.value) == (
        "EXECUTION_ENV_PATH of model 'm' must name the folder of a Python environment, an archive of one (.tar.gz) or "
        f"an interpreter, got {message}"
    )
    assert caught.value.key == "parameters.EXECUTION_ENV_PATH"
