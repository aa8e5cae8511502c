"""alipes serves trained models over the network: NVIDIA Triton's protocols and repositories from one `pip install`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = [
    "AlipesError",
    "ConfigError",
    "InferError",
    "ModelLoadError",
    "RepositoryError",
    "Server",
    "ServerStartError",
    "TransportError",
    "__version__",
]

if TYPE_CHECKING:
    from alipes._core import version as _version
    from alipes.errors import (
        AlipesError,
        ConfigError,
        InferError,
        ModelLoadError,
        RepositoryError,
        ServerStartError,
        TransportError,
    )
    from alipes.server.server import Server

    __version__: str = _version()

# Public name -> module that defines it. Imported on first use: `import alipes` reads no heavy package.
_HOMES = {
    "AlipesError": "alipes.errors",
    "ConfigError": "alipes.errors",
    "InferError": "alipes.errors",
    "ModelLoadError": "alipes.errors",
    "RepositoryError": "alipes.errors",
    "Server": "alipes.server.server",
    "ServerStartError": "alipes.errors",
    "TransportError": "alipes.errors",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        value: object = import_module("alipes._core").version()
    elif (home := _HOMES.get(name)) is not None:
        value = getattr(import_module(home), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
