"""`alipes init`: a first app, its test, and a request to try."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

__all__ = ["init"]

_FILES: Final = ("app.py", "test_app.py", "request.py", "request.sh")


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where to write it; the current folder if absent.")
    ] = Path(),
) -> int:
    """Write a first app, its test, and a request to try."""
    source = Path(__file__).parents[1] / "apps" / "starter"
    there = [name for name in _FILES if (folder / name).exists() or (folder / name).is_symlink()]
    if there:
        print(f"error: {folder / there[0]} exists: name another folder, as in alipes init my-app", file=sys.stderr)
        return 1
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            (folder / name).write_bytes((source / f"{name}.txt").read_bytes())
        (folder / "request.sh").chmod(0o755)
    except OSError as error:
        print(f"error: {error.filename or folder} cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    enter = "" if folder == Path() else f"cd {shlex.quote(str(folder))} && "
    print(f"wrote {', '.join(_FILES)}; now type:")
    print(f"  {enter}alipes serve app.py --reload")
    print(f"  {enter}sh request.sh    # in another terminal; http://localhost:8000/docs shows the same in a browser")
    return 0
