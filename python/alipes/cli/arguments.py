"""The words behind a model's name, as a request: `INPUT=VALUE`, values alone, files, the standard input."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from alipes.cli.failures import CommandFailed, UsageFailed
from alipes.cli.unknown import nearest_option
from alipes.cli.values import Array, array_of, content_array, fitted, json_of, number, parsed, short
from alipes.client.signature import Signature, TensorSpec
from alipes.config.nearest import nearest_first
from alipes.synonyms import synonym

__all__ = ["Reader", "TypedRequest", "check_options", "described"]


@dataclass(slots=True)
class TypedRequest:
    """A request as it was typed.

    Attributes:
        inputs: Arrays by the name of their input.
        outputs: The outputs that it asks for; `None` for all.
        request_id: Its id.
        parameters: Parameters of the model's own.
        notes: What was changed to fit the model, a sentence each.
        bare: Names of the inputs that were given without their batch axis.
        single: Names of the inputs that were given as one value.
    """

    inputs: dict[str, Array] = field(default_factory=dict)
    outputs: list[str] | None = None
    request_id: str = ""
    parameters: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)
    bare: set[str] = field(default_factory=set)
    single: set[str] = field(default_factory=set)


class Reader:
    """Reads the words of one command line for one model."""

    def __init__(self, signature: Signature, standard_input: Callable[[], bytes] | None = None) -> None:
        """Reads nothing yet.

        Args:
            signature: What the model takes.
            standard_input: Reads all of the standard input, for `-`.
        """
        self._signature = signature
        self._standard_input = standard_input if standard_input is not None else sys.stdin.buffer.read
        self._request = TypedRequest()

    def request(self, words: Sequence[str]) -> TypedRequest:
        """The request of `infer`: `INPUT=VALUE` words, or a value alone where the model has one input.

        Raises:
            UsageFailed: If a value is missing, or has no name where the model has several inputs.
            CommandFailed: If a value is none for its input.
        """
        named, bare = self._sorted(words)
        if len(bare) == 1 and not named:
            self._add_only(bare[0])
        elif bare:
            spec = self._only_input(bare[0])
            self._add_array(spec, array_of(spec, [parsed(spec, one) for one in bare]))
        for name, word in named.items():
            self._add_word(self._signature.inputs[name], word)
        return self._complete()

    def call(self, words: Sequence[str]) -> TypedRequest:
        """The request of `ask`: values in the order of the inputs, then `INPUT=VALUE` words; or an object with all.

        Raises:
            UsageFailed: If there are more values than inputs, or fewer, or an input has two.
            CommandFailed: If a value is none for its input.
        """
        named, bare = self._sorted(words)
        specs = list(self._signature.inputs.values())
        if not words and self._needs_nothing():
            return self._without_arguments()
        if len(bare) == 1 and not named and (document := self._arguments(bare[0])):
            self._add_document(document)
            return self._complete()
        if len(bare) > len(specs):
            raise UsageFailed(described(self._signature), f"there are {len(bare)} values for {_inputs(len(specs))}")
        for spec, word in zip(specs, bare, strict=False):
            if spec.name in named:
                raise UsageFailed(f"give '{spec.name}' once", f"it is {short(word)} and {short(named[spec.name])}")
            self._add_word(spec, word)
        for name, word in named.items():
            self._add_word(self._signature.inputs[name], word)
        return self._complete()

    def _needs_nothing(self) -> bool:
        """Whether the model is a function that can be called without arguments."""
        function = self._signature.function
        return function is not None and not any(one.required for one in function.arguments.values())

    def _without_arguments(self) -> TypedRequest:
        """The request of `f()`: an empty document for a function that takes one, else no input at all."""
        for spec in self._signature.inputs.values():
            if spec.name in self._signature.required:
                self._add_array(spec, array_of(spec, "{}"))
        return self._request

    def _sorted(self, words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
        """The values with a name, and those without."""
        inputs = self._signature.inputs
        named: dict[str, str] = {}
        bare: list[str] = []
        texts = all(spec.datatype == "BYTES" for spec in inputs.values())
        for word in words:
            name, equals, value = word.partition("=")
            if not equals or (name not in inputs and (texts or not name.isidentifier())):
                bare.append(word)
            elif name in named:
                raise UsageFailed(f"give '{name}' once", f"it is {short(named[name])} and {short(value)}")
            else:
                named[self._input(name).name] = value
        return named, bare

    def _arguments(self, word: str) -> dict[str, Any] | None:
        """The object of all arguments that curl would send; None where the word is the value of the first."""
        try:
            document = json.loads(word) if word.lstrip().startswith("{") else None
        except ValueError:
            return None
        return document if document and document.keys() <= self._signature.inputs.keys() else None

    def _add_only(self, word: str) -> None:
        """Takes the only word: the value of the only input, or a document with values for several."""
        if word == "-" or word.startswith("@"):
            content = self._content(word)
            if content.lstrip().startswith(b"{"):
                self._add_document(json_of(content, word))
            else:
                spec = self._only_input(word)
                self._add_array(spec, content_array(spec, content, word, self._request.notes))
        elif word.lstrip().startswith("{"):
            self._add_document(json_of(word, "what was typed"))
        else:
            self._add_word(self._only_input(word), word)

    def _add_document(self, document: dict[str, Any]) -> None:
        """Takes a body of the V2 protocol, or values by the name of their input."""
        if isinstance(document.get("inputs"), list):
            return self._add_body(document)
        for name, value in document.items():
            spec = self._input(name)
            self._add_array(spec, array_of(spec, value))
        return None

    def _add_body(self, body: Mapping[str, Any]) -> None:
        for tensor in body["inputs"]:
            if not isinstance(tensor, dict) or not isinstance(tensor.get("name"), str) or "data" not in tensor:
                raise CommandFailed('give each of "inputs" a name, a datatype, a shape and data', short(str(tensor)))
            spec = self._input(tensor["name"])
            array = array_of(spec, tensor["data"])
            try:
                array = array.reshape(tensor.get("shape", array.shape))
            except (ValueError, TypeError) as error:
                raise CommandFailed(
                    f"input '{spec.name}': let shape and data agree",
                    f"the shape is {tensor.get('shape')}, the data has {array.size} elements",
                ) from error
            self._add_array(spec, array)
        outputs = [one["name"] for one in body.get("outputs", ()) if isinstance(one, dict) and "name" in one]
        self._request.outputs = outputs or None
        self._request.request_id = str(body.get("id", ""))
        self._request.parameters = body.get("parameters") or None

    def _add_word(self, spec: TensorSpec, word: str) -> None:
        if word == "-" or word.startswith("@"):
            array = content_array(spec, self._content(word), word, self._request.notes)
        else:
            array = array_of(spec, parsed(spec, word))
        self._add_array(spec, array)

    def _add_array(self, spec: TensorSpec, array: Array) -> None:
        sent = fitted(spec, array)
        if array.ndim == 0:
            self._request.single.add(spec.name)
        if sent.ndim != array.ndim:
            self._request.bare.add(spec.name)
            text = _shape(array.shape) if array.ndim else "one value"
            self._request.notes.append(f"input '{spec.name}' was given as {text} and is sent as {_shape(sent.shape)}")
        self._request.inputs[spec.name] = sent

    def _content(self, word: str) -> bytes:
        if word == "-":
            return self._standard_input()
        try:
            return Path(word[1:]).read_bytes()
        except OSError as error:
            raise CommandFailed(
                "name a file that can be read behind @", f"{word[1:] or 'nothing'}: {error.strerror}"
            ) from error

    def _input(self, name: str) -> TensorSpec:
        inputs = self._signature.inputs
        if name not in inputs:
            raise CommandFailed(
                f"model '{self._signature.model}' takes {nearest_first(name, inputs)}", f"it has no input '{name}'"
            )
        return inputs[name]

    def _only_input(self, word: str) -> TensorSpec:
        if len(self._signature.inputs) != 1:
            raise UsageFailed(described(self._signature), f"{short(word)} does not say which input it is for")
        return next(iter(self._signature.inputs.values()))

    def _complete(self) -> TypedRequest:
        signature = self._signature
        missing = set(signature.required - self._request.inputs.keys())
        if not self._request.inputs:
            missing = missing or set(signature.inputs)
        if missing:
            names = ", ".join(f"'{name}'" for name in sorted(missing))
            raise UsageFailed(described(signature), f"there is no value for {names}")
        return self._request


def described(signature: Signature) -> str:
    """What a model takes, in the form in which it is typed."""
    inputs = [f"{spec.name}={spec.datatype}{_shape(spec.shape)}" for spec in signature.inputs.values()]
    return f"model '{signature.model}' takes {' '.join(inputs) or 'nothing'}"


def check_options(called: str, words: Iterable[str], options: Iterable[str]) -> None:
    """Refuses words that look like options: negative numbers stand among the words, so these are not looked at before.

    Args:
        called: The command, such as `alipes ask`.
        words: What stands behind it.
        options: The options that there are.

    Raises:
        UsageFailed: If there is one.
    """
    for word in words:
        if word.startswith("-") and len(word) > 1 and number(word.partition(",")[0]) is None:
            name = word.partition("=")[0]
            raise UsageFailed(_meant(called, name, list(options)), f"there is no option {name}; --help lists them")


def _meant(called: str, name: str, options: Sequence[str]) -> str:
    for place in (called, "clients"):
        row = synonym(place, name.lstrip("-"))  # type: ignore[arg-type]
        if row is not None and (not row.meant or row.meant in options):
            return row.hint
    if close := nearest_option(name, options):
        return f"did you mean {close}?"
    return f"write a value without dashes: {called} NAME {name.lstrip('-')}=VALUE"


def _inputs(count: int) -> str:
    return "1 input" if count == 1 else f"{count} inputs"


def _shape(shape: Sequence[int]) -> str:
    return f"[{','.join(map(str, shape))}]"
