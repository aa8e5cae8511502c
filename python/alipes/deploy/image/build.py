"""An image, made from what is installed here."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import BinaryIO, Final

import alipes
from alipes.deploy.app_place import APP_FOLDER, app_file, find_app
from alipes.deploy.image.bytecode import with_bytecode
from alipes.deploy.image.contents import Contents, Entry, Hashes, file
from alipes.deploy.image.interpreter import RELEASE, interpreter, program
from alipes.deploy.image.layer import Layer, key_of, write_layer
from alipes.deploy.image.layer_cache import LayerCache
from alipes.deploy.image.libraries import Libraries, find_libraries
from alipes.deploy.image.manifest import Built, Image, image_of
from alipes.deploy.image.models import find_models
from alipes.deploy.image.packages import Package, find_packages
from alipes.deploy.image.sbom import PATH, bill_of_materials
from alipes.deploy.image.settings import ENVIRONMENT_FOLDER, MODELS
from alipes.deploy.image.system import environment, system
from alipes.deploy.image.system_packages import SystemPackage, system_packages
from alipes.errors import ConfigError
from alipes.progress import Task

__all__ = ["Order", "build"]

_PACKAGES: Final = f"{ENVIRONMENT_FOLDER.lstrip('/')}/lib/python{RELEASE}/site-packages"
_TERMS: Final = "usr/share/doc/{}/copyright"
_TIME: Final = "SOURCE_DATE_EPOCH"


@dataclass(frozen=True, slots=True)
class Order:
    """What an image is to hold.

    Attributes:
        repository: The folder whose models go in, or the file of an app; None for an image with neither.
        extras: Extras of alipes whose packages go in.
        packages: Further packages.
        labels: Further labels.
    """

    repository: str | None = None
    extras: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Part:
    """A layer that is to be made."""

    name: str
    holds: str
    contents: Contents
    key: str


def build(order: Order, task: Task, cache: LayerCache | None = None) -> Image:
    """Makes an image: the same order gives the same bytes, as long as what is installed stays the same.

    Args:
        order: What it is to hold.
        task: Hears how far it has come.
        cache: Where layers are kept; by default in the user's cache.

    Raises:
        ConfigError: If something of the order is not here, or cannot be read or written.
        Unsupported: If the library that reads requirements is not installed.
    """
    time_s, hashes = _time_s(), Hashes()
    cache = LayerCache() if cache is None else cache
    task.step("looking")
    app = None if order.repository is None else app_file(order.repository)
    models = None if order.repository is None else find_app(app) if app else find_models(order.repository)
    packages = find_packages(order.extras, order.packages)
    base = interpreter()
    libraries = find_libraries(program(), _sources([base, *(one.contents for one in packages)]))
    owners = system_packages(libraries.files.values())
    sbom = bill_of_materials(packages, libraries.files, owners, hashes, time_s)
    others, ours = [one for one in packages if not one.ours], [one for one in packages if one.ours]
    wanted = [
        (
            "interpreter",
            f"Python {platform.python_version()}, {len(libraries.files)} libraries",
            base | system(libraries) | _terms(owners.values()),
        ),
        ("packages", f"{len(others)} packages", _installed(others)),
        ("alipes", f"alipes {alipes.__version__}", _installed(ours) | environment()),
        ("sbom", "bill of materials", {PATH: Entry(0o644, data=sbom)}),
    ]
    if models is not None:
        names = models.names
        holds = names[0] if app else f"{len(names)} model{'s' * (len(names) != 1)}"
        wanted.append(("app" if app else "models", holds, models.contents))
    parts = [_Part(name, holds, contents, key_of(contents, hashes, time_s)) for name, holds, contents in wanted]
    layers = _layers(parts, cache, time_s, task)
    cache.shrink()
    served = f"{APP_FOLDER}/{app.name}" if app else MODELS
    image = image_of(layers, sbom, _missing(libraries), order.labels, time_s, served)
    return image if models is None else replace(image, left_out=models.left_out)


def _layers(parts: list[_Part], cache: LayerCache, time_s: int, task: Task) -> list[Built]:
    """The layers, those that are not kept made side by side."""
    found = {part.name: cache.find(part.key) for part in parts}
    todo = [part for part in parts if found[part.name] is None]
    sizes = [entry.source.stat().st_size for part in todo for entry in part.contents.values() if entry.source]
    task.step("compressing", float(sum(sizes)))
    stopped = Event()

    def advance(size: float) -> None:
        if stopped.is_set():
            raise CancelledError
        task.advance(size)

    def make(part: _Part) -> Layer:
        def write(out: BinaryIO) -> Layer:
            # Models are left as they are: their author may compare them.
            contents = part.contents if part.name in ("models", "app") else with_bytecode(part.contents)
            return write_layer(contents, out, time_s, advance)

        return cache.add(part.key, write)

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        try:
            made = dict(zip((part.name for part in todo), pool.map(make, todo), strict=True))
        finally:
            stopped.set()  # after Ctrl-C or an error, the others end at their next file
    layers = [(part, found[part.name] or made[part.name]) for part in parts]
    return [Built(part.name, part.holds, layer, cache.blob(layer), part.name not in made) for part, layer in layers]


def _installed(packages: Iterable[Package]) -> Contents:
    return {f"{_PACKAGES}/{path}": entry for one in packages for path, entry in one.contents.items()}


def _terms(owners: Iterable[SystemPackage]) -> Contents:
    """The licences of the system's packages, which go where their libraries go."""
    return {_TERMS.format(one.name): file(one.terms, runs=False) for one in owners if one.terms is not None}


def _sources(several: Iterable[Contents]) -> list[Path]:
    return [entry.source for contents in several for entry in contents.values() if entry.source is not None]


def _missing(libraries: Libraries) -> dict[str, Path]:
    """What lacks, apart from what packages for GPUs load: they look for it where it is."""
    return dict(sorted(libraries.missing.items()))


def _time_s() -> int:
    """The time of all files: that which the environment says, as builds that can be repeated do, or 1970.

    Source: https://reproducible-builds.org/specs/source-date-epoch
    """
    text = os.environ.get(_TIME, "0")
    if not text.isdecimal():
        raise ConfigError(f"{_TIME} is {text!r}: expected seconds since 1970", key=_TIME)
    return int(text)
