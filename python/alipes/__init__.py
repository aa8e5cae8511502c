"""alipes serves trained models over the network: NVIDIA Triton's protocols and repositories from one `pip install`.

What most programs need can be imported from here, on first use: `import alipes` reads no heavy package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from alipes.lazily import lazily

__all__ = [
    "AlipesError",
    "AlreadyExists",
    "Answer",
    "AsyncClient",
    "Cancelled",
    "Client",
    "ConfigError",
    "DeadlineExceeded",
    "ExportError",
    "InferError",
    "InferenceClient",
    "Internal",
    "InvalidArgument",
    "ModelLoadError",
    "ModelRepository",
    "MonitorError",
    "NoExporter",
    "NotFound",
    "NotOffered",
    "NotReady",
    "Overloaded",
    "PermissionDenied",
    "Platform",
    "RepositoryError",
    "RepositoryUseError",
    "ServeError",
    "ServeTimeout",
    "Server",
    "ServerMonitor",
    "ServerStartError",
    "TooLarge",
    "TransportError",
    "Unauthenticated",
    "Unsupported",
    "__version__",
    "attach",
    "launch",
    "serve",
]

if TYPE_CHECKING:
    from alipes._core import version as _version
    from alipes.client.inference.client import InferenceClient
    from alipes.client.plain.aio import AsyncClient
    from alipes.client.plain.request import Answer
    from alipes.client.plain.sync import Client
    from alipes.errors import (
        AlipesError,
        AlreadyExists,
        Cancelled,
        ConfigError,
        DeadlineExceeded,
        ExportError,
        InferError,
        Internal,
        InvalidArgument,
        ModelLoadError,
        MonitorError,
        NoExporter,
        NotFound,
        NotOffered,
        NotReady,
        Overloaded,
        PermissionDenied,
        RepositoryError,
        RepositoryUseError,
        ServeError,
        ServerStartError,
        ServeTimeout,
        TooLarge,
        TransportError,
        Unauthenticated,
        Unsupported,
    )
    from alipes.monitor.monitor import ServerMonitor
    from alipes.repository.model_repository import ModelRepository
    from alipes.repository.platform import Platform
    from alipes.serve.context import serve
    from alipes.serve.detached import attach, launch
    from alipes.server.server import Server

    __version__: str = _version()

# Public name -> module that defines it.
_HOMES = {
    "AlipesError": "alipes.errors",
    "AlreadyExists": "alipes.errors",
    "Answer": "alipes.client.plain.request",
    "AsyncClient": "alipes.client.plain.aio",
    "Cancelled": "alipes.errors",
    "Client": "alipes.client.plain.sync",
    "ConfigError": "alipes.errors",
    "DeadlineExceeded": "alipes.errors",
    "ExportError": "alipes.errors",
    "InferError": "alipes.errors",
    "InferenceClient": "alipes.client.inference.client",
    "Internal": "alipes.errors",
    "InvalidArgument": "alipes.errors",
    "ModelLoadError": "alipes.errors",
    "ModelRepository": "alipes.repository.model_repository",
    "MonitorError": "alipes.errors",
    "NoExporter": "alipes.errors",
    "NotFound": "alipes.errors",
    "NotOffered": "alipes.errors",
    "NotReady": "alipes.errors",
    "Overloaded": "alipes.errors",
    "PermissionDenied": "alipes.errors",
    "Platform": "alipes.repository.platform",
    "RepositoryError": "alipes.errors",
    "RepositoryUseError": "alipes.errors",
    "ServeError": "alipes.errors",
    "ServeTimeout": "alipes.errors",
    "Server": "alipes.server.server",
    "ServerMonitor": "alipes.monitor.monitor",
    "ServerStartError": "alipes.errors",
    "TooLarge": "alipes.errors",
    "TransportError": "alipes.errors",
    "Unauthenticated": "alipes.errors",
    "Unsupported": "alipes.errors",
    "attach": "alipes.serve.detached",
    "launch": "alipes.serve.detached",
}

_find, __dir__ = lazily(__name__, _HOMES)


def __getattr__(name: str) -> object:
    if name == "__version__":
        globals()[name] = version = import_module("alipes._core").version()
        return version
    if name == "serve":  # the package, which can be called: its import makes it an attribute of this one
        return import_module("alipes.serve")
    return _find(name)
