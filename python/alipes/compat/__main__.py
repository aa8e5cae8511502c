"""``python -m alipes.compat TOOLKIT script.py [arguments]``: runs a script that imports a toolkit, as it is."""

from __future__ import annotations

import multiprocessing
import runpy
import sys
from collections.abc import Sequence
from importlib import import_module
from multiprocessing import spawn
from pathlib import Path
from typing import Final

_TOOLKITS: Final = ("hermes", "kserve", "pytriton")
_USAGE: Final = """\
usage: python -m alipes.compat TOOLKIT SCRIPT [ARGUMENT ...]
       python -m alipes.compat TOOLKIT -m MODULE [ARGUMENT ...]

Runs a Python script, or a module, in which imports of a toolkit are answered by alipes. The toolkits are hermes, with
gravswell, its former name; kserve, with kfserving, its former name; and pytriton.
"""


def main(arguments: Sequence[str]) -> int:
    """Run what the command line names, as `python` would."""
    if arguments[:1] in (["-h"], ["--help"]):
        print(_USAGE, end="")
        return 0
    toolkit, *rest = arguments or [""]
    module, rest = (True, rest[1:]) if rest[:1] == ["-m"] else (False, rest)
    if toolkit not in _TOOLKITS or not rest:
        print(_USAGE, end="", file=sys.stderr)
        return 2
    if not module and not Path(rest[0]).exists():
        print(f"python -m alipes.compat: there is no script {rest[0]!r}", file=sys.stderr)
        return 2
    _answer_to(toolkit)
    sys.argv = rest
    if module:
        sys.path[0] = ""
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        # As `python script.py` does: what lies beside the script can be imported.
        sys.path[0] = str(Path(rest[0]).resolve().parent)
        runpy.run_path(rest[0], run_name="__main__")
    return 0


def _answer_to(toolkit: str) -> None:
    home = f"alipes.compat.{toolkit}"
    import_module(home)
    # Processes that do not inherit this one's memory come from a server that has done the same, or do it themselves
    # before they import the script.
    multiprocessing.set_forkserver_preload([home])
    prepare = spawn.get_preparation_data
    spawn.get_preparation_data = lambda name: prepare(name) | {home: _Imported(home)}


class _Imported:
    """A module that is imported wherever this is unpickled."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __reduce__(self) -> tuple[object, ...]:
        return import_module, (self._name,)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
