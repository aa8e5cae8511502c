"""Ensembles and the models that they are made of: which need which, and whether they fit together.

An ensemble is loaded after its models, and looked at again when one of them comes, changes or goes. Nothing here loads
anything: `lifecycle` does, and asks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from alipes.config.limits import MAX_ENSEMBLE_DEPTH
from alipes.config.platforms import ENSEMBLE
from alipes.config.schema import ModelConfig, copy_config
from alipes.config.validate.composing import check_composing
from alipes.errors import ConfigError
from alipes.server.builder import Loaded, Request
from alipes.server.failures import LoadFailed
from alipes.types import ModelKey

__all__ = ["Absent", "Composition", "Member", "is_ensemble", "member_names"]

Member = Callable[[str, str], Mapping[int, Loaded]]
"""Has a model loaded, given its name and the namespace to prefer; gives its versions.

Raises Absent where there is no such model, or several; LoadFailed where none of its versions serves.
"""


class Absent(Exception):
    """There is no model of this name, it is not unique, or its configuration cannot be read."""


class _Circle(LoadFailed):
    """An ensemble is a part of itself."""


def is_ensemble(config: ModelConfig) -> bool:
    """Whether a configuration is that of an ensemble."""
    return bool(config.platform == ENSEMBLE)


def member_names(config: ModelConfig) -> tuple[str, ...]:
    """The names of the models that an ensemble is made of, each once."""
    return tuple(sorted({step.model_name for step in config.ensemble_scheduling.step}))


class Composition:
    """The ensembles that were asked for, and the names of the models that each is made of.

    One thread at a time composes: a model may be a part of several ensembles, and an ensemble of others. Who holds the
    lock of a single model never waits for this one.
    """

    def __init__(self) -> None:
        """Knows no ensemble."""
        self.lock = threading.RLock()
        # Changed under the lock and read without it, so each change replaces the whole.
        self._requests: Mapping[ModelKey, Request] = {}
        self._under_way: list[ModelKey] = []

    def ensembles_of(self, model: str) -> tuple[ModelKey, ...]:
        """The ensembles that a model of this name is part of, in the order of their names."""
        return tuple(sorted(key for key, request in self._requests.items() if model in member_names(request.config)))

    def request(self, key: ModelKey) -> Request | None:
        """The arguments of an ensemble's last load; none of a model that is no ensemble."""
        return self._requests.get(key)

    def is_under_way(self, key: ModelKey) -> bool:
        """Whether an ensemble is being composed now."""
        return key in self._under_way

    def members_of(self, key: ModelKey) -> tuple[str, ...]:
        """The names of the models that an ensemble is made of; none of a model that is no ensemble."""
        request = self._requests.get(key)
        return member_names(request.config) if request is not None else ()

    def forget(self, key: ModelKey) -> None:
        """Removes the request of an ensemble; does nothing for a model that is none."""
        if key in self._requests:
            self.restore(key, None)

    def restore(self, key: ModelKey, request: Request | None) -> None:
        """Sets the request of an ensemble to an earlier one; `None` removes it."""
        with self.lock:
            others = {other: ensemble for other, ensemble in self._requests.items() if other != key}
            self._requests = others if request is None else {**others, key: request}

    def compose(self, request: Request, member: Member) -> Request:
        """Has an ensemble's models loaded, and holds it against them. For one thread at a time.

        Args:
            request: The ensemble.
            member: Has one model loaded.

        Returns:
            The request, with what follows from the models.

        Raises:
            LoadFailed: If a model is missing or does not serve, or they do not fit together.
        """
        key = request.folder.key
        with self._going_on(key):
            self._requests = {**self._requests, key: request}
            loaded = self._load(request, member)
        _check_versions(request, loaded)
        configs = {name: _newest(versions).plan.config for name, versions in loaded.items()}
        config = copy_config(request.config)
        try:
            config.model_transaction_policy.decoupled = check_composing(config, configs)
        except ConfigError as error:
            raise _refused(key, str(error)) from error
        decoupled = {name for name, one in configs.items() if one.model_transaction_policy.decoupled}
        return replace(request, config=config, decoupled=frozenset(decoupled))

    @contextmanager
    def _going_on(self, key: ModelKey) -> Iterator[None]:
        if key in self._under_way:
            names = f"{key.name} -> ... -> {self._under_way[-1].name} -> {key.name}"
            raise _refused(key, f"circular dependency between ensembles: {names}", _Circle)
        if len(self._under_way) >= MAX_ENSEMBLE_DEPTH:
            text = f"ensembles stand more than {MAX_ENSEMBLE_DEPTH} deep in '{self._under_way[0].name}'"
            raise _refused(key, text)
        self._under_way.append(key)
        try:
            yield
        finally:
            self._under_way.pop()

    def _load(self, request: Request, member: Member) -> dict[str, Mapping[int, Loaded]]:
        """Every model is tried, so that all that are missing can be named."""
        key = request.folder.key
        loaded: dict[str, Mapping[int, Loaded]] = {}
        missing: list[str] = []
        failed: list[str] = []
        for name in member_names(request.config):
            try:
                loaded[name] = member(name, key.namespace)
            except _Circle as circle:
                raise _refused(key, circle.reason, _Circle) from circle
            except Absent:
                missing.append(name)
            except LoadFailed as failure:
                failed.append(self._broken(key, name, failure))
        if missing:
            names = ", ".join(missing)
            raise _refused(key, f"ensemble {key.name} contains models that are not available or ambiguous: {names}")
        if failed:
            raise _refused(key, failed[0])
        return loaded

    def _broken(self, key: ModelKey, name: str, failure: LoadFailed) -> str:
        depends = f"ensemble '{key.name}' depends on '{name}' which"
        if any(other.name == name for other in self._requests):
            return f"{depends} is not valid. Model '{name}' failed with error: {failure.reason}"
        return f"{depends} has no loaded version. Model '{name}' loading failed with error: {failure.reason}"


def _check_versions(request: Request, loaded: Mapping[str, Mapping[int, Loaded]]) -> None:
    key = request.folder.key
    for step in request.config.ensemble_scheduling.step:
        if step.model_version != -1 and step.model_version not in loaded[step.model_name]:
            raise _refused(
                key,
                f"ensemble '{key.name}' depends on '{step.model_name}' whose required version {step.model_version} is "
                "not loaded.",
            )


def _newest(versions: Mapping[int, Loaded]) -> Loaded:
    return versions[max(versions)]


def _refused(key: ModelKey, reason: str, kind: type[LoadFailed] = LoadFailed) -> LoadFailed:
    return kind("INVALID_ARG", f"load failed for model '{key.name}': {reason}\n", reason=reason)
