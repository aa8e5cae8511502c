from pathlib import Path

from alipes.quickstart import digits, next_steps
from alipes.quickstart.child import Addresses

KEPT = Addresses("127.0.0.1:41001", "127.0.0.1:41002", "127.0.0.1:41003")


def test_a_kept_server_is_asked_at_its_real_addresses() -> None:
    commands = [command for _, command in next_steps.commands(KEPT)]
    assert any(KEPT.http in command and str(digits.REQUEST) in command for command in commands)
    assert any(KEPT.metrics in command for command in commands)
    assert not any(command.startswith("alipes") for command in commands)


def test_a_stopped_server_is_started_before_it_is_asked() -> None:
    commands = [command for _, command in next_steps.commands(None)]
    serve = next(index for index, command in enumerate(commands) if command.startswith("alipes serve "))
    ask = next(index for index, command in enumerate(commands) if command.startswith("curl "))
    assert serve < ask
    assert "localhost:8000" in commands[ask]


def test_commands_name_files_that_a_copy_holds(tmp_path: Path) -> None:
    commands = [command for _, command in next_steps.commands(None)]
    folder = next(command.split()[-1] for command in commands if "--copy-to" in command)
    digits.copy_to(tmp_path / folder)
    served = next(command.split()[-1] for command in commands if command.startswith("alipes serve "))
    asked = next(command.split("@")[-1] for command in commands if command.startswith("curl "))
    assert (tmp_path / served / digits.MODEL / "1" / "model.onnx").is_file()
    assert (tmp_path / asked).is_file()


def test_the_printed_program_is_python() -> None:
    program = next_steps.program("localhost:8000")
    compile(program, "<printed>", "exec")
    assert '"localhost:8000"' in program
