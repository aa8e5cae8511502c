"""Things by name, which say what there is where something else is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, NoReturn, TypeVar

from alipes.config.nearest import nearest_first

__all__ = ["Named", "unknown_name"]

T = TypeVar("T")


class Named(dict[str, T], Generic[T]):
    """A dictionary whose `KeyError` names what it has, the likeliest first."""

    def __init__(self, things: Mapping[str, T], whose: str, kind: str) -> None:
        """Takes what there is.

        Args:
            things: By name.
            whose: What has them, for messages: `model 'm'`.
            kind: What each of them is: `output`.
        """
        super().__init__(things)
        self._whose = whose
        self._kind = kind

    def __missing__(self, name: object) -> NoReturn:
        """Raises the error."""
        raise unknown_name(self._whose, self._kind, name, self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled as what it was made of."""
        return type(self), (dict(self), self._whose, self._kind)


def unknown_name(whose: str, kind: str, name: object, known: Iterable[str]) -> KeyError:
    """The error for a name that is not there: `model 'm' has no output 'probs'; it has 'prob', 'label'`."""
    return KeyError(f"{whose} has no {kind} {name!r}; it has {nearest_first(str(name), known)}")
