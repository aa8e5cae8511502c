"""Writing an object only where there is none, or only while it is the one that was read.

Each kind of store has its own way to say it; fsspec knows only the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final
from urllib.parse import quote

__all__ = ["Conflict", "create", "replace_unchanged", "token_in", "token_of"]

_REFUSED: Final = re.compile(r"\b412\b|pre-?condition|ConditionNotMet|BlobAlreadyExists", re.IGNORECASE)
"""How the clients of object stores say that a condition does not hold; their classes differ from release to release."""


class Conflict(Exception):
    """The object is there, or is another by now."""


def token_of(files: Any, place: str) -> str | None:
    """A token that changes whenever the object does; None where there is no object, or no such token."""
    try:
        seen = files.info(place)
    except FileNotFoundError:
        return None
    return token_in(seen) or None


def token_in(seen: Mapping[str, Any]) -> str:
    """The token in the entry of an object in a listing; empty where the entry has none."""
    for name in ("generation", "ETag", "etag", "mtime", "created"):
        if seen.get(name) is not None:
            return f"{seen[name]}"
    return ""


def create(files: Any, place: str, content: bytes) -> None:
    """Write an object where there is none.

    Raises:
        Conflict: If there is one.
    """
    with _as_conflict(place):
        if _kind(files) in ("gs", "s3", "az"):
            files.pipe_file(place, content, mode="create")
        elif files.exists(place):
            # Elsewhere there is nothing better: of two writers in the same moment, both may succeed.
            raise Conflict(place)
        else:
            files.pipe_file(place, content)


def replace_unchanged(files: Any, place: str, content: bytes, token: str | None) -> None:
    """Write an object while it has the token.

    Raises:
        Conflict: If it has another by now.
    """
    kind = _kind(files) if token is not None else ""
    with _as_conflict(place):
        if kind == "s3":
            files.pipe_file(place, content, IfMatch=token)
        elif kind == "az":
            conditions: Any = import_module("azure.core").MatchConditions
            files.pipe_file(place, content, etag=token, match_condition=conditions.IfNotModified)
        elif kind == "gs":
            bucket, _, key = place.partition("/")
            files.call(
                "POST",
                f"{files._location}/upload/storage/v1/b/{quote(bucket)}/o",
                name=key,
                uploadType="media",
                ifGenerationMatch=token,
                headers={"Content-Type": "application/octet-stream"},
                data=content,
            )
        elif token_of(files, place) == token:
            files.pipe_file(place, content)
        else:
            raise Conflict(place)


def _kind(files: Any) -> str:
    words = files.protocol if isinstance(files.protocol, list | tuple) else [files.protocol]
    return {"gs": "gs", "gcs": "gs", "s3": "s3", "s3a": "s3", "az": "az", "abfs": "az", "abfss": "az"}.get(words[0], "")


@contextmanager
def _as_conflict(place: str) -> Iterator[None]:
    """Refusals of a condition as one error, whatever the client calls them."""
    try:
        yield
    except Conflict:
        raise
    except FileExistsError as error:
        raise Conflict(place) from error
    except Exception as error:
        if _REFUSED.search(f"{type(error).__name__} {error}"):
            raise Conflict(place) from error
        raise
