"""Words that a shell completes, in the shells themselves."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from alipes.cli import main
from alipes.cli.complete import complete
from support.waiting import TIMEOUT_S

PROGRAMS = Path(sys.executable).parent

# What is typed -> some of the words that are offered.
OFFERED = {
    "alipes s": {"serve", "stats", "status", "stop", "stream"},
    "alipes serve --http-p": {"--http-port"},
    "alipes serve --log-format ": {"default", "ISO8601", "JSON"},
    "alipes serve --log-format j": {"JSON"},
    "alipes serve --exit-on-error ": {"true", "false"},
    "alipes serve -v --por": {"--port"},
    "alipes launch models --grpc-por": {"--grpc-port"},
    "alipes launch models --han": {"--handle"},
    "alipes config ": {"explain"},
    "alipes config explain --metrics-p": {"--metrics-port"},
    "alipes completion ": {"bash", "zsh", "fish"},
    "alipes explain model --w": {"--watch"},
}


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("ALIPES_")}
    return kept | {"PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}", "TERM": "dumb"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    (tmp_path / "moon.txt").touch()
    return tmp_path


@pytest.mark.parametrize("words", OFFERED)
def test_commands_flags_and_choices_are_offered(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = words.split()
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(known) - (words[-1] != " ")))
    assert complete("bash_complete") == 0
    assert set(capsys.readouterr().out.split()) == {f"plain,{word}" for word in OFFERED[words]}


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("alipes serve mo", "dir"),
        ("alipes launch mo", "dir"),
        ("alipes serve --log-file mo", "file"),
        ("alipes serve --model-repository mo", "dir"),
    ],
)
def test_files_and_folders_are_left_to_the_shell(
    words: str, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert complete("bash_complete") == 0
    assert capsys.readouterr().out == f"{kind},mo\n"


def test_words_of_serve_are_offered_without_the_other_commands(environment: dict[str, str]) -> None:
    code = "from alipes.cli import main; import sys; main(); assert 'typer' not in sys.modules"
    asked = {"COMP_WORDS": "alipes serve --http-p", "COMP_CWORD": "2", "_ALIPES_COMPLETE": "bash_complete"}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment | asked, check=False
    )
    assert (run.stdout, run.stderr, run.returncode) == ("plain,--http-port\n", "", 0)


@pytest.mark.parametrize("question", ["tcsh_complete", "bash_source", ""])
def test_another_question_is_refused(question: str) -> None:
    assert complete(question) == 1


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize("words", list(OFFERED)[:2])
def test_fish_is_offered_the_same(words: str, environment: dict[str, str], tmp_path: Path) -> None:
    script = f"alipes completion fish | source; complete --do-complete '{words}'"
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    run = subprocess.run(["fish", "-c", script], capture_output=True, text=True, env=environment | home, check=True)
    assert set(run.stdout.split()) >= OFFERED[words]


class Typed:
    """An interactive shell in a terminal."""

    def __init__(self, command: list[str], environment: dict[str, str], folder: Path) -> None:
        self.shown = ""
        self._terminal, theirs = pty.openpty()
        self._process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=folder, start_new_session=True
        )
        os.close(theirs)

    def type(self, keys: str, until: str) -> None:
        """Types keys, and waits until the terminal has shown a text since."""
        self.shown = ""
        os.write(self._terminal, keys.encode())
        deadline = time.monotonic() + TIMEOUT_S
        while until not in self.shown:
            assert select.select([self._terminal], [], [], max(0.0, deadline - time.monotonic()))[0], self.shown
            self.shown += os.read(self._terminal, 4096).decode(errors="replace")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)


SHELLS = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}
SET_UP = {"bash": "", "zsh": "autoload -Uz compinit; compinit -u -D; "}


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, environment: dict[str, str], folder: Path) -> Iterator[Typed]:
    name = request.param
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    typed = Typed(SHELLS[name], environment | {"PS1": "$ ", "HOME": str(folder)}, folder)
    try:
        typed.type(f'{SET_UP[name]}eval "$(alipes completion {name})"; echo rea""dy\n', "ready")
        yield typed
    finally:
        typed.close()


@pytest.mark.slow("each question of a shell starts Python")
def test_a_tab_completes_commands_flags_choices_and_folders(shell: Typed) -> None:
    shell.type("alipes qui\t", "quickstart")
    shell.type("\x15alipes serve mo\t", "models")
    shell.type("\x15alipes serve --metrics-por\t", "--metrics-port")
    shell.type("\x15alipes serve --log-format J\t", "JSON")
    shell.type("\x15alipes serve --log-file moo\t", "moon.txt")


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_is_printed(shell_name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell_name]) == 0
    assert f"_ALIPES_COMPLETE={shell_name}_complete" in capsys.readouterr().out


def test_the_help_says_where_each_shell_looks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "--help"]) == 0
    lines = capsys.readouterr().out
    for place in ("bash-completion/completions/alipes", "${fpath[1]}/_alipes", ".config/fish/completions/alipes.fish"):
        assert place in lines


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "'bash', 'zsh', 'fish'" in capsys.readouterr().err
