"""What to type next: commands and a program that work here as they are printed."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

from alipes.quickstart.child import Addresses
from alipes.quickstart.digits import MODEL, REQUEST

_FOLDER: Final = Path("digits-demo")
_DEFAULT_HTTP: Final = "localhost:8000"
_DEFAULT_GRPC: Final = "localhost:8001"


def commands(running: Addresses | None) -> list[tuple[str, str]]:
    """Commands, each with the reason to type it.

    Args:
        running: Where the server stays reachable; `None` if it is stopped, and then the commands start one.
    """
    if running is not None:
        return [
            ("ask the running server", _curl(running.http, REQUEST)),
            ("what it has done so far", f"curl -s {running.http}/v2/models/{MODEL}/stats"),
            ("the same for Prometheus", f"curl -s {running.metrics}/metrics"),
        ]
    return [
        ("this tour, with the server left running", f"{tool()} quickstart --keep"),
        ("its model, its scans and a request, as files of your own", copy()),
        ("serve them, or a folder with your models", serve(_FOLDER / "models")),
        ("ask that server, from another terminal", _curl(_DEFAULT_HTTP, _FOLDER / REQUEST.name)),
    ]


def program(running: Addresses | None) -> str:
    """A Python program that reads a scan's digit; `running` as for `commands`."""
    address, request = (running.grpc, REQUEST) if running is not None else (_DEFAULT_GRPC, _FOLDER / REQUEST.name)
    return f"""\
import json
from alipes import Client

scan = json.load(open("{_short(request)}"))["inputs"][0]["data"]
print(Client("{address}").infer("{MODEL}", [scan]).argmax())"""


def by_hand() -> str:
    """The commands that serve the model without the tour, with a verbose log."""
    return f"{copy()}\n{serve(_FOLDER / 'models')} --log-verbose=1"


def copy() -> str:
    """The command that copies the example."""
    return f"{tool()} quickstart --copy-to {_FOLDER}"


def serve(repository: Path) -> str:
    """The command that serves a repository."""
    return f"{tool()} serve {_quoted(repository)}"


def tool() -> str:
    """How to type `alipes` here: by its name where that finds this installation, else by its path."""
    own = Path(sys.executable).with_name("alipes")
    if not own.is_file():
        return f"{_quoted(Path(sys.executable))} -m alipes"
    found = shutil.which("alipes")
    return "alipes" if found is not None and own.samefile(found) else _quoted(own)


def _curl(address: str, request: Path) -> str:
    return f"curl -s {address}/v2/models/{MODEL}/infer -d @{_quoted(request)}"


def _quoted(path: Path) -> str:
    return shlex.quote(_short(path))


def _short(path: Path) -> str:
    """A path seen from the current folder, where it lies in it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
