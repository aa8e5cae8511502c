"""What the options of `alipes loadtest` say is sent, and the requests that they make of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from alipes.cli.connection import with_scheme
from alipes.cli.failures import UsageFailed
from alipes.cli.loadtest_mix import Entry, data_of, read_entry, shapes_of
from alipes.cli.loadtest_words import arrays
from alipes.cli.shapes import read_shape

if TYPE_CHECKING:
    import numpy as np

    from alipes.client import Tls
    from alipes.loadtest import Candidate, Share
    from alipes.loadtest.inputs import Data
    from alipes.loadtest.measure import Requests

__all__ = ["Sender", "Sent"]

Arrays: TypeAlias = "Mapping[str, np.ndarray[Any, Any]]"
"""The arrays of a file, by input."""

_JSON: Final = ("{", "[", '"')
"""How JSON begins that is typed in the place of a file."""
_LEAST_SEQUENCES: Final = 64
"""Correlation ids, where the command line names no number."""


@dataclass(frozen=True)
class Sent:
    """What the options say is sent; each field is an option."""

    model: str
    version: str
    batch: int
    shape: Sequence[str]
    zero: bool
    data: Sequence[str]
    stream: bool
    sequences: str | None
    shared_memory: bool
    shared_outputs: int
    mix: Sequence[str]
    path: str | None
    body: Sequence[Path]
    content_type: str
    checks: str | None
    replay: Sequence[Path] = ()

    def __post_init__(self) -> None:
        """Refuses what makes no sense together.

        Raises:
            UsageFailed: With the first such combination.
        """
        for is_wrong, text in self._mistakes():
            if is_wrong:
                raise UsageFailed(text)

    def _mistakes(self) -> list[tuple[bool, str]]:
        path, mix, data = self.path is not None, bool(self.mix), bool(self.data)
        of_tensors = self.stream or self.shared_memory or self.sequences is not None
        made = data or self.zero or bool(self.shape) or self.batch > 1
        return [
            (
                bool(self.replay) and (path or mix or made or of_tensors),
                "give --replay without other options of what is sent, but MODEL and --model-version",
            ),
            (
                "://" in self.model,
                "write alipes loadtest --url ADDRESS MODEL for a model, or --url ADDRESS --path /NAME --body FILE for "
                "a path: an address is no model",
            ),
            (path and (bool(self.model) or not self.body), "give --path with --body, and without a model"),
            (
                path and (mix or of_tensors),
                "give --path without --mix, --stream, --sequences and --shared-memory: it posts files as they are",
            ),
            (mix and bool(self.model), "name models as MODEL or with --mix, not both"),
            (mix and bool(self.version), "give --mix without --model-version: write --mix MODEL:VERSION"),
            (
                not mix and len(self.data) > 1,
                "give --data once: it may be given for each model of --mix alone",
            ),
            (
                mix and self.checks not in (None, "first"),
                "give --mix with --check first: a file has the answers of one model",
            ),
            (
                data and not mix and (self.zero or bool(self.shape)),
                "give --data without --zero and --shape: the arrays have their values and shapes",
            ),
            (self.shared_outputs > 0 and not self.shared_memory, "give --shared-outputs with --shared-memory"),
            (
                self.shared_outputs > 0 and self.checks is not None,
                "give --check without --shared-outputs: outputs in shared memory are written over each other",
            ),
        ]

    @property
    def title(self) -> str:
        """What is sent, in a word or two."""
        files = " and ".join(one.name or str(one) for one in self.replay)
        return self.model or self.path or files or " and ".join(read_entry(word).name for word in self.mix)


@dataclass(frozen=True)
class Sender:
    """Makes requests of what the options say.

    Attributes:
        sent: The options.
        callers: Most of a level.
        headers: Of each request.
        tls: How connections are encrypted.
        stack: Removes shared memory in the end.
    """

    sent: Sent
    callers: int
    headers: Mapping[str, str]
    tls: Tls | None
    stack: ExitStack

    def requests(self, model: str, address: str, version: str = "") -> Requests:
        """The requests for a model at an address.

        Raises:
            UsageFailed: If nothing is named, or a value is none.
            AlipesError: If the server refuses shared memory.
        """
        from alipes.loadtest import Posts

        sent = self.sent
        if sent.path is not None:
            return Posts(sent.path, [_body(one) for one in sent.body], sent.content_type)
        if sent.replay:
            return self._replayed(model, address, version or sent.version)
        if not model:
            raise UsageFailed("name a model, or give --mix, --replay, or --path and --body")
        values = arrays("--data", Path(sent.data[0])) if sent.data else None
        return self._made(model, address, version or sent.version, dict(map(read_shape, sent.shape)), values)

    def _replayed(self, model: str, address: str, version: str) -> Requests:
        from alipes.client.endpoint import Endpoint
        from alipes.loadtest.replay import read_replay

        over_http = Endpoint.parse(address, self.tls).wire == "http"
        replay = read_replay(self.sent.replay, model, version, over_http=over_http)
        if replay.notice:
            print(replay.notice, file=sys.stderr)
        return replay

    def spread(self, model: str, addresses: Sequence[str]) -> Requests | list[Share]:
        """The requests for one server, or for several: each is sent as many.

        Raises:
            UsageFailed: As `requests` and `mixed`.
            AlipesError: As `requests` and `mixed`.
        """
        from alipes.loadtest import Share

        if len(addresses) == 1:
            return self.mixed(addresses[0]) if self.sent.mix else self.requests(model, addresses[0])
        if self.sent.mix:
            raise UsageFailed("give --mix one --url: its entries name their servers, as digits@HOST:PORT")
        return [Share(self.requests(model, one), address=one, name=one) for one in addresses]

    def mixed(self, address: str) -> list[Share]:
        """The kinds of requests of a mix, with their shares.

        Raises:
            UsageFailed: If an entry or a file of arrays cannot be read, or no model has the input of a shape.
            AlipesError: If a server is not there, or does not know its model.
        """
        from alipes.loadtest import Share

        entries = [read_entry(word).at(address, self.tls is not None) for word in self.sent.mix]
        values = self._values_of(entries)
        without = [one for one, own in zip(entries, values, strict=True) if own is None]
        shapes = iter(shapes_of(without, list(map(read_shape, self.sent.shape)), self.headers, self.tls))
        return [
            Share(
                self._made(one.model, one.address, one.version, {} if own is not None else next(shapes), own),
                one.weight,
                one.address,
                one.name,
            )
            for one, own in zip(entries, values, strict=True)
        ]

    def candidate(self, word: str, address: str) -> Candidate:
        """One of two that are compared: an address, a version of the model, or a model.

        Raises:
            UsageFailed: If it is none of these.
            AlipesError: If the server refuses shared memory.
        """
        from alipes.loadtest import Candidate

        model = self.sent.model
        if ":" in word:
            address = with_scheme(word, encrypted=self.tls is not None)
            return Candidate(word, address, self.requests(model, address))
        if model and word.isdecimal():
            return Candidate(f"version {word}", address, self.requests(model, address, word))
        if model:
            raise UsageFailed(
                f"give --compare two addresses, or versions of {model}; leave MODEL out to compare models"
            )
        return Candidate(word, address, self.requests(word, address))

    def _values_of(self, entries: Sequence[Entry]) -> list[Arrays | None]:
        """The arrays of each entry of a mix, from its file; each file is read once."""
        sent = self.sent
        files = data_of(entries, sent.data)
        if all(files) and (sent.zero or sent.shape):
            raise UsageFailed("give --mix with --zero and --shape where a model has no --data")
        read = {file: arrays("--data", file) for file in files if file is not None}
        return [None if file is None else read[file] for file in files]

    def _made(
        self, model: str, address: str, version: str, shapes: Mapping[str, Sequence[int]], own: Arrays | None
    ) -> Requests:
        from alipes.loadtest import ModelRequests, Sequences, SharedMemoryRequests

        sent = self.sent
        values: Data | Arrays = ("zero" if sent.zero else "random") if own is None else own
        plain = ModelRequests(model, version, sent.batch, shapes, values, stream=sent.stream)
        made: ModelRequests | SharedMemoryRequests = plain
        if sent.shared_memory:
            room = sent.shared_outputs
            made = self.stack.enter_context(
                SharedMemoryRequests(plain, address, output_bytes=room, headers=self.headers, tls=self.tls)
            )
        if sent.sequences is None:
            return made
        length, number = _sequences(sent.sequences)
        if number is not None and number < self.callers:
            raise UsageFailed(
                f"give --sequences as many correlation ids as there are callers: {number} of {self.callers}"
            )
        return Sequences(made, length, number or max(self.callers, _LEAST_SEQUENCES))


def _body(word: Path) -> bytes:
    """What is posted: a file's bytes, or the JSON that was typed in its place.

    Raises:
        UsageFailed: If it is neither.
    """
    text = str(word)
    if text.startswith(_JSON):
        return text.encode()
    try:
        return word.read_bytes()
    except OSError as error:
        raise UsageFailed("give --body a file, or the JSON itself", f"{text}: {error.strerror}") from error


def _sequences(text: str) -> tuple[int, int | None]:
    length, colon, number = text.partition(":")
    try:
        return int(length), int(number) if colon else None
    except ValueError as error:
        raise UsageFailed(f"write --sequences as LENGTH or LENGTH:NUMBER, not {text!r}") from error
