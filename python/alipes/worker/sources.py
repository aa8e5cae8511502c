"""Importing from a model's folder: always from source, and without leaving anything there.

Python would write ``__pycache__`` folders beside the files. A repository may be read-only, or watched for changes; and
compiled code counts as fresh while size and second of its source are the same, which a quick edit and reload defeat.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from types import CodeType, ModuleType

__all__ = ["UncachedLoader", "import_file", "import_file_as", "import_package", "open_folder"]


class UncachedLoader(SourceFileLoader):
    """Compiles a source file anew in each process."""

    def get_code(self, fullname: str) -> CodeType:
        """The compiled file."""
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def open_folder(model_directory: Path) -> None:
    """Has imports from a model's folder, and from those in it, read source only."""
    top = str(model_directory)

    def finder(path: str) -> FileFinder:
        if path != top and not path.startswith(f"{top}/"):
            raise ImportError(f"{path} is not in {top}")  # the next hook has its turn
        return FileFinder(
            path,
            (ExtensionFileLoader, EXTENSION_SUFFIXES),
            (UncachedLoader, SOURCE_SUFFIXES),
            (SourcelessFileLoader, BYTECODE_SUFFIXES),
        )

    sys.path_hooks.insert(0, finder)


def import_package(folder: Path) -> str:
    """Makes a folder a package, so that its modules import each other; gives its name."""
    name = folder.name
    start = folder / "__init__.py"
    if name in sys.modules:
        return name
    if start.is_file():
        _import(name, start, [str(folder)])
    else:
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return name


def import_file(file: Path, package: str) -> ModuleType:
    """Imports a file as a module of a package."""
    return _import(f"{package}.{file.name.removesuffix('.py')}", file, None)


def import_file_as(name: str, file: Path) -> ModuleType:
    """Imports a file as a module of a name; one that is imported already is given."""
    return sys.modules[name] if name in sys.modules else _import(name, file, None)


def _import(name: str, file: Path, search: list[str] | None) -> ModuleType:
    loader = UncachedLoader(name, str(file))
    spec = importlib.util.spec_from_file_location(name, file, loader=loader, submodule_search_locations=search)
    assert spec is not None, "a loader was given"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module
