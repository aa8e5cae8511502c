"""`alipes serve --help` and `--help-all`, as a person reads them."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys

import pytest
from alipes.cli import main
from alipes.cli.flags import page
from alipes.config.flags import SERVE_FLAGS, environment_name


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_the_short_page_has_the_twenty_flags_that_people_use(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    common = [row for row in SERVE_FLAGS if row.common]
    assert len(common) == 20
    assert main(["serve", "models", flag]) == 0
    words = capsys.readouterr().out.replace(";", " ").replace("]", " ").replace("[", " ").split()
    assert [row.name for row in common if f"--{row.name}" not in words] == []
    assert [row.name for row in common if environment_name(row) not in words] == []
    assert {"8000", "8001", "8002", "0.0.0.0", "alipes.toml", "30"} <= set(words)
    assert "--help-all" in words


def test_the_long_page_has_every_flag_with_its_variable_and_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--help-all"]) == 0
    out = capsys.readouterr().out
    words = out.replace(";", " ").replace("]", " ").replace("[", " ").split()
    assert [row.name for row in SERVE_FLAGS if f"--{row.name}" not in words] == []
    together = "".join(out.split())  # the longest names are broken
    assert [row.name for row in SERVE_FLAGS if environment_name(row) not in together] == []
    marked = [row for row in SERVE_FLAGS if row.note]
    assert sum(out.count(f"{row.status.capitalize()}: ") for row in marked[:1]) > 0
    assert all(f"{group}:" in out for group in {row.group for row in SERVE_FLAGS})


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize(("width", "most"), [(80, 80), (200, 100), (20, 60)])
def test_lines_fit_into_the_terminal(width: int, most: int, every: bool) -> None:
    text = page(every=every, width=width)
    # What cannot be broken stands as it is: the name of a variable, and the head, which is written for 80 columns.
    longest = max(len(line) for line in text.splitlines() if " " in line.strip()[most - 30 :])
    assert longest <= max(most, 80)
    assert "\033" not in text


def test_the_short_page_is_short() -> None:
    assert len(page(every=False, width=80).splitlines()) <= 80


def test_help_behind_two_dashes_is_a_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    run = "alipes.server.process.run"
    monkeypatch.setattr(run, lambda options, *_, **__: seen.append(options.repository.paths) or 0)
    assert main(["serve", "--", "--help"]) == 0
    assert seen == [("--help",)]


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_serve_prints_the_version_too(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    import alipes

    assert main(["serve", flag]) == 0
    assert capsys.readouterr().out == f"alipes {alipes.__version__}\n"


@pytest.mark.parametrize(("variables", "bold"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_headings_are_bold_on_a_terminal_without_no_color(variables: dict[str, str], bold: bool) -> None:
    ours, theirs = pty.openpty()
    environ = {name: text for name, text in os.environ.items() if name != "NO_COLOR"} | variables
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        command = [sys.executable, "-m", "alipes", "serve", "--help"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, env=environ)
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # how Linux ends the output of a terminal
            while part := terminal.read(4096):
                shown += part
        assert process.wait() == 0
    assert (b"\033[1m" in shown) == bold
    assert b"ALIPES_HTTP_PORT" in shown


def test_a_pipe_gets_plain_text() -> None:
    run = subprocess.run([sys.executable, "-m", "alipes", "serve", "--help"], capture_output=True, check=True)
    assert b"\033" not in run.stdout
    assert max(map(len, run.stdout.decode().splitlines())) <= 80
