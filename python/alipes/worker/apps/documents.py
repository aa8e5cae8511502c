"""Documents of a function: JSON into arguments, values into JSON, and what does not fit.

msgspec reads and checks JSON in one pass, and names the place of what does not fit. A list of four numbers and a count
took it 0.5 µs where pydantic took 2.0, an answer of that size 0.5 where it took 1.1 (two cores, Python 3.11), and
installed it is a seventeenth of pydantic.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from alipes.worker.apps.annotations import check, or_unset, readable
from alipes.worker.apps.custom import from_json, is_pydantic, to_json
from alipes.worker.apps.json_library import msgspec
from alipes.worker.apps.members import Members
from alipes.worker.apps.misfit import MALFORMED, NO_CHOICE, Misfit, misfit_of
from alipes.worker.apps.plan import Argument, Plan
from alipes.worker.apps.records import fields_of, is_record
from alipes.worker.apps.tensor_types import without_none

__all__ = ["Documents", "encode"]

_MAX_KEYS: Final = 10_000
"""Most members of a dictionary among which the wrong one is looked for."""

_NUMBERS_OF_PYTHON: Final = re.compile(rb"(?<![\w\"])-?(NaN|Infinity|nan|inf)(?![\w\"])")
"""What Python's own writer of JSON makes of numbers that JSON lacks."""

_CONSTANTS: Final = (bool, int, float, str, bytes, types.NoneType)

_encoder: Final = msgspec.json.Encoder(enc_hook=to_json)


_MALFORMED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What readers of JSON raise for a body that is none; `ValidationError` is a `DecodeError` and has to come before."""


def _malformed(error: Exception, body: bytes) -> Misfit:
    if isinstance(error, RecursionError):
        return Misfit("the body is nested too deeply", status=MALFORMED)
    return Misfit(f"the body is no JSON: {error}{_no_json(body)}", status=MALFORMED)


def _no_json(body: bytes) -> str:
    """What a malformed body most likely holds that JSON lacks."""
    if found := _NUMBERS_OF_PYTHON.search(body):
        return f"; JSON has no {found[1].decode()}: send null where the function takes None, or a tensor over V2"
    if body.lstrip()[:2].replace(b" ", b"") in (b"{'", b"['"):
        return "; JSON puts texts in double quotes"
    return ""


def encode(value: Any) -> bytes:
    """A value as JSON: NaN and infinities become null, bytes and pictures base64.

    Raises:
        TypeError: If something in it cannot be.
    """
    try:
        return _encoder.encode(value)
    except (ValueError, OverflowError, RecursionError) as error:
        raise TypeError(f"the value cannot be answered as JSON: {error}") from error


class Documents:
    """Reads the documents of one function."""

    def __init__(self, plan: Plan, model: str) -> None:
        """Compiles the reader.

        Args:
            plan: What the function takes.
            model: The model's name, for errors.

        Raises:
            ConfigError: If an annotation cannot be served.
        """
        fields = [_field(one) for one in plan.arguments]
        self._leaves_out = any(field[2:] == (msgspec.UNSET,) for field in fields)
        for field, argument in zip(fields, plan.arguments, strict=True):
            check(field[1], model, argument.name, argument.annotation)
        self.type: Any = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
        self._decoder = msgspec.json.Decoder(self.type, dec_hook=from_json)
        self._members = Members(plan)
        self._alone = _alone(plan)

    def read(self, body: bytes) -> dict[str, Any]:
        """The arguments in a document; an empty one has none.

        A document that is no object is the argument of a function that needs one. So is an object that a class
        describes, where it does not name the argument: FastAPI and BentoML take such bodies.

        Raises:
            Misfit: If it does not fit.
        """
        body = body or b"{}"
        try:
            return self._arguments(self._decoder.decode(body))
        except msgspec.ValidationError as error:
            if (found := self._read_alone(error, body)) is not None:
                return found
            raise self._with_choices(self._explain(error, body, strict=True)) from error
        except _MALFORMED as error:
            raise _malformed(error, body) from error

    def convert(self, members: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a form: texts stand for numbers, bytes for files.

        Raises:
            Misfit: If they do not fit.
        """
        try:
            found = msgspec.convert(dict(members), self.type, strict=False, dec_hook=from_json)
        except msgspec.ValidationError as error:
            raise self._with_choices(self._members.explain(misfit_of(error), members)) from error
        return self._arguments(found)

    def _read_alone(self, error: Exception, body: bytes) -> dict[str, Any] | None:
        """The arguments where the document is the value of the only one that is needed; None where it is not.

        Raises:
            Misfit: If the document is no object, and does not fit that argument either, or is malformed further on.
        """
        found = misfit_of(error)
        if self._alone is None or not self._members.is_meant(found):
            return None
        try:
            if found.path and not self._alone.is_described(msgspec.json.decode(body)):
                return None
            value = self._alone.decoder.decode(body)
        except msgspec.ValidationError as other:
            if found.path:
                return None
            raise misfit_of(other) from other
        except _MALFORMED as malformed:  # further on
            raise _malformed(malformed, body) from malformed
        return self._arguments(self.type(**{self._alone.name: value}))

    def _arguments(self, read: Any) -> dict[str, Any]:
        found = msgspec.structs.asdict(read)
        if self._leaves_out:
            return {name: value for name, value in found.items() if value is not msgspec.UNSET}
        return found

    def _with_choices(self, found: Misfit) -> Misfit:
        """The error, with the choices where it is about a word that is none of them."""
        if not found.what.startswith(NO_CHOICE):
            return found
        from alipes.choices import choices_at  # it loads a part of msgspec that nothing else needs

        word, choices = found.what.removeprefix(NO_CHOICE), choices_at(self.type, found.path)
        if not choices:
            return found
        return Misfit(f"{word} is none of {', '.join(choices)}", path=found.path, status=found.status)

    def _explain(self, error: Exception, body: bytes, *, strict: bool) -> Misfit:
        """The error with the keys of dictionaries, which msgspec leaves out of a path, looked for."""
        found = misfit_of(error)
        if "[...]" not in found.path and not self._members.is_meant(found):
            return found
        try:
            document = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return found  # it is malformed further on
        found = self._members.explain(found, document)
        while "[...]" in found.path:
            before, _, after = found.path.partition("[...]")
            key = self._wrong_key(document, before, found.what, strict)
            if key is None:
                return found
            found = Misfit(found.what, path=f"{before}[{key!r}]{after}", status=found.status)
            document = _only(document, before, key)
        return found

    def _wrong_key(self, document: Any, path: str, what: str, strict: bool) -> str | None:
        holder = _at(document, path)
        for key in list(holder)[:_MAX_KEYS] if isinstance(holder, dict) else []:
            try:
                msgspec.convert(_only(document, path, key), self.type, strict=strict, dec_hook=from_json)
            except msgspec.ValidationError as error:
                if misfit_of(error).what == what:
                    return str(key)
        return None


