"""What is said of a value of a description that is none of its choices."""

from __future__ import annotations

import re
from typing import Final

from alipes.choices import choices_at
from alipes.config.nearest import nearest

__all__ = ["of_choices"]

_REFUSED: Final = re.compile(r"^Invalid enum value (.*)$", re.DOTALL)
"""What msgspec says of a word that is none of the choices: it does not name them."""


def of_choices(what: str, described: type, place: str) -> str:
    """A message of msgspec, with the choices where it is about a word that is none of them.

    Args:
        what: The message, without its place.
        described: The type that was expected of the whole.
        place: Of the value in it, such as `tolerations[0].operator`.
    """
    refused = _REFUSED.match(what)
    choices = choices_at(described, place) if refused else []
    if not refused or not choices:
        return what
    close = nearest(refused[1].strip("'"), choices)
    return f"{refused[1]} is none of {', '.join(choices)}" + (f"; did you mean {close}?" if close else "")
