"""What is meant by a flag that there is not: a word of other servers, or a name that is spelled wrong."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from alipes.config.flags import SERVE_FLAGS, find_for_serve
from alipes.config.nearest import ALIKE, MISSPELLED, nearest
from alipes.synonyms import synonym, words_at

__all__ = ["guess"]

_PLACE: Final = "alipes serve"
_SHOWN: Final = 3
_SHORTEST: Final = 5
"""Letters of a synonym that spellings are compared with: shorter ones look like too much."""
_LONG_SYNONYMS: Final = [word for word in words_at(_PLACE) if len(word) >= _SHORTEST]


def guess(name: str) -> str:
    """What to do instead of typing a flag that there is not, in one sentence; empty where nothing comes to mind.

    Args:
        name: The flag without its dashes.
    """
    plain = name.lower().replace("_", "-")
    switch = find_for_serve(plain.removeprefix("no-"))
    if plain.startswith("no-") and switch is not None and switch.kind == "bool":
        return f"say --{switch.name}=false"
    if meant := synonym(_PLACE, plain):
        return meant.hint
    near = list(_near(plain))
    if near and (meant := synonym(_PLACE, near[0])):
        return meant.hint
    close = " / ".join(dict.fromkeys(f"--{one}" for one in near))
    return f"did you mean {close}?" if close else ""


def _near(name: str) -> Iterator[str]:
    """Names that look like this one, the nearest first; behind a short form the flag that it stands for."""
    names = [flag.name for flag in SERVE_FLAGS]
    found = [name] if name in names else get_close_matches(name, names, n=_SHOWN, cutoff=ALIKE)
    close = nearest(name, _LONG_SYNONYMS, MISSPELLED)
    if close and nearest(name, [close, *found]) == close:
        yield close
        return
    for close in found[:1] if len(name) > len("port") else found:
        yield close
        yield from {"port": ("http-port",), "host": ("http-address",)}.get(close, ())
