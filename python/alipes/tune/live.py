"""Trials on a server that runs already: models are loaded with changes, and go back at the end or by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from alipes.client import Client
from alipes.config.override import from_document
from alipes.config.schema import ModelConfig
from alipes.errors import AlipesError
from alipes.tune.knobs import Value
from alipes.tune.measure import measure
from alipes.tune.models import TunedModel
from alipes.tune.outcome import Outcome
from alipes.tune.point import Point
from alipes.tune.trials import Workload
from alipes.tune.variant import changed, provisional

__all__ = ["LiveTrials", "read_live"]

_SILENCE_S: Final = 60.0
"""The server goes back so long after the longest trial, where this process says nothing more."""


def read_live(address: str, names: Iterable[str]) -> dict[str, TunedModel]:
    """The models of these names and those that ensembles among them are made of, as a server has them.

    Raises:
        AlipesError: If the server is not there, or does not have one.
    """
    found: dict[str, TunedModel] = {}
    waiting = list(names)
    with Client(address) as client:
        while waiting:
            name = waiting.pop(0)
            if name not in found:
                found[name] = TunedModel(name, None, from_document(client.config(name)))
                waiting.extend(found[name].steps)
    return found


class LiveTrials:
    """Trials on a running server that loads by name. A context manager: its models go back at the end.

    A point whose number of instances alone differs from what serves is a change in place.
    """

    def __init__(self, address: str, models: Mapping[str, TunedModel], workload: Workload) -> None:
        """Changes nothing yet.

        Args:
            address: The server.
            models: As they are there.
            workload: What is measured; its protocol is that of the address, its flags say nothing here.
        """
        self._address = address
        self._models = models
        self._workload = workload
        self._serving: dict[str, Mapping[str, Value]] = {}
        measuring = workload.measuring
        self._silence_s = _SILENCE_S + 2 * (measuring.warm_up_s + measuring.window_s * measuring.windows)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Takes all changes back."""
        with Client(self._address) as client:
            for name in self._serving:
                with suppress(AlipesError):  # the server goes back by itself then
                    client.load(name)
        self._serving = {}

    def completed(self) -> dict[str, ModelConfig]:
        """The configurations of all models."""
        return {name: model.written for name, model in self._models.items()}

    def run(self, point: Point) -> Outcome:
        """Tries a point; models that serve with its configuration are only told to stay so."""
        try:
            with Client(self._address) as client:
                for name in self._models:
                    self._load(client, name, point.variant.of_model(name))
            return measure(point, self._address, self._workload.requests, self._workload.measuring)
        except AlipesError as error:
            return Outcome(point, failure=" ".join(str(error).split()))

    def _load(self, client: Client, name: str, values: Mapping[str, Value]) -> None:
        if not values:
            return
        config = changed(self._models[name].written, values)
        seconds = min(self._silence_s, 3600.0)
        self._serving[name] = values
        client.load(name, config=provisional(config, seconds))