class _Alone(NamedTuple):
    """The argument that a document may be the value of.

    Attributes:
        name: Its name.
        decoder: Reads a document as it.
        members: The members that its class describes; none where an object cannot be told from a misspelled argument.
    """

    name: str
    decoder: Any
    members: frozenset[str]

    def is_described(self, document: Mapping[str, Any]) -> bool:
        """Whether an object has members that the class describes, and no others."""
        return bool(document) and document.keys() <= self.members


def _alone(plan: Plan) -> _Alone | None:
    """The only argument that a function needs, or has; None where there are others."""
    needed = [one for one in plan.arguments if one.required]
    candidates = needed if len(needed) == 1 else plan.arguments
    if len(candidates) != 1:
        return None
    only = candidates[0]
    bare, _ = without_none(only.annotation)
    decoder = msgspec.json.Decoder(readable(only.annotation), dec_hook=from_json)
    return _Alone(only.name, decoder, _described(bare))


def _described(kind: Any) -> frozenset[str]:
    """The members that a class describes."""
    if is_pydantic(kind):
        fields = kind.model_fields.items()
        return frozenset({*dict(fields)} | {one.alias for _, one in fields if one.alias})
    try:
        return frozenset(name for name, _, _ in fields_of(kind)) if is_record(kind) else frozenset()
    except NameError:
        return frozenset()  # `check` says which name


def _field(argument: Argument) -> tuple[Any, ...]:
    """An argument as a field of the document: name, type, and default.

    A default that nobody can change stands in the reader; any other is left to the function, whose own it stays.
    """
    name, kind = argument.name, readable(argument.annotation)
    if argument.required:
        return name, kind
    if isinstance(argument.default, _CONSTANTS):
        return name, kind, argument.default
    return name, or_unset(kind), msgspec.UNSET


def _at(document: Any, path: str) -> Any:
    """What stands at a path; None where nothing does."""
    for step in _steps(path):
        try:
            document = document[step]
        except (KeyError, IndexError, TypeError):
            return None
    return document


def _only(document: Any, path: str, key: Any) -> Any:
    """A copy of a document in which the dictionary at a path has one key alone."""
    steps = _steps(path)
    if not steps:
        return {key: document[key]}
    first, rest = steps[0], steps[1:]
    inner = _only(document[first], _joined(rest), key)
    if isinstance(document, list):
        return [inner if index == first else item for index, item in enumerate(document)]
    return {name: inner if name == first else item for name, item in document.items()}


def _steps(path: str) -> list[Any]:
    found = re.findall(r"\.([^.\[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]", path)
    return [member or (int(index) if index else key) for member, index, key in found]


def _joined(steps: list[Any]) -> str:
    return "".join(f"[{one}]" if isinstance(one, int) else f"[{one!r}]" for one in steps)
