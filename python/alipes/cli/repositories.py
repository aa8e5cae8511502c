"""`alipes repo`: what a model repository holds, and a further model for it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from alipes.cli.columns import print_columns
from alipes.cli.failures import CommandFailed, perform
from alipes.config.nearest import nearest

if TYPE_CHECKING:
    from alipes.repository.inspection import Inspection
    from alipes.repository.store.base import Store

__all__ = ["repo_app"]

repo_app = typer.Typer(help="Look into a model repository, and add models to it.", no_args_is_help=True)

_HEADINGS: Final = ("model", "kind", "versions")
_UNFOLDED: Final = 1000
"""Columns for a reader that folds nothing, such as grep."""

_SHOWN: Final = 20
"""Files of one folder that a tree shows: an environment of Python has thousands."""

Folder = Annotated[str, typer.Argument(metavar="FOLDER", help="The repository: a folder, or the address of a bucket.")]
Check = Annotated[bool, typer.Option("--check", help="Exit with 1 where something is wrong.")]


@repo_app.command("list")
def list_models(
    folder: Folder,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    check: Check = False,
) -> int:
    """Print the models of a repository with their versions, and what is wrong with which."""

    def action() -> int:
        from alipes.repository.inspection import inspect

        found = inspect(_opened(folder))
        if as_json:
            print(json.dumps(_document(found), indent=2))
        else:
            _print_list(found, folder)
        return 1 if check and found.remarks else 0

    return perform(action)


@repo_app.command()
def tree(folder: Folder, check: Check = False) -> int:
    """Print the folders and files of a repository, and beside them what is missing."""

    def action() -> int:
        from alipes.repository.inspection import inspect

        store = _opened(folder)
        found = inspect(store)
        root = Tree(_label(f"{folder.rstrip('/')}/", found.remarks.get("", "")))
        _grow(root, store, "", found)
        _print_tree(root)
        return 1 if check and found.remarks else 0

    return perform(action)


@repo_app.command()
def add(
    folder: Folder,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="model.onnx, a model.py, or a folder with a model.py.")],
    name: Annotated[
        str, typer.Option("--name", show_default=False, help="The model's name; by default that of the file.")
    ] = "",
    version: Annotated[
        int | None,
        typer.Option(
            "--model-version", min=1, metavar="NUMBER", show_default=False, help="Its version; by default the next one."
        ),
    ] = None,
) -> int:
    """Copy a model's file into a repository, as the next version of its model, with the configuration it needs."""

    def action() -> int:
        from alipes.cli.addition import add_file

        written = add_file(folder, file, name, version)
        print(f"added {written}")
        print(f"serve it with: alipes serve {folder}")
        return 0

    return perform(action)


def _opened(folder: str) -> Store:
    from alipes.repository.store.open import open_store

    if "://" not in folder:
        _check_folder(Path(folder))
    return open_store(folder, create=False)


def _check_folder(path: Path) -> None:
    """Refuses a path that is no folder: to open a repository would make it.

    Raises:
        CommandFailed: If it is none; the text names what was probably meant.
    """
    if path.is_dir():
        return
    if path.exists():
        raise CommandFailed("name the folder that holds the models", f"{path} is a file")
    there = [one.name for one in path.parent.iterdir() if one.is_dir()] if path.parent.is_dir() else []
    close = nearest(path.name, there)
    mend = (
        f"did you mean {path.parent / close}?"
        if close
        else "make the folder, or add a model to it with `alipes repo add`"
    )
    raise CommandFailed(mend, f"there is no folder {path}")


def _document(found: Inspection) -> dict[str, Any]:
    models = [{"name": one.name, "kind": one.kind, "versions": list(one.versions)} for one in found.models]
    return {"models": models, "problems": [{"path": path, "text": text} for path, text in found.remarks.items()]}


def _print_list(found: Inspection, folder: str) -> None:
    if found.models:
        rows = [(one.name, one.kind or "-", ", ".join(map(str, one.versions)) or "-") for one in found.models]
        print_columns(_HEADINGS, rows)
    if found.models and found.remarks:
        print()
    console = Console()
    for path, remark in found.remarks.items():
        line = Text.assemble((path or folder, "yellow"), f": {remark}")
        console.print(line) if console.is_terminal else print(line.plain)


def _grow(branch: Tree, store: Store, path: str, found: Inspection) -> None:
    names = store.list(path)
    folders = [name for name in names if store.isdir(store.join(path, name))]
    files = [name for name in names if name not in folders]
    for name in folders:
        below = store.join(path, name)
        _grow(branch.add(_label(f"{name}/", found.remarks.get(below, ""))), store, below, found)
    for index, name in enumerate(files):
        remark = found.remarks.get(store.join(path, name), "")
        if index < _SHOWN or remark:
            branch.add(_label(name, remark))
    if len(files) > _SHOWN:
        branch.add(Text(f"... {len(files)} files in all", style="dim"))


def _label(name: str, remark: str) -> Text:
    return Text.assemble(name, (f"  <- {remark}", "yellow")) if remark else Text(name)


def _print_tree(root: Tree) -> None:
    console = Console()
    if console.is_terminal:
        return console.print(root)
    text = io.StringIO()
    Console(file=text, width=_UNFOLDED).print(root)
    print("\n".join(line.rstrip() for line in text.getvalue().splitlines()))
    return None
