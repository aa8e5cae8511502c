"""A reader who types everything that a page shows, from top to bottom, in a folder of their own.

What each language behind a fence means here; anything else fails, so that no block stands unread:

=================  ====================================================================================
``bash``           typed into a shell; every command must succeed
``bash serve``     `alipes serve REPOSITORY [FLAGS]`, also behind `alipes activate --`, or `alipes graph FILE
                   [REPOSITORY] [FLAGS]`: runs until the page ends, on free ports; where later blocks say
                   `localhost:8000`, `:8001` or `:8002`, its real addresses are put in. Beside it another one runs at
                   `--port=8080`, whose addresses stand for
                   `localhost:8080` and the two ports behind
``console``        commands behind `$ `, each followed by what it prints; `...` stands for anything
``python``         a program; must succeed
``LANGUAGE file``  the content of that file, written before the next block runs (`pbtxt models/a/config.pbtxt`)
``text``           a picture or a layout; nothing to type
``... needs X``    the same, where the Python package X is installed; elsewhere it is not done
``... by TEST``    done by that file of `tests`, which has what the block talks to
=================  ====================================================================================

`make` commands are not run, for the tests run inside of one: their targets must exist.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from support.blocks import Block, Command, commands, fits
from support.server import ServerProcess

_ROOT = Path(__file__).parents[2]
_FIRST_PORT = 8000
_SHELL = ("bash", "-eu", "-o", "pipefail", "-c")
# A page of PyTorch imports it with each command; a loaded machine is slow at that.
_TIMEOUT_S = 300.0


class Reader:
    """Follows one page. A context manager: its servers end with it."""

    def __init__(self, folder: Path) -> None:
        """Begins in an empty folder."""
        self._folder = folder
        self._servers: list[tuple[int, ServerProcess]] = []
        # `alipes` and `python` are those of the environment under test.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        # The variables of the `make` around the tests are not for the `make` of a page.
        self._environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"} | {"PATH": path}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for _, server in self._servers:
            server.kill()

    def follow(self, block: Block) -> None:
        """Runs the block.

        Raises:
            AssertionError: If it does not work as the page shows.
        """
        by = re.search(r"(?:^| )by (\S+)$", block.argument)
        if by:
            test = by[1]
            assert (_ROOT / "tests" / test).is_file(), f"there is no tests/{test}"
            return
        argument, needs, package = block.argument.rpartition("needs ")
        if needs and importlib.util.find_spec(package) is None:
            return
        match block.language, argument.strip() if needs else block.argument:
            case "text", "":
                return
            case "bash", "":
                self._type(block.text)
            case "bash", "serve":
                self._serve(block.text)
            case "console", "":
                for command in commands(block.text):
                    self._compare(command)
            case "python", "":
                self._run(sys.executable, "-c", self._with_addresses(block.text))
            case language, file if language and file:
                self._write(file, block.text)
            case _:
                raise AssertionError(f"a block that says {block.language!r} {block.argument!r} has no reader")

    def _type(self, script: str) -> None:
        lines = [line for line in script.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        if lines and all(line.startswith("make ") for line in lines):
            for line in lines:
                self._check_target(line)
        else:
            self._run(*_SHELL, self._with_addresses(script))

    def _compare(self, command: Command) -> None:
        printed = self._run(*_SHELL, self._with_addresses(command.command))
        assert fits(command.output, printed), (
            f"{command.command!r} printed:\n{printed}\nthe page says:\n{command.output}"
        )

    def _serve(self, script: str) -> None:
        words = shlex.split(self._with_addresses(script.replace("\\\n", " ")), comments=True)
        is_activated = words[:3] == ["alipes", "activate", "--"]
        words = ["alipes", *words[3:]] if is_activated else words
        assert words[:2] in (["alipes", "serve"], ["alipes", "graph"]), f"this starts no server: {script!r}"
        ports = [word for word in words if word.startswith("--port=")]
        repository, *flags = [word for word in words[2:] if word not in ports]
        place = repository if repository.startswith("-") else self._folder / repository  # a store is a flag
        if words[1] == "graph":
            place = f"--graph={place}"
        command: Literal["activate", "serve"] = "activate" if is_activated else "serve"
        server = ServerProcess(place, *flags, folder=self._folder, command=command)
        first = int(ports[0].partition("=")[2]) if ports else _FIRST_PORT
        self._servers.append((first, server))
        if not is_activated:
            server.wait_until_started()

    def _with_addresses(self, text: str) -> str:
        """The text with the real addresses of the servers in place of those that the page says."""
        for first, server in reversed(self._servers):  # what was started last counts
            for port, endpoint in enumerate(("http", "grpc", "metrics"), start=first):
                if f"localhost:{port}" in text:
                    text = text.replace(f"localhost:{port}", getattr(server, endpoint))
        unknown = [port for port in range(_FIRST_PORT, _FIRST_PORT + 3) if f"localhost:{port}" in text]
        assert not unknown, "the page asks a server before it starts one"
        return text

    def _write(self, file: str, content: str) -> None:
        path = self._folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")

    def _check_target(self, line: str) -> None:
        words = [word for word in shlex.split(line, comments=True)[1:] if "=" not in word]
        self._execute(["make", "-n", *words], _ROOT)

    def _run(self, *command: str) -> str:
        """Standard output of a command that must succeed."""
        return self._execute(command, self._folder)

    def _execute(self, command: Sequence[str], folder: Path) -> str:
        done = subprocess.run(
            command,
            cwd=folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout
