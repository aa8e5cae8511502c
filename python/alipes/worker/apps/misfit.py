"""What does not fit: the one error that names the place in the document, what is there, and what should be."""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "MALFORMED",
    "MISSING",
    "NO_CHOICE",
    "SHOWN_CHARACTERS",
    "TOO_LARGE",
    "UNFIT",
    "UNKNOWN",
    "UNREADABLE_TYPE",
    "Misfit",
    "misfit_of",
]

MALFORMED: Final = 400
"""Status of a body that cannot be read at all, such as JSON that is cut off."""

TOO_LARGE: Final = 413
"""Status of what is above a limit."""

UNREADABLE_TYPE: Final = 415
"""Status of a body of a media type that the function does not take."""

UNFIT: Final = 422
"""Status of a body that can be read and does not fit the annotations, as people know it from FastAPI."""


MISSING: Final = "is missing"
"""What is wrong with a member that a document lacks."""

UNKNOWN: Final = "there is no such argument"
"""What is wrong with a member that nobody declared."""

NO_CHOICE: Final = "invalid enum value "
"""What stands before a word that is none of the choices."""

SHOWN_CHARACTERS: Final = 1000
"""Most characters of an error that a client reads: names of members, which it repeats, may be as long as a body."""

_AT: Final = re.compile(r" - at `(?P<path>[^`]*)`$")


class Misfit(ValueError):
    """A request does not fit the function; the text is what the client reads.

    Attributes:
        path: Where, behind the place that is being read: `[3].x`; the whole text has it from the root.
        what: What is wrong there.
        status: HTTP status of the answer.
    """

    def __init__(self, what: str, *, path: str = "", status: int = UNFIT) -> None:
        """Takes what is wrong and where."""
        text = f"${path}: {what}" if status == UNFIT or path else what
        super().__init__(text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}...")
        self.path = path
        self.what = what
        self.status = status

    def below(self, path: str) -> Misfit:
        """The same, seen from further up.

        Args:
            path: Path of the place from which this one was seen, without `$`.
        """
        return Misfit(self.what, path=path + self.path, status=self.status)


def misfit_of(error: Exception) -> Misfit:
    """An error of msgspec in our form."""
    text = str(error)
    match = _AT.search(text)
    path = match["path"].removeprefix("$") if match else ""
    cause = error.__cause__
    if isinstance(cause, Misfit):
        return cause.below(path)
    what = text[: match.start()] if match else text
    missing = re.fullmatch(r"Object missing required field `(.+)`", what)
    unknown = re.fullmatch(r"Object contains unknown field `(.+)`", what)
    if missing:
        return Misfit(MISSING, path=f"{path}.{missing[1]}")
    if unknown:
        return Misfit(UNKNOWN, path=f"{path}.{unknown[1]}")
    return Misfit((what[:1].lower() + what[1:]).replace("`", ""), path=path)
