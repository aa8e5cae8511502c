"""The members of a document beside the arguments of a function: which are unknown, and which are missing."""

from __future__ import annotations

from typing import Any, Final

from alipes.worker.apps.misfit import MISSING, UNKNOWN, Misfit
from alipes.worker.apps.plan import Plan

__all__ = ["MAX_NAME_CHARACTERS", "Members"]

MAX_NAME_CHARACTERS: Final = 60
"""Most characters of a member's name that an error repeats."""

_NO_OBJECT: Final = "expected object"

_MAX_NAMES: Final = 8
"""Most arguments that an error names."""


class Members:
    """The arguments of a function as members of a document."""

    def __init__(self, plan: Plan) -> None:
        """Takes what the function takes."""
        self._names = [one.name for one in plan.arguments]
        self._needed = [one.name for one in plan.arguments if one.required]
        self._files = {one.name for one in plan.arguments if one.is_file}

    def is_meant(self, misfit: Misfit) -> bool:
        """Whether the document is no object, or something is wrong with its own members, and not further inside."""
        if misfit.path == "":
            return misfit.what.startswith(_NO_OBJECT) and self._names != []
        return misfit.what in (MISSING, UNKNOWN) and misfit.path.count(".") == 1 and "[" not in misfit.path

    def explain(self, misfit: Misfit, document: Any) -> Misfit:
        """The same error, which names the argument that an unknown member most likely means.

        Args:
            misfit: What does not fit.
            document: The whole document, or the members of a form.
        """
        if not self.is_meant(misfit):
            return misfit
        if misfit.path == "":
            return Misfit(f"{misfit.what}; send an object with {_listed(self._names)}", status=misfit.status)
        if not hasattr(document, "keys"):
            return misfit
        missing = [name for name in self._needed if name not in document]
        unknown = next((name for name in document if name not in self._names), None)
        if unknown is None:
            return misfit
        return Misfit(f"{UNKNOWN}{self._instead(missing)}", path=f".{_shown(str(unknown))}", status=misfit.status)

    def _instead(self, missing: list[str]) -> str:
        """What follows the refusal of an unknown member."""
        if not self._names:
            return "; the function takes none"
        if missing:
            file = ": send the file under that name" if missing[0] in self._files else ""
            return f", and {_listed(missing)} {'is' if len(missing) == 1 else 'are'} missing{file}"
        return f"; the function takes {_listed(self._names)}"


def _listed(names: list[str]) -> str:
    shown = [f"'{name}'" for name in names[:_MAX_NAMES]]
    if len(names) > _MAX_NAMES:
        return f"{', '.join(shown)} and {len(names) - _MAX_NAMES} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _shown(name: str) -> str:
    """The name of a member as an error repeats it: short, and in characters that can be read."""
    text = "".join(letter if letter.isprintable() else "?" for letter in name[:MAX_NAME_CHARACTERS])
    return text if len(name) <= MAX_NAME_CHARACTERS else f"{text}..."
