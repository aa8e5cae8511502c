"""Bodies of calls: a JSON document, a form with files, or one file as it is."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, Final, get_origin
from urllib.parse import parse_qsl

from alipes.worker.apps.documents import Documents, encode
from alipes.worker.apps.misfit import MALFORMED, MISSING, TOO_LARGE, UNREADABLE_TYPE, Misfit
from alipes.worker.apps.plan import Plan
from alipes.worker.apps.tensor_types import without_none

__all__ = ["MAX_PARTS", "MAX_PART_HEADER_BYTES", "Bodies"]

MAX_PARTS: Final = 1000
"""Most parts of a form: each costs the reader far more than its bytes."""

MAX_PART_HEADER_BYTES: Final = 8192
"""Most bytes of the headers of one part."""

_NO_TEXT: Final = bytes(byte for byte in range(32) if byte not in b"\t\r\n")
"""Bytes that no text has."""

_JSON: Final = ("", "application/json")
_MULTIPART: Final = "multipart/form-data"
_FORM: Final = "application/x-www-form-urlencoded"


class Bodies:
    """Reads the bodies of one function, and writes those that it answers with."""

    encode = staticmethod(encode)

    def __init__(self, plan: Plan, documents: Documents) -> None:
        """Takes what the function takes, and the reader of its documents."""
        self._documents = documents
        self._file = plan.file
        self._names = {one.name for one in plan.arguments}
        self._lists = {one.name for one in plan.arguments if _is_list(one.annotation)}
        self._texts = {one.name for one in plan.arguments if without_none(one.annotation)[0] is str}
        self._files = {one.name for one in plan.arguments if one.is_file}

    def read(self, body: bytes, content_type: str, query: str) -> dict[str, Any]:
        """The arguments that a body holds; beside a file as it is, the query holds the others.

        Raises:
            Misfit: If it does not fit, or is of a media type that the function does not take.
        """
        if content_type == "application/json":  # what nearly all clients send
            return self._document(body, query)
        kind = content_type.partition(";")[0].strip().lower()
        if self._is_document(kind, body):
            return self._document(body, query)
        if kind == _MULTIPART:
            return self._documents.convert(self._members(_parts(body, content_type)))
        if kind == _FORM:
            if (text := _form_text(body)) is not None:
                return self._documents.convert(self._members(_pairs(text)))
            kind = f"{_FORM} that holds other bytes than text"  # curl calls any file so
        if self._file is None:
            raise Misfit(
                f"a body of {kind or 'no media type'} is not taken; send application/json", status=UNREADABLE_TYPE
            )
        members = self._members(_pairs(query))
        return self._documents.convert({**members, self._file.name: body})

    def _document(self, body: bytes, query: str) -> dict[str, Any]:
        """The arguments in a document. An empty one is most likely an oversight."""
        try:
            return self._documents.read(body)
        except Misfit as error:
            if body or error.what != MISSING:
                raise
            instead = "the query is not read, and the body is empty" if query else "the body is empty"
            raise Misfit(f"{MISSING}: {instead}; send the arguments as a JSON object", path=error.path) from error

    def _is_document(self, kind: str, body: bytes) -> bool:
        """Whether a body is JSON; what begins as a document is one, also where curl calls `-d '{...}'` a form."""
        begins = body[:1] in (b"{", b"[", b'"', b"")
        if kind == _FORM or (not kind and self._file is not None):
            return begins
        return kind in _JSON or kind.endswith("+json")

    def _members(self, pairs: list[tuple[str, str | bytes]]) -> dict[str, Any]:
        """Names and texts of a form as members of a document."""
        members: dict[str, Any] = {}
        for name, value in pairs:
            item = self._value(name, value)
            if name in self._lists and not isinstance(item, list):
                members.setdefault(name, []).append(item)
            else:
                members[name] = item
        return members

    def _value(self, name: str, value: str | bytes) -> Any:
        if name in self._files:
            return value if isinstance(value, bytes) else value.encode()
        if isinstance(value, bytes):
            if name in self._lists or name not in self._names:
                return value  # a file among several, or one that the function does not take
            value = _decoded(value, name)
        if name in self._texts:
            return value
        return _json_or_text(value)


def _json_or_text(text: str) -> Any:
    """What a text of a form says as JSON; the text itself where it says nothing."""
    import msgspec

    if text[:1] not in ("{", "["):
        return text  # a number in a text is read where a number is wanted
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _decoded(value: bytes, name: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise Misfit("expected text, got a file", path=f".{name}") from error


def _form_text(body: bytes) -> str | None:
    """The text of a form; None where it cannot be one, such as a picture that was sent as it is."""
    if len(body.translate(None, _NO_TEXT)) != len(body):
        return None
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def _pairs(text: str) -> list[tuple[str, str | bytes]]:
    try:
        return [*parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_PARTS)]
    except ValueError as error:
        raise Misfit(f"the form has more than {MAX_PARTS} fields", status=TOO_LARGE) from error


def _parts(body: bytes, content_type: str) -> list[tuple[str, str | bytes]]:
    """Names and contents of the parts of a form: bytes where a part is a file, else text."""
    import multipart  # type: ignore[import-untyped]  # on use: few functions take forms

    options: Mapping[str, str] = multipart.parse_options_header(content_type)[1]
    boundary = options.get("boundary", "")
    if not boundary:
        raise Misfit("multipart/form-data without a boundary", status=MALFORMED)
    found: list[tuple[str, str | bytes]] = []
    try:
        parser = multipart.MultipartParser(
            io.BytesIO(body),
            boundary,
            content_length=len(body),
            headersize_limit=MAX_PART_HEADER_BYTES,
            part_limit=MAX_PARTS,
            memory_limit=len(body) + 1,
            spool_limit=len(body) + 1,
            disk_limit=len(body) + 1,
        )
        for part in parser:
            raw = part.raw
            is_file = part.filename is not None or (part.content_type or "").startswith("application/octet-stream")
            found.append((part.name, raw if is_file else _decoded(raw, part.name)))
    except multipart.ParserLimitReached as error:
        raise Misfit(f"the form is over a limit ({MAX_PARTS} parts): {error}", status=TOO_LARGE) from error
    except multipart.MultipartError as error:
        raise Misfit(f"the form cannot be read: {error}", status=MALFORMED) from error
    return found


def _is_list(annotation: Any) -> bool:
    bare, _ = without_none(annotation)
    return bare in (list, tuple) or get_origin(bare) in (list, tuple)
