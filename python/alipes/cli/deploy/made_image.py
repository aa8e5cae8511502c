"""What `alipes deploy image` does: an image made, written, pushed, and shown in a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from alipes.cli.columns import print_columns
from alipes.deploy.image.build import Order, build
from alipes.deploy.image.layout import check_place, is_archive, write_archive, write_folder
from alipes.deploy.image.manifest import Image
from alipes.deploy.image.push import Push
from alipes.deploy.image.reference import Name
from alipes.deploy.image.settings import DEFAULT_NAME
from alipes.progress import task

__all__ = ["make"]

_FOLDER: Final = Path("image")
_HEADINGS: Final = ("LAYER", "HOLDS", "FILES", "MB", "PACKED MB", "")
_MB: Final = 1e6
_MOST_NAMED: Final = 12
"""Of what was left out; a line with more is not read."""


def make(order: Order, output: Path | None, *, name: str | None, push: Push | None, as_json: bool) -> None:
    """Makes an image, writes and pushes it, and prints what went in.

    Args:
        order: What it is to hold.
        output: The folder or the archive; by default a folder, unless it is pushed.
        name: What engines call it.
        push: Where it is pushed.
        as_json: Whether to print JSON.

    Raises:
        ConfigError: If something cannot be found, read or written.
        PushError: If the registry refuses it, or does not answer.
    """
    called = Name.read(name or DEFAULT_NAME)
    path = _FOLDER if output is None and push is None else output
    if path is not None:
        check_place(path)
    if push is not None:
        push.check()
    attached = True
    with task("image") as shown:
        made = build(order, shown)
        if path is not None:
            shown.step("writing")
            (write_archive if is_archive(path) else write_folder)(made, path, called)
        if push is not None:
            attached = push.send(made, shown)
    if as_json:
        print(json.dumps(_document(made), indent=2))
        return
    _print(made)
    _print_selection(made)
    if path is not None:
        print(f"written to {path} as {called.full}")
        print(_how_to_load(path, called))
    if push is not None:
        print(f"pushed to {push.target}{'' if attached else ', which takes no bill of materials beside it'}")


def _print(made: Image) -> None:
    rows = [
        (one.name, one.holds, str(one.layer.files), _mb(one.layer.unpacked), _mb(one.layer.size), "cached" * one.cached)
        for one in made.layers
    ]
    total = ("image", "", str(sum(one.layer.files for one in made.layers)), _mb(made.unpacked), _mb(made.size), "")
    print_columns(_HEADINGS, [*rows, total], right=_HEADINGS[2:5], spare=("", "FILES", "HOLDS"))
    print(f"digest {made.digest}")
    for name, path in made.missing.items():
        print(f"{name} is not here, which {path.name} loads: what needs it will not run")


def _print_selection(made: Image) -> None:
    """How many files of the app or of the models went in, and what did not."""
    for one in made.layers:
        if one.name in ("app", "models"):
            print(f"{one.layer.files} file{'s' * (one.layer.files != 1)} went in for {one.holds}")
    if made.left_out:
        further = len(made.left_out) - _MOST_NAMED
        names = [*made.left_out[:_MOST_NAMED], *([f"{further} more"] if further > 0 else [])]
        print(f"left out: {', '.join(names)}")


def _how_to_load(path: Path, called: Name) -> str:
    if is_archive(path):
        return f"load it: podman load --input {path}, docker load --input {path}, or ctr images import {path}"
    return (
        f"load it: podman pull oci:{path}; docker and containerd load an archive, which --output {called.short}.tar "
        "writes"
    )


def _document(made: Image) -> dict[str, Any]:
    layers = [
        {"name": one.name, "holds": one.holds, "cached": one.cached} | one.layer.document() for one in made.layers
    ]
    return {
        "digest": made.digest,
        "unpacked": made.unpacked,
        "size": made.size,
        "layers": layers,
        "left_out": made.left_out,
    }


def _mb(size: int) -> str:
    return f"{size / _MB:.1f}"
