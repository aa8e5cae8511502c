"""The command `alipes`: exit codes and what is printed where."""

from __future__ import annotations

from collections.abc import Sequence

import alipes
import pytest
from alipes.cli import main


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out == f"alipes {alipes.__version__}\n"


@pytest.mark.parametrize(
    "command",
    ["serve", "launch", "status", "stop", "monitor", "explain", "config", "version", "quickstart"],
)
def test_every_command_is_on_the_help_page(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert command in capsys.readouterr().out


def test_an_unknown_command_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sreve"]) == 1
    assert "sreve" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "last"),
    [
        ([], "--model-repository must be specified"),
        (["models", "--no-such-flag"], "--no-such-flag"),
        (
            ["models", "--load-model=m"],
            "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well.",
        ),
    ],
)
def test_a_wrong_flag_shows_the_usage_with_the_message_last(
    arguments: Sequence[str], last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *arguments]) == 1
    printed = capsys.readouterr()
    usage, message = printed.err.split("Usage:", 1)[1].rsplit("\n\n", 1)
    assert "--model-repository" in usage
    assert last in message
    assert printed.out == ""


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_serve_help_shows_every_flag_with_its_status(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    from alipes.config.flags import FLAGS

    assert main(["serve", flag]) == 0
    words = capsys.readouterr().out.split()
    assert [flag.name for flag in FLAGS if f"--{flag.name}" not in words] == []
    assert {"works", "ignored", "refused"} <= set(words)


def test_serve_runs_the_server_with_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, ...]] = []

    def run(options: object) -> int:
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
