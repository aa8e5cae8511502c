"""Documents against the published schemas of Kubernetes, with everything that is wrong at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module, resources
from typing import Any, Final, NamedTuple

from alipes.errors import ConfigError, Unsupported

__all__ = ["NEWEST", "Fault", "check_objects", "faults_of"]

NEWEST: Final = "newest"
"""The newest version of Kubernetes whose schemas are installed."""
_SCHEMAS: Final = "kubernetes-json-schema"
_MOST_SHOWN: Final = 20
"""Faults in one message; the number of the others is named."""


class Fault(NamedTuple):
    """One place that is wrong.

    Attributes:
        where: Kind and name of the object, then the path in it.
        what: What is wrong there.
    """

    where: str
    what: str


def check_objects(objects: Iterable[Mapping[str, Any]], path: str = "", version: str = NEWEST) -> list[str]:
    """Refuses objects that Kubernetes would refuse.

    Args:
        objects: The objects.
        path: The file that they are from, for messages.
        version: Of Kubernetes, such as `1.33`.

    Returns:
        Kinds that Kubernetes does not have itself, whose objects were not looked at.

    Raises:
        ConfigError: If something is wrong; with all faults, each with its place.
        Unsupported: If the schemas are not installed.
    """
    faults: list[Fault] = []
    unknown: set[str] = set()
    for number, each in enumerate(objects, 1):
        try:
            faults += faults_of(each, number, version)
        except LookupError:
            unknown.add(str(each["kind"]))
    if faults:
        shown = [f"{fault.where}: {fault.what}" for fault in faults[:_MOST_SHOWN]]
        if len(faults) > _MOST_SHOWN:
            shown.append(f"and {len(faults) - _MOST_SHOWN} more")
        raise ConfigError("\n".join(shown), path=path or None)
    return sorted(unknown)


def faults_of(each: Mapping[str, Any], number: int = 1, version: str = NEWEST) -> Iterator[Fault]:
    """What is wrong with one object, in the order of its fields.

    Raises:
        LookupError: If Kubernetes has no such kind of its own.
    """
    if not isinstance(each, Mapping):
        yield Fault(f"document {number}", "expected an object of Kubernetes with apiVersion and kind")
        return
    for field in ("apiVersion", "kind"):
        if not isinstance(each.get(field), str):
            yield Fault(f"document {number}", f"'{field}' is missing")
            return
    name = each["metadata"].get("name", "") if isinstance(each.get("metadata"), Mapping) else ""
    where = f"{each['kind']}/{name or f'document {number}'}"
    if not name:
        yield Fault(where, "'metadata.name' is missing")
    validator = _validator(str(each["apiVersion"]), str(each["kind"]), _installed(version))
    for error in sorted(validator.iter_errors(each), key=lambda error: [str(part) for part in error.absolute_path]):
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
        yield Fault(where + place, error.message)


def _package() -> Any:
    try:
        return resources.files("kubernetes_validate")
    except ModuleNotFoundError as error:
        raise Unsupported("this needs the schemas of Kubernetes: pip install 'alipes[deploy]'") from error


@lru_cache(maxsize=8)
def _installed(version: str) -> str:
    """The folder of a version's schemas; the newest one where it is not named."""
    folders: dict[str, str] = {
        folder.name.removeprefix("v").split("-")[0]: folder.name
        for folder in (_package() / _SCHEMAS).iterdir()
        if folder.name.endswith("-local-strict")
    }
    by_age = sorted(folders, key=lambda name: [int(part) for part in name.split(".")])
    if version == NEWEST:
        return folders[by_age[-1]]
    wanted = [name for name in by_age if name.startswith(f"{version.removeprefix('v')}.")]
    if not wanted:
        known = ", ".join(".".join(name.split(".")[:2]) for name in by_age)
        raise ConfigError(f"no schemas of Kubernetes {version} are installed; there are those of {known}")
    return folders[wanted[-1]]


@lru_cache(maxsize=64)
def _validator(version: str, kind: str, folder: str) -> Any:
    referencing = import_module("referencing")
    resource = referencing.Resource.from_contents
    group, _, last = version.rpartition("/")
    name = "-".join(part for part in (kind.lower(), group.partition(".")[0], last) if part)
    schema = _schema(folder, f"{name}.json")
    registry = resource(_schema(folder, "_definitions.json")) @ referencing.Registry()
    return import_module("jsonschema").Draft202012Validator(schema, registry=resource(schema) @ registry)


@lru_cache(maxsize=64)
def _schema(folder: str, name: str) -> Any:
    file = _package() / _SCHEMAS / folder / name
    if not file.is_file():
        raise LookupError(name)
    return json.loads(file.read_text(encoding="utf-8"))
