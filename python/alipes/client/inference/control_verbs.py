"""The control calls of `StreamClient`, in the words of `Client`, which makes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from alipes.client.arguments import Version
from alipes.client.plain.sync import Client
from alipes.client.signature import Signature
from alipes.client.triton_aliases import TritonAliases
from alipes.types import IndexEntry

__all__ = ["ControlVerbs"]


class ControlVerbs(TritonAliases, ABC):
    """What the methods of `Client` say, they say here; where those need a model, the client's own is the default."""

    @property
    @abstractmethod
    def model(self) -> str:
        """The model that the client streams to."""

    @property
    @abstractmethod
    def _control(self) -> Client:
        """The client that makes the calls."""

    def is_live(self, *, timeout_s: float | None = None, timeout: float | None = None) -> bool:
        """Whether the server answers."""
        return self._control.is_live(timeout_s=timeout_s, timeout=timeout)

    def is_ready(
        self,
        model: str | None = None,
        version: Version = None,
        *,
        model_version: Version = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> bool:
        """Whether the server is ready; of a model, whether it accepts requests now."""
        return self._control.is_ready(model, version, model_version=model_version, timeout_s=timeout_s, timeout=timeout)

    def is_model_ready(
        self,
        model: str | None = None,
        version: Version = None,
        *,
        model_name: str | None = None,
        model_version: Version = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> bool:
        """Whether a model accepts requests now; `model_name` is tritonclient's word for it."""
        return self.is_ready(
            self._named(model or model_name), version, model_version=model_version, timeout_s=timeout_s, timeout=timeout
        )

    live = is_live
    ready = is_ready

    def server_metadata(self, *, timeout_s: float | None = None, timeout: float | None = None) -> dict[str, Any]:
        """The server's name, version and extensions."""
        return self._control.server_metadata(timeout_s=timeout_s, timeout=timeout)

    def metadata(
        self,
        model: str | None = None,
        version: Version = None,
        *,
        model_version: Version = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """A model's versions, inputs and outputs."""
        return self._control.metadata(
            self._named(model), version, model_version=model_version, timeout_s=timeout_s, timeout=timeout
        )

    def signature(
        self,
        model: str | None = None,
        version: Version = None,
        *,
        model_version: Version = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> Signature:
        """A model's inputs and outputs, as the server declares them now."""
        return self._control.signature(
            self._named(model), version, model_version=model_version, timeout_s=timeout_s, timeout=timeout
        )

    def config(
        self,
        model: str | None = None,
        version: Version = None,
        *,
        model_version: Version = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """A model's configuration, completed."""
        return self._control.config(
            self._named(model), version, model_version=model_version, timeout_s=timeout_s, timeout=timeout
        )

    def statistics(
        self,
        model: str = "",
        version: Version = None,
        *,
        model_version: Version = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> list[dict[str, Any]]:
        """The statistics of a model's versions, or of all models."""
        return self._control.statistics(
            model, version, model_version=model_version, timeout_s=timeout_s, timeout=timeout
        )

    def models(self, *, timeout_s: float | None = None, timeout: float | None = None) -> list[IndexEntry]:
        """The repository's models with their states."""
        return self._control.models(timeout_s=timeout_s, timeout=timeout)

    stats = statistics
    list_models = models

    def load(
        self,
        model: str | None = None,
        *,
        config: Mapping[str, Any] | str | None = None,
        files: Mapping[str, bytes] | None = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> None:
        """Loads or reloads a model; returns when the server has finished. The client does not read its inputs again."""
        self._control.load(self._named(model), config=config, files=files, timeout_s=timeout_s, timeout=timeout)

    def unload(
        self,
        model: str | None = None,
        *,
        dependents: bool = False,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> None:
        """Unloads a model and, with `dependents`, the models that only it uses."""
        self._control.unload(self._named(model), dependents=dependents, timeout_s=timeout_s, timeout=timeout)

    def _named(self, model: str | None) -> str:
        return self.model if model is None else model
