"""Names that other clients have and ours do not: what stands for them here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Never

__all__ = ["MISSING", "GuessedNames", "refuse_keywords", "refuse_missing", "refuse_values"]


MISSING: Final[Any] = ...
"""Stands for an argument that was not passed, where `None` is an argument like others."""


class GuessedNames:
    """Answers an attribute that there is not with the one that is meant."""

    if not TYPE_CHECKING:  # a type checker reports names that are not there

        def __getattr__(self, name: str) -> object:
            """Names what is meant."""
            from alipes.config.nearest import ALIKE, nearest  # right names need no hint
            from alipes.synonyms import synonym

            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name.startswith("_"):
                raise AttributeError(message, name=name, obj=self)
            if row := synonym("client.", name):
                raise AttributeError(f"{message}: {row.hint}")
            if nearest(name, dir(type(self)), ALIKE):
                raise AttributeError(message, name=name, obj=self)  # Python adds the name that was meant
            raise AttributeError(f"{message}: to call a function of that name, write client.call({name!r}, ...)")

    def __getitem__(self, name: object) -> Never:
        """Refuses `client["iris"]`, as other clients have it.

        Args:
            name: Of a model.

        Raises:
            TypeError: Always, with the call that is meant.
        """
        raise TypeError(f"a client has no items: write client.call({name!r}, ...) or client.infer({name!r}, inputs)")


def refuse_keywords(client: str, keywords: Mapping[str, Any]) -> None:
    """Refuses keywords that clients of other servers have.

    Raises:
        TypeError: If there is one.
    """
    from alipes.config.nearest import ALIKE, nearest
    from alipes.synonyms import synonym

    for name in keywords:
        row = synonym("alipes.Client", name)
        close = nearest(name, _KEYWORDS, ALIKE)
        mend = row.hint if row is not None else f"did you mean {close}=?" if close else f"it has {', '.join(_KEYWORDS)}"
        raise TypeError(f"{client}() has no keyword {name}=: {mend}")


def refuse_missing(verb: str, model: str, keywords: Mapping[str, Any]) -> Never:
    """Refuses a request without inputs, as where they were passed by name.

    Args:
        verb: The method.
        model: The model that was named.
        keywords: What was passed in the place of inputs.

    Raises:
        TypeError: Always.
    """
    name = next(iter(keywords), "INPUT")
    raise TypeError(
        f"{verb}() takes the inputs behind the model: {verb}({model!r}, {{{name!r}: ...}}); a function is called in "
        f"its own words, call({model!r}, {name}=...)"
    )


def refuse_values(client: str, values: Sequence[object]) -> Never:
    """Refuses what stands behind the address, as other clients take the name of a model there.

    Args:
        client: Name of the client's class.
        values: What was passed.

    Raises:
        TypeError: Always.
    """
    first = values[0]
    mend = f"name the function in the call: client.call({first!r}, ...)" if isinstance(first, str) else "name them"
    raise TypeError(f"{client}() takes an address and keywords: {mend}")


_KEYWORDS = ("timeout_s", "connect_timeout_s", "retry", "headers", "api_key", "tls", "transport")
