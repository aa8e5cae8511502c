"""Names of a package that are imported on first use, so that an importer pays only for the names that it uses.

And packages that can be called, as one is whose function has the package's own name.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False  # true for type checkers; an import of `typing` would be most of what `import alipes` costs
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_FACES: dict[tuple[str, str], str] = {}
"""Module and name of what users import from another package -> that package."""


def lazily(
    package: str, homes: Mapping[str, str], *, face: bool = False
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and the `__dir__` of a package.

    Args:
        package: Name of the package.
        homes: The module that defines each public name.
        face: Whether users import the names from this package, rather than from where they are defined. Their
            `__module__` is this package then, by whichever package they are found first: tracebacks and `help` show the
            name that a user types, and pickles hold it.

    Returns:
        A function that imports a name and stores it; one that lists all names, imported or not.
    """
    if face:
        _FACES.update({(home, name): package for name, home in homes.items()})

    def find(name: str) -> object:
        home = homes.get(name)
        if home is None:
            message = f"module {package!r} has no attribute {name!r}"
            if package == "alipes" and (hint := _hint(name, homes)):
                raise AttributeError(f"{message}: {hint}")
            raise AttributeError(message, name=name, obj=sys.modules[package])  # Python adds the name that was meant
        value: object = getattr(import_module(home), name)
        _name_loaded()
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return find, names


def _hint(name: str, homes: Mapping[str, str]) -> str:
    """What stands for a name that another package has; empty for names that Python itself looks for."""
    if name.startswith("_"):
        return ""
    from alipes.synonyms import synonym  # right names need no hint

    row = synonym("import alipes", name)
    if row is None and name.lower() in homes:
        return f"did you mean alipes.{name.lower()}?"
    return row.hint if row is not None else ""


def _name_loaded() -> None:
    """Names what is loaded by now: an import of one public name may load others, which then come up unasked for."""
    for (home, name), package in _FACES.items():
        if (value := getattr(sys.modules.get(home), name, None)) is not None:
            value.__module__ = package


def make_callable(package: str, function: str) -> None:
    """Lets a package be called, which calls a function of its own; both are still found by their names.

    Args:
        package: Name of the package.
        function: Which of its public names.
    """

    class CallablePackage(ModuleType):
        def __call__(self, *arguments: Any, **options: Any) -> Any:
            return getattr(self, function)(*arguments, **options)

        @property
        def __signature__(self) -> object:
            from inspect import signature  # those who look at it have it already

            return signature(getattr(self, function))

    sys.modules[package].__class__ = CallablePackage
