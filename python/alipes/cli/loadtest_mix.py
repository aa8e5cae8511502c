"""The entries of `--mix`: `MODEL[:VERSION][=WEIGHT][@ADDRESS]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias

from alipes.cli.connection import with_scheme
from alipes.cli.failures import UsageFailed

if TYPE_CHECKING:
    from alipes.client import Tls

__all__ = ["Entry", "Shapes", "data_of", "read_entry", "shapes_of"]

Shapes: TypeAlias = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Entry:
    """One model of a mix.

    Attributes:
        name: What it is called: all of the entry but its weight.
        model: The model's name.
        version: Its version; the server chooses where it is empty.
        weight: How often it is sent beside the others.
        address: Its server; that of `--url` where it is empty.
    """

    name: str
    model: str
    version: str
    weight: float
    address: str

    def at(self, default: str, encrypted: bool) -> Self:
        """The same with the address of its server."""
        address = with_scheme(self.address, encrypted=encrypted) if self.address else default
        return replace(self, address=address)


def read_entry(word: str) -> Entry:
    """Reads `digits:2=3@grpc://localhost:8001`.

    Raises:
        UsageFailed: If it is none.
    """
    front, at, address = word.partition("@")
    versioned, equals, text = front.partition("=")
    name, colon, number = versioned.rpartition(":")
    is_versioned = bool(colon) and number.isdecimal()
    model, version = (name, number) if is_versioned else (versioned, "")
    try:
        weight = float(text) if equals else 1.0
    except ValueError:
        weight = 0.0
    if not (model and 0 < weight < float("inf")) or (at and not address):
        raise UsageFailed(f"write --mix MODEL[:VERSION][=WEIGHT][@ADDRESS] such as digits=3, not {word!r}")
    return Entry(f"{versioned}{at}{address}", model, version, weight, address)


def data_of(entries: Sequence[Entry], words: Sequence[str]) -> list[Path | None]:
    """The file of arrays of each entry, from `NAME=FILE`: NAME is the entry, or its model; `None` where it has none.

    Raises:
        UsageFailed: If a word is none, names no entry, or names what another does.
    """
    files: dict[str, Path] = {}
    known = {name for entry in entries for name in (entry.name, entry.model)}
    for word in words:
        name, _, file = word.partition("=")
        if not (name and file):
            raise UsageFailed(f"with --mix write --data MODEL=FILE such as {entries[0].model}=inputs.npz, not {word!r}")
        if name not in known:
            listed = " and ".join(entry.name for entry in entries)
            raise UsageFailed(f"write --data MODEL=FILE: --data names {name!r}, but --mix has {listed}")
        if name in files:
            raise UsageFailed(f"give --data {name} once: it names '{files[name]}' and '{file}'")
        files[name] = Path(file)
    return [files.get(entry.name, files.get(entry.model)) for entry in entries]


def shapes_of(
    entries: Sequence[Entry],
    shapes: Sequence[tuple[str, tuple[int, ...]]],
    headers: Mapping[str, str],
    tls: Tls | None,
) -> list[Shapes]:
    """The shapes for each entry: those of its inputs, and first of all those that are written `MODEL/INPUT`.

    Raises:
        UsageFailed: If no model has such an input.
        AlipesError: If a server is not there, or does not know its model.
    """
    if not shapes:
        return [{} for _ in entries]
    unknown = {name for name, _ in shapes}
    chosen: list[Shapes] = []
    for entry in entries:
        inputs = _inputs(entry, headers, tls)
        own = {name: name for name in inputs} | {f"{entry.model}/{name}": name for name in inputs}
        fitting = sorted((pair for pair in shapes if pair[0] in own), key=lambda pair: pair[0] not in inputs)
        unknown -= {name for name, _ in fitting}
        chosen.append({own[name]: sizes for name, sizes in fitting})
    if unknown:
        raise UsageFailed(
            f"no model of --mix has an input {min(unknown)!r} without --data: "
            "write --shape INPUT:D,D or MODEL/INPUT:D,D"
        )
    return chosen


def _inputs(entry: Entry, headers: Mapping[str, str], tls: Tls | None) -> Sequence[str]:
    from alipes.client import Client

    with Client(entry.address, headers=dict(headers), tls=tls) as client:
        return list(client.signature(entry.model, entry.version).inputs)
