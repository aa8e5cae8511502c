"""`alipes link-names`: links of the names that Triton's programs have."""

from __future__ import annotations

import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from alipes.cli import PROGRAMS
from alipes.cli.failures import CommandFailed, perform

__all__ = ["link_names"]

_PROGRAM: Final = "alipes"


def link_names(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to link them, such as ~/.local/bin.")],
) -> int:
    """Link perf_analyzer, model-analyzer and tritonserver to alipes; another program of such a name stays."""

    def action() -> int:
        program = Path(sysconfig.get_path("scripts")) / _PROGRAM
        if not program.is_file():
            raise CommandFailed("install alipes with pip, which puts it there", f"'{program}' is absent")
        links = {name: folder / name for name in PROGRAMS}
        _check(links, program)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, link in links.items():
                if not link.is_symlink():
                    link.symlink_to(program)
                print(f"{link}: alipes {' '.join(PROGRAMS[name])}")
        except OSError as error:
            raise CommandFailed("name a folder that can be written", f"'{folder}': {error.strerror}") from error
        return 0

    return perform(action)


def _check(links: Mapping[str, Path], program: Path) -> None:
    """Nothing is linked where one of the names is taken."""
    for link in links.values():
        is_there = link.exists() or link.is_symlink()
        if is_there and not (link.is_symlink() and link.resolve() == program.resolve()):
            raise CommandFailed("remove it, or name another folder", f"'{link}' is another program")
