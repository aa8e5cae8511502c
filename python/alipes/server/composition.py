"""Ensembles and the models that they are made of: which need which, and whether they fit together.

Nothing here loads anything, and nothing here waits: `ensembles` does, and asks.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from alipes.config.limits import MAX_ENSEMBLE_DEPTH
from alipes.config.platforms import ENSEMBLE
from alipes.config.schema import ModelConfig, copy_config
from alipes.config.validate.composing import check_composing
from alipes.errors import ConfigError
from alipes.server.builder import Loaded, Request
from alipes.server.failures import LoadFailed, load_failed
from alipes.types import ModelKey

__all__ = ["Circle", "Composition", "check_nesting", "compose", "is_ensemble", "member_names", "missing"]

Find = Callable[[str, str], ModelKey | None]
"""The model that serves under a name, given the namespace to prefer; none where there is none, or several."""


class Circle(LoadFailed):
    """An ensemble is a part of itself."""

    @classmethod
    def of(cls, key: ModelKey, reason: str) -> Circle:
        """The failure of an ensemble in a circle; the reason names two of those."""
        failure = load_failed(key.name, reason)
        return cls(failure.code, str(failure), reason=failure.reason)


def is_ensemble(config: ModelConfig) -> bool:
    """Whether a configuration is that of an ensemble."""
    return bool(config.platform == ENSEMBLE)


def member_names(config: ModelConfig) -> tuple[str, ...]:
    """The names of the models that an ensemble is made of, each once."""
    return tuple(sorted({step.model_name for step in config.ensemble_scheduling.step}))


class Composition:
    """The ensembles that were asked for, and the names of the models that each is made of."""

    def __init__(self) -> None:
        """Knows no ensemble."""
        self._lock = threading.Lock()
        # Changed under the lock and read without it, so each change replaces the whole.
        self._requests: Mapping[ModelKey, Request] = {}
        # Ensembles whose models are being loaded, by how many loads of each do so; and which of their models changed.
        self._loading: Counter[ModelKey] = Counter()
        self._changed: set[ModelKey] = set()

    def ensembles_of(self, model: str) -> tuple[ModelKey, ...]:
        """The ensembles that a model of this name is part of, in the order of their names."""
        return tuple(sorted(key for key, request in self._requests.items() if model in member_names(request.config)))

    def request(self, key: ModelKey) -> Request | None:
        """The arguments of an ensemble's last load; none of a model that is no ensemble."""
        return self._requests.get(key)

    def members_of(self, key: ModelKey) -> tuple[str, ...]:
        """The names of the models that an ensemble is made of; none of a model that is no ensemble."""
        request = self._requests.get(key)
        return member_names(request.config) if request is not None else ()

    def names_ensemble(self, model: str) -> bool:
        """Whether an ensemble of this name was asked for."""
        return any(key.name == model for key in self._requests)

    def record(self, key: ModelKey, request: Request | None) -> None:
        """Sets the request of an ensemble; `None` removes it."""
        with self._lock:
            others = {other: ensemble for other, ensemble in self._requests.items() if other != key}
            self._requests = others if request is None else {**others, key: request}

    def forget(self, key: ModelKey) -> None:
        """Removes the request of an ensemble; does nothing for a model that is none."""
        if key in self._requests:
            self.record(key, None)

    def begin(self, key: ModelKey) -> None:
        """The models of an ensemble are being loaded from now on; it is composed of them afterwards."""
        with self._lock:
            self._loading[key] += 1

    def end(self, key: ModelKey) -> bool:
        """They are loaded, or one of them could not be.

        Returns:
            Whether one of them has changed meanwhile by somebody else's doing.
        """
        with self._lock:
            self._loading -= Counter([key])  # keeps no zero
            changed = key in self._changed
            self._changed.discard(key)
            return changed

    def leave_to_load(self, key: ModelKey) -> bool:
        """Whether an ensemble, one of whose models has changed, is looked at by a load of it that is under way."""
        with self._lock:
            if key not in self._loading:
                return False
            self._changed.add(key)
            return True

    def above(self, model: str) -> tuple[ModelKey, ...]:
        """The ensembles that a model of this name is part of, also through others; the inner ones come first."""
        levels: dict[ModelKey, int] = {}
        names = {model}
        for level in range(MAX_ENSEMBLE_DEPTH):
            keys = {key for name in names for key in self.ensembles_of(name)}
            levels |= dict.fromkeys(keys, level)
            names = {key.name for key in keys}
        return tuple(sorted(levels, key=lambda key: (levels[key], key)))

    def check_depth(self, request: Request, find: Find) -> None:
        """Checks that an ensemble is no part of itself, and that ensembles do not stand too deep in it.

        Args:
            request: The ensemble.
            find: Finds what serves.

        Raises:
            LoadFailed: If one of them is so; a circle is a Circle.
        """
        key = request.folder.key
        inner: dict[ModelKey, Request] = {key: request}
        for _ in range(MAX_ENSEMBLE_DEPTH):
            found: dict[ModelKey, Request] = {}
            for one in inner.values():
                for name in member_names(one.config):
                    member = find(name, one.folder.namespace)
                    if member == key:
                        raise _circle(key, one.folder.name)
                    below = self._requests.get(member) if member is not None else None
                    if below is not None:
                        found[below.folder.key] = below
            inner = found
        if inner:
            raise _too_deep(key, key)


