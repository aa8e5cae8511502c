"""The command `alipes`: exit codes and what is printed where."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import alipes
import pytest
from alipes.cli import main


@pytest.mark.parametrize("word", ["version", "--version", "-V"])
def test_version_is_printed(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word]) == 0
    assert capsys.readouterr().out == f"alipes {alipes.__version__}\n"


def test_an_interrupt_of_generated_code_is_an_exit_code_too(tmp_path: Path) -> None:
    # As `dataclass` and `namedtuple` generate it, while modules are being imported.
    (tmp_path / "interrupted.py").write_text(
        "from alipes import cli\n"
        "cli._main = lambda arguments: exec('raise KeyboardInterrupt')\n"
        "raise SystemExit(cli.main([]))\n"
    )
    command = [sys.executable, "-m", "interrupted"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.parametrize(
    "command",
    ["serve", "tritonserver", "launch", "status", "stop", "monitor", "explain", "config", "version", "quickstart"],
)
def test_every_command_is_on_the_help_page(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert command in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        (["sreve"], "error: did you mean alipes serve?"),
        (["config", "expain"], "error: did you mean alipes config explain?"),
        (["explain", "m", "--ulr=x"], "error: did you mean --url?"),
        (["explain"], "error: alipes explain needs a MODEL: alipes explain MODEL"),
        (["explain", "m", "--watch"], "error: option '--watch' requires an argument; see"),
        (["stop", "a", "b"], "error: got unexpected extra argument(s) (b); see"),
        (["--nope"], "error: there is no option --nope; alipes --help lists them"),
    ],
)
def test_a_wrong_command_line_ends_with_two_and_says_the_mend_first(
    arguments: Sequence[str], first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert lines[0] == first
    assert len(lines) <= 4
    assert printed.out == ""


def test_a_folder_in_place_of_a_command_is_pointed_to_serve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert f"alipes serve {tmp_path}" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["config"]])
def test_a_command_of_commands_alone_lists_them(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("command", ["explain", "monitor", "launch", "status", "stop", "version", "quickstart"])
def test_every_command_has_a_help_page(command: str, flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, flag]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"Usage: alipes {command}")
    assert max(map(len, lines)) <= 80


def test_serve_runs_the_server_with_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, ...]] = []

    def run(options: object, *_: object, greets: bool, companion: object) -> int:
        assert greets
        assert companion is not None
        seen.append(options.repository.paths)  # type: ignore[attr-defined]
        return 7

    monkeypatch.setattr("alipes.server.process.run", run)
    assert main(["serve", "models", "--http-port=0"]) == 7
    assert len(seen) == 1


def test_serve_reached_through_the_command_list_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from alipes.cli import app

    used: list[Sequence[str]] = []

    def record(arguments: Sequence[str]) -> int:
        used.append(list(arguments))
        return 3

    monkeypatch.setattr("alipes.cli.serve.serve", record)
    assert app.run(["serve", "models", "--http-port=0", "--help"]) == 3
    assert used == [["models", "--http-port=0", "--help"]]


def test_tritonserver_names_an_unknown_option_first_and_last(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tritonserver", "--no-such-flag"]) == 1
    first, usage, *rest, last = capsys.readouterr().err.splitlines()
    assert first == last == "tritonserver: unrecognized option '--no-such-flag'"
    assert usage == "Usage: tritonserver [options]"
    assert "  --model-repository <text>" in rest


@pytest.mark.parametrize("option", ["--model-repository", "--load-model", "--http-port"])
def test_tritonserver_says_which_option_lacks_its_value(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tritonserver", option]) == 1
    first, usage, *_, last = capsys.readouterr().err.splitlines()
    assert first == last == f"tritonserver: option '{option}' requires an argument"
    assert usage == "Usage: tritonserver [options]"


def test_the_usage_of_tritonserver_shows_its_own_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    main(["tritonserver", "--help"])
    lines = capsys.readouterr().err.splitlines()
    assert lines[lines.index("  --exit-on-error <true|false>") + 1].endswith(" Default: true.")


@pytest.mark.parametrize(
    ("arguments", "last"),
    [
        (["--http-port=many"], "Invalid option value. Got many"),
        (["models"], "Unexpected argument: models"),
        (["--help"], ""),
    ],
)
def test_tritonserver_shows_its_usage_with_the_message_last(
    arguments: Sequence[str], last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tritonserver", *arguments]) == 1
    printed = capsys.readouterr()
    usage, *_, message = printed.err.splitlines()
    assert (usage, message) == ("Usage: tritonserver [options]", last)
    assert printed.out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--model-repository must be specified"),
        (
            ["--model-repository=models", "--load-model=m"],
            "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well.",
        ),
    ],
)
def test_tritonserver_says_what_its_server_cannot_be_created_from(
    arguments: Sequence[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tritonserver", *arguments]) == 1
    assert capsys.readouterr().err == f"error: creating server: Invalid argument - {message}\n"


@pytest.mark.parametrize("words", [["tritonserver", "--model-repository=models"], ["serve", "models"]])
def test_both_ways_to_serve_warn_of_older_options(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("alipes.server.process.run", lambda *_, **__: 0)
    assert main([*words, "--strict-model-config=true"]) == 0
    assert capsys.readouterr().err == (
        "Warning: '--strict-model-config' has been deprecated! Please use '--disable-auto-complete-config' instead.\n"
    )


@pytest.mark.parametrize("name", ["tritonserver", "alipes"])
def test_a_program_that_is_called_tritonserver_is_that_command(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[bool] = []

    def run(options: object, *_: object, greets: bool = False, companion: object = None) -> int:
        assert greets == (companion is not None) == (name == "alipes")
        seen.append(options.repository.exit_on_error)  # type: ignore[attr-defined]
        return 5

    monkeypatch.setattr("alipes.server.process.run", run)
    words = ["--model-repository=models"] if name == "tritonserver" else ["serve", "models"]
    monkeypatch.setattr("sys.argv", [f"/opt/tritonserver/bin/{name}", *words])
    assert main() == 5
    assert seen == [name == "tritonserver"]
    assert capsys.readouterr().err == ""


def test_tritonserver_reached_through_the_command_list_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from alipes.cli import app

    used: list[Sequence[str]] = []

    def record(arguments: Sequence[str]) -> int:
        used.append(list(arguments))
        return 3

    monkeypatch.setattr("alipes.cli.serve.serve_as_triton", record)
    assert app.run(["tritonserver", "--model-repository", "models", "--help"]) == 3
    assert used == [["--model-repository", "models", "--help"]]


@pytest.mark.parametrize("words", ["launch", "monitor", "quickstart", "repo add", "explain", "infer", "models load"])
def test_help_says_what_an_option_takes_in_words(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words.split(), "--help"]) == 0
    page = capsys.readouterr().out
    assert " range>" not in page
    assert "{model}" not in page


@pytest.mark.parametrize("command", ["loadtest", "tune", "advise"])
def test_the_help_of_what_measures_begins_with_examples_and_fits(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([command, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert f"    alipes {command} " in "\n".join(lines[:7])


# Sends itself what Ctrl-C sends, as soon as the command's modules are imported.
INTERRUPTED_IMPORT = """
import os
import signal
import sys

from alipes.cli import main


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "alipes.cli.app":
            os.kill(os.getpid(), signal.SIGINT)


sys.meta_path.insert(0, Finder())
sys.exit(main(["loadtest", "digits"]))
"""


def test_an_interrupt_while_modules_are_imported_prints_no_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
