"""What is installed here: two distributions that own the same files are refused at the start, by their names.

`pip` lets the second one overwrite the first: what serves then is a mixture, and what is left after one is removed does
not work at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from alipes.backends.onnxruntime.library import package_folders
from alipes.errors import ServerStartError

__all__ = ["check_installation", "owners"]

_PACKAGES: Final = {"onnxruntime": "ONNX Runtime", "alipes": "alipes"}
"""Packages that come in several distributions -> what people call them."""


def check_installation() -> None:
    """Looks at the distributions of alipes and of its engine.

    Raises:
        ServerStartError: If two of them own the files of one package; the text says what to type.
    """
    for package, called in _PACKAGES.items():
        found = owners(package, (folder.parent for folder in package_folders(package)))
        if len(found) > 1:
            raise ServerStartError(
                f"{len(found)} builds of {called} are installed and overwrite each other's files: "
                f"{' and '.join(f'{name} {version}' for name, version in found)}.\n"
                "Remove them all, then install the one that you want:\n"
                f"  pip uninstall -y {' '.join(name for name, _ in found)}"
            )


def owners(package: str, folders: Iterable[Path]) -> list[tuple[str, str]]:
    """The distributions that installed a package.

    Args:
        package: Its import name, with which the names of its distributions begin.
        folders: Where packages are installed.

    Returns:
        Names and versions of the distributions, sorted. A distribution of another package, as `onnxruntime-extensions`
        is, does not count.
    """
    return sorted(
        (name.replace("_", "-"), version)
        for folder in folders
        for info in folder.glob(f"{package}*.dist-info")
        for name, _, version in [info.name.removesuffix(".dist-info").partition("-")]
        if _owns(info, package)
    )


def _owns(info: Path, package: str) -> bool:
    try:
        record = (info / "RECORD").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return f"\n{package}/__init__.py," in f"\n{record}"
