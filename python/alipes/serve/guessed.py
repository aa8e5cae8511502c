"""Names that servers of other packages have: what stands for them here."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["GuessedAttributes"]


class GuessedAttributes:
    """Answers an attribute that a running server does not have with the one that is meant."""

    if not TYPE_CHECKING:  # a type checker reports names that are not there

        def __getattr__(self, name: str) -> object:
            """Names what is meant."""
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name.startswith("_"):
                raise AttributeError(message, name=name, obj=self)
            from alipes.synonyms import synonym  # right names need no hint

            if row := synonym("server.", name):
                raise AttributeError(f"{message}: {row.hint}")
            raise AttributeError(message, name=name, obj=self)  # Python adds a name that is spelt alike
