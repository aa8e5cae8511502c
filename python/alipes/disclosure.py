"""What of an error leaves the process: its text, but no path of a folder for temporary files.

The log has the whole text. Paths in repositories stay, as Triton's texts have them too.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

__all__ = ["hidden_prefixes", "public", "readable"]

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

# What stands for the folders of `alipes.process_folder` and `alipes.backends.python.cache`: a model's files
# begin with its name, those of an environment with this word. The last one is whatever else begins alike.
_FOLDERS: Final = (
    (r"alipes-load-\w+/\w+/", ""),
    (r"alipes-(?:attached|repository|tune)-\w+/models/", ""),
    (r"alipes-\d+/environments/[0-9a-f]+-[0-9a-f]+\b", "environment"),
    (r"alipes-[\w-]*/?", ""),
)


def public(text: str, private: Mapping[str, str] = _NOTHING) -> str:
    """The text of an error as clients may see it.

    Args:
        text: The text.
        private: Further parts that stay in the process, each with what stands for it.
    """
    for part in sorted(private, key=len, reverse=True):
        text = text.replace(part, private[part])
    for pattern, shown in _patterns(_temporary()):
        text = pattern.sub(shown, text)
    return readable(text)


def hidden_prefixes(*paths: str | os.PathLike[str]) -> dict[str, str]:
    """What `public` leaves out of these paths, each with what stands for it; also where links lead to them."""
    found: dict[str, str] = {}
    for path in paths:
        for place in (os.fspath(path), os.path.realpath(path)):
            matches = ((pattern.match(f"{place}/"), shown) for pattern, shown in _patterns(_temporary()))
            found |= dict([(match[0], shown) for match, shown in matches if match is not None][:1])
    return found


def readable(text: str) -> str:
    """The text with what is no text in it, such as the odd bytes of a file's name, spelled out."""
    return text.encode(errors="backslashreplace").decode()


def _temporary() -> str:
    """The folder for temporary files; empty where there is none."""
    try:
        return tempfile.gettempdir()
    except OSError:
        return ""


@cache
def _patterns(temporary: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Patterns of all folders below the one for temporary files, also where links lead to it."""
    if not temporary:
        return ()
    places = dict.fromkeys((temporary, os.path.realpath(temporary)))
    found = "|".join(re.escape(place.rstrip("/")) for place in places)
    return tuple((re.compile(f"(?:{found})/{folder}"), shown) for folder, shown in _FOLDERS)
