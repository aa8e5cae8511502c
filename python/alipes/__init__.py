"""alipes serves trained models over the network: NVIDIA Triton's protocols and repositories from one `pip install`.

Export a function to a folder of models, serve the folder, and ask:

    from alipes import ModelRepository, Server

    def louder(x):
        return 2 * x

    repository = ModelRepository("models")
    repository.add("louder", "python").export_version(louder, input_shapes={"x": (None, 3)})

    with Server("models", model_control_mode="explicit", load_model=["louder"]) as server:
        with server.client() as client:
            print(client.infer("louder", [[1.0, 2.0, 3.0]]))
        server.unload("louder")
        server.load("louder")
        print(server.url, server.ready("louder"), server.statistics("louder"))

`Client("localhost:8001")` and `AsyncClient` ask a server that runs elsewhere; `serve` is a server for a `with` block,
as in hermes, `launch` one that stays. Each of these names has a docstring with an example: `help(alipes.Server)`.
"""

# Names are imported on first use, so that `import alipes` reads no heavy package. The list `__all__` has each once;
# what `_HOMES` does not name is an error, and a type checker finds those behind the star.
# ruff: noqa: F403, F405

from __future__ import annotations

from importlib import import_module

from alipes.lazily import lazily

TYPE_CHECKING = False  # true for type checkers; `typing` itself takes ten times as long to import as this package

__all__ = [
    "AlipesError",
    "AlreadyExists",
    "Answer",
    "AsyncClient",
    "BatchError",
    "Cancelled",
    "Client",
    "CloudError",
    "CloudTimeout",
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
    "Predictor",
    "RepositoryError",
    "RepositoryUseError",
    "Request",
    "Response",
    "ServeError",
    "ServeTimeout",
    "Server",
    "ServerMonitor",
    "ServerStartError",
    "StreamClient",
    "TlsError",
    "TooLarge",
    "TransportError",
    "Unauthenticated",
    "Unsupported",
    "__version__",
    "attach",
    "call",
    "call_async",
    "launch",
    "model",
    "serve",
]

if TYPE_CHECKING:
    from alipes._core import version as _version
    from alipes.client.inference.client import InferenceClient
    from alipes.client.inference.stream_client import StreamClient
    from alipes.client.plain.aio import AsyncClient
    from alipes.client.plain.request import Answer
    from alipes.client.plain.sync import Client
    from alipes.errors import *
    from alipes.monitor.monitor import ServerMonitor
    from alipes.predictor.predictor import Predictor
    from alipes.repository.model_repository import ModelRepository
    from alipes.repository.platform import Platform
    from alipes.serve.context import serve
    from alipes.serve.detached import attach, launch
    from alipes.serve.server import Server
    from alipes.worker.apps.decorator import model
    from alipes.worker.apps.exchange import Request, Response
    from alipes.worker.apps.peers import call, call_async

    __version__: str = _version()

# Public name -> module that defines it. A name of `__all__` that has no row is an error.
_HOMES = {
    **dict.fromkeys(__all__, "alipes.errors"),
    "Answer": "alipes.client.plain.request",
    "AsyncClient": "alipes.client.plain.aio",
    "Client": "alipes.client.plain.sync",
    "InferenceClient": "alipes.client.inference.client",
    "ModelRepository": "alipes.repository.model_repository",
    "Platform": "alipes.repository.platform",
    "Predictor": "alipes.predictor.predictor",
    "Request": "alipes.worker.apps.exchange",
    "Response": "alipes.worker.apps.exchange",
    "Server": "alipes.serve.server",
    "ServerMonitor": "alipes.monitor.monitor",
    "StreamClient": "alipes.client.inference.stream_client",
    "attach": "alipes.serve.detached",
    "call": "alipes.worker.apps.peers",
    "call_async": "alipes.worker.apps.peers",
    "launch": "alipes.serve.detached",
    "model": "alipes.worker.apps.decorator",
}
del _HOMES["__version__"], _HOMES["serve"]  # neither is an object of that name in a module

_find, _ = lazily(__name__, _HOMES, face=True)


if not TYPE_CHECKING:  # a type checker reports names that are not there

    def __getattr__(name: str) -> object:
        if name == "__version__":
            globals()[name] = version = import_module("alipes._core").version()
            return version
        if name == "serve":  # the package, which can be called: its import makes it an attribute of this one
            return import_module("alipes.serve")
        if name[:1].isupper() and name not in _HOMES and name in import_module("alipes.client").__all__:
            message = f"module 'alipes' has no attribute '{name}': write alipes.client.{name}"
            raise AttributeError(message, name=name)
        return _find(name)


def __dir__() -> list[str]:
    return sorted(__all__)  # what there is for users, without the packages that happen to be loaded
