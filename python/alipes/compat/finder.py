"""Imports of other toolkits' names, answered last: an installed package of that name comes first."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import ClassVar

from alipes.compat.absent import absent
from alipes.compat.rows import Absent, Row

__all__ = ["AliasFinder", "AliasModule"]


class AliasModule(ModuleType):
    """A module whose names live elsewhere: each is looked up there when it is first asked for."""

    _row: ClassVar[Row] = {}

    def __getattr__(self, name: str) -> object:
        """The name, out of its home; it stays here from then on."""
        value = self._find(name)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: object) -> None:
        """Set a name, unless a submodule would take the place of one that the package itself has.

        A submodule is put into its package when it is imported. Where both have a name that is spelled the same
        (`hermes.aeriel.serve.serve`), the package's stays, as it does in hermes.
        """
        if isinstance(value, AliasModule) and not isinstance(self._row, Absent) and name in self._row:
            return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        """What is here, and what would be found."""
        row = self._row
        return sorted({*self.__dict__, *(row.names if isinstance(row, Absent) else row)})

    def _find(self, name: str) -> object:
        row = self._row
        if isinstance(row, Absent):
            if name.startswith("_"):
                raise AttributeError(f"module {self.__name__!r} has no name {name!r}")
            return absent(self.__name__, name, row.reason)
        home = row.get(name)
        if home is None:
            known = ", ".join(sorted(row)) or "no names of its own"
            raise AttributeError(f"module {self.__name__!r} is answered by alipes and has no {name!r}; it has: {known}")
        if isinstance(home, Absent):
            return absent(self.__name__, name, home.reason)
        module, _, attribute = home.partition(":")
        found = import_module(module)
        return getattr(found, attribute) if attribute else found


class AliasFinder(MetaPathFinder, Loader):
    """Finds and loads the modules of a table, and nothing below an installed package of that name."""

    def __init__(self, modules: Mapping[str, Row], roots: Collection[str], moved: Collection[str] = ()) -> None:
        """Takes the table, the packages that its modules are in, and the modules that have left these packages."""
        self._modules = modules
        self._roots = roots
        self._moved = moved
        self._roots_first = _RootFinder(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of a module of the table; None for all others."""
        root = fullname.partition(".")[0]
        if fullname not in self._modules or root not in self._roots:
            return None
        if fullname != root and not self._is_ours(root, sys.modules.get(root)):
            return None
        # Each is a package, so that Python looks for what is below it; there is no folder to look in.
        return ModuleSpec(fullname, self, origin="alipes.compat", is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty module that answers to its row."""
        module = AliasModule(spec.name, f"Answered by alipes: see alipes.compat. Stands for {spec.name}.")
        object.__setattr__(module, "_row", self._modules[spec.name])
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: names come when they are asked for."""

    def forget(self) -> None:
        """Take the modules that were answered for out of `sys.modules`."""
        for name in [name for name, module in sys.modules.items() if isinstance(module, AliasModule)]:
            if name in self._modules:
                del sys.modules[name]

    def installed_elsewhere(self, root: str) -> str | None:
        """Where a package of this name is installed; None where it is not."""
        if (loaded := sys.modules.get(root)) is not None:
            return None if self._is_ours(root, loaded) else str(getattr(loaded, "__file__", None) or "this process")
        spec = PathFinder.find_spec(root)
        if spec is None or (spec.origin is None and self._has_nothing(root, spec.submodule_search_locations or ())):
            return None
        return spec.origin or next(iter(spec.submodule_search_locations or ()), "this environment")

    def answer(self) -> None:
        """Answer to the names from now on, in this process.

        Warns:
            RuntimeWarning: If a package of one of the names is installed: it is the one that imports go on to find.
        """
        if self in sys.meta_path:
            return
        for root in sorted(self._roots):
            if (place := self.installed_elsewhere(root)) is not None:
                warnings.warn(
                    f"a package '{root}' is installed ({place}): imports of it go there, not to alipes",
                    RuntimeWarning,
                    stacklevel=4,
                )
        # Last: nothing that is installed is ever hidden.
        sys.meta_path.append(self)
        sys.meta_path.insert(0, self._roots_first)

    def retire(self) -> None:
        """Stop answering imports; modules that were imported stay where they are in use."""
        for finder in (self, self._roots_first):
            if finder in sys.meta_path:
                sys.meta_path.remove(finder)
        self.forget()

    def root_in(self, root: str, folders: Sequence[str]) -> ModuleSpec | None:
        """The specification of a package of the table that has names of its own, whose name these folders share.

        None where the package has no names of its own: then the folders may be it, and what is below is ours.
        """
        row = self._modules.get(root) if root in self._roots else None
        if not row or not self._has_nothing(root, folders):
            return None
        spec = ModuleSpec(root, self, origin="alipes.compat", is_package=True)
        spec.submodule_search_locations = list(folders)
        return spec

    def _is_ours(self, root: str, module: ModuleType | None) -> bool:
        """Whether modules below a package may be answered: it is one of ours, or a folder that only has its name."""
        if module is None or isinstance(module, AliasModule):
            return module is not None
        return getattr(module, "__file__", None) is None and self._has_nothing(root, getattr(module, "__path__", ()))

    def _has_nothing(self, root: str, folders: Iterable[str]) -> bool:
        """Whether folders that are no package themselves have none of a package's modules, but for those that left."""
        below = [name for name in self._modules if name.startswith(f"{root}.") and name.count(".") == 1]
        return all(PathFinder.find_spec(name, list(folders)) is None for name in below if name not in self._moved)


class _RootFinder(MetaPathFinder):
    """Answers for a package ahead of folders that only share its name, and are no package: Python would take them."""

    def __init__(self, finder: AliasFinder) -> None:
        self._finder = finder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of a package in the place of such folders; None for all others, which others find."""
        if "." in fullname:
            return None
        others = (one for one in sys.meta_path if not isinstance(one, AliasFinder | _RootFinder))
        found = (one.find_spec(fullname, path, target) for one in others if hasattr(one, "find_spec"))
        spec = next((one for one in found if one is not None), None)
        if spec is None or spec.origin is not None or spec.submodule_search_locations is None:
            return None
        return self._finder.root_in(fullname, list(spec.submodule_search_locations))
