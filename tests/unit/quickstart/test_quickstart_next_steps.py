import shlex
import sys
from pathlib import Path

import pytest
from alipes.quickstart import digits, next_steps
from alipes.quickstart.child import Addresses

RUNNING = Addresses("127.0.0.1:41001", "127.0.0.1:41002", "127.0.0.1:41003")


@pytest.fixture(autouse=True)
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an installation whose commands are found by name; the current folder is another one."""
    folder = tmp_path / "an environment" / "bin"
    folder.mkdir(parents=True)
    for name in ("python", "alipes"):
        (folder / name).touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", str(folder))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return folder


def test_commands_for_a_running_server_use_its_addresses() -> None:
    commands = [command for _, command in next_steps.commands(RUNNING)]
    assert any(RUNNING.http in command and str(digits.REQUEST) in command for command in commands)
    assert any(RUNNING.metrics in command for command in commands)
    assert not any(command.startswith("alipes") for command in commands)


def test_commands_for_a_stopped_server_start_it_first() -> None:
    commands = [command for _, command in next_steps.commands(None)]
    serve = next(index for index, command in enumerate(commands) if command.startswith("alipes serve "))
    classify_each = next(index for index, command in enumerate(commands) if command.startswith("curl "))
    assert serve < classify_each
    assert "localhost:8000" in commands[classify_each]


def test_commands_name_files_that_a_copy_holds(tmp_path: Path) -> None:
    commands = [command for _, command in next_steps.commands(None)]
    folder = next(command.split()[-1] for command in commands if "--copy-to" in command)
    digits.copy_to(tmp_path / folder)
    served = next(command.split()[-1] for command in commands if command.startswith("alipes serve "))
    body = next(command.split("@")[-1] for command in commands if command.startswith("curl "))
    assert (tmp_path / served / digits.MODEL / "1" / "model.onnx").is_file()
    assert (tmp_path / body).is_file()


@pytest.mark.parametrize("running", [RUNNING, None])
def test_the_printed_program_is_python(running: Addresses | None) -> None:
    program = next_steps.program(running)
    compile(program, "<printed>", "exec")
    assert f'"{running.grpc if running is not None else "localhost:8001"}"' in program


def test_a_command_that_is_not_found_by_name_is_typed_by_its_path(
    installation: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert next_steps.tool() == "alipes"
    monkeypatch.setenv("PATH", "")
    assert shlex.split(next_steps.tool()) == [str(installation / "alipes")]
    monkeypatch.chdir(installation.parent)
    assert next_steps.tool() == "bin/alipes"
    (installation / "alipes").unlink()
    assert next_steps.tool() == "bin/python -m alipes"


def test_another_installation_of_that_name_is_not_used(
    installation: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "alipes").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(other))
    assert shlex.split(next_steps.tool()) == [str(installation / "alipes")]


def test_paths_with_spaces_are_quoted() -> None:
    assert shlex.split(next_steps.serve(Path("my models"))) == ["alipes", "serve", "my models"]