def check_nesting(key: ModelKey, within: tuple[ModelKey, ...]) -> None:
    """Checks that an ensemble can be loaded as a part of others.

    Args:
        key: The ensemble.
        within: The ensembles whose models are being loaded, the outermost first.

    Raises:
        LoadFailed: If it is one of them, or there are too many.
    """
    if key in within:
        raise _circle(key, within[-1].name)
    if len(within) >= MAX_ENSEMBLE_DEPTH:
        raise _too_deep(key, within[0])


def compose(request: Request, members: Mapping[str, Mapping[int, Loaded]]) -> Request:
    """Holds an ensemble against its models.

    Args:
        request: The ensemble.
        members: The versions that serve of each model, by its name.

    Returns:
        The request, with what follows from the models.

    Raises:
        LoadFailed: If a model does not serve, or they do not fit together.
    """
    key = request.folder.key
    if absent := [name for name in member_names(request.config) if not members[name]]:
        raise missing(key, absent)
    _check_versions(request, members)
    configs = {name: _newest(versions).plan.config for name, versions in members.items()}
    config = copy_config(request.config)
    try:
        config.model_transaction_policy.decoupled = check_composing(config, configs)
    except ConfigError as error:
        raise load_failed(key.name, str(error)) from error
    decoupled = {name for name, one in configs.items() if one.model_transaction_policy.decoupled}
    return replace(request, config=config, decoupled=frozenset(decoupled))


def missing(key: ModelKey, names: list[str]) -> LoadFailed:
    """The failure of an ensemble, models of which there are not, or more than once."""
    text = f"ensemble {key.name} contains models that are not available or ambiguous: {', '.join(names)}"
    return load_failed(key.name, text)


def _check_versions(request: Request, members: Mapping[str, Mapping[int, Loaded]]) -> None:
    name = request.folder.name
    for step in request.config.ensemble_scheduling.step:
        if step.model_version != -1 and step.model_version not in members[step.model_name]:
            raise load_failed(
                name,
                f"ensemble '{name}' depends on '{step.model_name}' whose required version {step.model_version} is "
                "not loaded.",
                advice="write model_version: -1 for the newest",
            )


def _newest(versions: Mapping[int, Loaded]) -> Loaded:
    return versions[max(versions)]


def _circle(key: ModelKey, last: str) -> Circle:
    return Circle.of(key, f"circular dependency between ensembles: {key.name} -> ... -> {last} -> {key.name}")


def _too_deep(key: ModelKey, outermost: ModelKey) -> LoadFailed:
    return load_failed(key.name, f"ensembles stand more than {MAX_ENSEMBLE_DEPTH} deep in '{outermost.name}'")
