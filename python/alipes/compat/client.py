"""What hermes' client module has beside the client itself."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from alipes.errors import AlipesError, NotReady, TransportError

__all__ = ["SHAPE", "_check_ready"]

SHAPE: TypeAlias = tuple[int, ...]


class _Server(Protocol):
    """The client to use: `client.client`, or a client of `tritonclient`."""

    def is_model_ready(self, model_name: str, model_version: str) -> bool:
        """Whether a version can answer."""

    def load_model(self, model_name: str) -> None:
        """Loads a model."""


def _check_ready(client: _Server, model_name: str, model_version: str) -> None:
    """Have a model loaded that is not ready.

    Raises:
        NotReady: If it is not ready then; a `RuntimeError`.
        TransportError: If the server cannot be reached; a `RuntimeError`.
    """
    if client.is_model_ready(model_name, model_version):
        return
    try:
        client.load_model(model_name)
    except TransportError:
        raise
    except AlipesError as error:
        raise NotReady(
            f"Model {model_name}, version {model_version} isn't ready, and cannot be loaded: {error}", model=model_name
        ) from error
    if not client.is_model_ready(model_name, model_version):
        raise NotReady(f"Model {model_name} is available but not version {model_version}", model=model_name)
