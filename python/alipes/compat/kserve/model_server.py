"""`ModelServer`: serves the models of a script of the SDK with our own server, which is a child of the script."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

from alipes.compat.kserve import context
from alipes.compat.kserve import logging as kserve_logging
from alipes.compat.kserve.client_factory import InferenceClientFactory
from alipes.compat.kserve.constants import DEFAULT_HTTP_PORT, DEFAULT_HTTPS_PORT
from alipes.compat.kserve.errors import NoModelReady
from alipes.compat.kserve.logging import logger
from alipes.compat.kserve.model import BaseKServeModel
from alipes.compat.kserve.model_repository import ModelRepository
from alipes.compat.kserve.predictor_config import PredictorConfig
from alipes.compat.kserve.server_options import args, parser
from alipes.compat.kserve.serving import ServedModels, flags
from alipes.compat.kserve.utils import cpu_count
from alipes.errors import ServeError

__all__ = ["ModelServer", "args", "parser"]

ExceptionHandler = Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)
_LOOK_S: Final = 0.5
"""How often it is looked whether the server has ended by itself."""

_MOST_AT_ONCE: Final = 32
"""Most requests that a model with async handlers answers at once, unless the script says more."""


class ModelServer:
    """A server for the models of this script."""

    def __init__(  # noqa: PLR0913, PLR0917  # the names and the order are those that scripts use
        self,
        http_port: int = args.http_port,
        grpc_port: int = args.grpc_port,
        workers: int = args.workers,
        max_threads: int = args.max_threads,
        max_asyncio_workers: int | None = args.max_asyncio_workers,
        registered_models: ModelRepository | None = None,
        enable_grpc: bool = args.enable_grpc,
        enable_docs_url: bool = args.enable_docs_url,
        enable_latency_logging: bool = args.enable_latency_logging,
        access_log_format: str | None = args.access_log_format,
        event_loop: str = args.event_loop,
        timeout_keep_alive: int = args.timeout_keep_alive,
        grace_period: int = 30,
        predictor_config: PredictorConfig | None = None,
        ssl_certfile: str | None = args.ssl_certfile,
        ssl_keyfile: str | None = args.ssl_keyfile,
    ) -> None:
        """Starts nothing yet; what is left out comes from the command line.

        Args:
            http_port: Port of HTTP.
            grpc_port: Port of gRPC.
            workers: Plain handlers of a model that run at the same time.
            max_threads: Not needed: gRPC has no threads of its own here.
            max_asyncio_workers: Requests that a model with `async` handlers answers at the same time; 32 by default.
            registered_models: The models by name, for a repository of the script's own.
            enable_grpc: Whether to offer gRPC.
            enable_docs_url: Whether to offer a page about the API at `/docs`.
            enable_latency_logging: Whether to log how long handlers took.
            access_log_format: Not offered: the server has a log of its own.
            event_loop: `auto` takes uvloop where it is installed; `asyncio`; `uvloop`.
            timeout_keep_alive: Seconds that a connection is kept without a request.
            grace_period: Seconds that requests have to end when the server stops.
            predictor_config: Where the predictor is, for transformers and explainers.
            ssl_certfile: Certificate of HTTPS.
            ssl_keyfile: Key of HTTPS; left out where the certificate's file has it too. With both, the port is 8443
                unless it is named.
        """
        self.registered_models = ModelRepository() if registered_models is None else registered_models
        self.ssl_certfile, self.ssl_keyfile = ssl_certfile, ssl_keyfile
        if ssl_certfile and ssl_keyfile and http_port == DEFAULT_HTTP_PORT:
            http_port = DEFAULT_HTTPS_PORT
        self.http_port, self.grpc_port = http_port, grpc_port
        self.workers = workers
        self.max_threads = max_threads
        self.max_asyncio_workers = max_asyncio_workers
        self.enable_grpc = enable_grpc
        self.enable_docs_url = enable_docs_url
        self.enable_latency_logging = enable_latency_logging
        self.access_log_format = access_log_format
        self.event_loop = event_loop
        self.timeout_keep_alive = timeout_keep_alive
        self.grace_period = grace_period
        self.servers: list[Coroutine[Any, Any, Any]] = []
        if args.configure_logging and not logger.handlers:
            kserve_logging.configure_logging(args.log_config_file)
        context.set_predictor_config(predictor_config or _predictor())
        self._custom_exception_handler: ExceptionHandler | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._served: ServedModels | None = None

    def start(self, models: Sequence[BaseKServeModel]) -> None:
        """Serve models until SIGTERM, SIGINT or `stop`. Requests that have begun are answered first.

        Args:
            models: What to serve. One that is not ready is started, and not served.

        Raises:
            RuntimeError: If they are no list of models.
            NoModelReady: If none of them is ready.
            ValueError: If there is a key without a certificate, or a model's batches are not what they have to be.
            ServeError: If the server cannot be started, or ends by itself.
        """
        self._register_and_check_atleast_one_model_is_ready(models)
        with asyncio.Runner(loop_factory=_factory(self.event_loop)) as runner:
            runner.run(self._serve())

    def stop(self, sig: int | None = None) -> None:
        """Have `start` return, from any thread or a signal's handler."""
        if self._loop is not None and self._stopping is not None:
            with suppress(RuntimeError):  # the loop has ended already
                self._loop.call_soon_threadsafe(self._stopping.set)

    def register_model(self, model: BaseKServeModel, name: str | None = None) -> None:
        """Serve a model, under its own name or another too; also while the server runs.

        Raises:
            ValueError: If it has no name.
        """
        if not model.name:
            raise ValueError("Failed to register model, model.name must be provided.")
        name = name or model.name
        self.registered_models.update(model, name)
        logger.info("Registering model: %s", name)
        if self._served is not None:
            self._served.add(model, name)

    def register_exception_handler(self, handler: ExceptionHandler) -> None:
        """Have exceptions that nobody awaits handled, by the event loop and its `context`."""
        self._custom_exception_handler = handler

    def default_exception_handler(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What is done about such an exception by default: it is logged."""
        if "exception" in context:
            logger.error("Caught exception: %s", context.get("exception"))
        logger.error("message: %s", context.get("message"))
        loop.default_exception_handler(context)

    def setup_event_loop(self) -> None:
        """Set up the running event loop: its exceptions, and the threads of `run_in_executor`."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._custom_exception_handler or self.default_exception_handler)
        threads = self.max_asyncio_workers or min(_MOST_AT_ONCE, cpu_count() + 4)
        loop.set_default_executor(ThreadPoolExecutor(threads))

    def register_signal_handler(self) -> None:
        """Have signals stop the server. Only the main thread can."""
        if threading.current_thread() is threading.main_thread():
            loop = asyncio.get_running_loop()
            for one in _SIGNALS:
                loop.add_signal_handler(one, self.stop, one)

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self.setup_event_loop()
        self.register_signal_handler()
        engines = [asyncio.ensure_future(one) for one in self.servers]
        self.servers = []
        self._served = ServedModels(
            self._loop, self.workers, self.max_asyncio_workers or _MOST_AT_ONCE, flags(self, args)
        )
        try:
            await asyncio.to_thread(self._served.start, dict(self.registered_models.get_models()))
            logger.info("Serving at %s", self._served.url)
            await self._until_stopped(self._served, self._stopping)
        finally:
            logger.info("Stopping the model server")
            served, self._served = self._served, None
            await asyncio.to_thread(served.stop)
            for name in list(self.registered_models.get_models()):
                self.registered_models.unload(name)
            for engine in engines:
                engine.cancel()
            await asyncio.gather(*engines, return_exceptions=True)
            await InferenceClientFactory().close()

    async def _until_stopped(self, served: ServedModels, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), _LOOK_S)
            if not stopping.is_set() and not served.is_running:
                raise ServeError("the server has ended by itself: its log says why")

    def _register_and_check_atleast_one_model_is_ready(self, models: Any) -> None:
        if not isinstance(models, list):
            raise RuntimeError("Unknown model collection type")
        is_any_ready = False
        for model in models:
            if not isinstance(model, BaseKServeModel):
                raise RuntimeError("Model type should be 'BaseKServeModel'")
            if model.ready:
                is_any_ready = True
                self.register_model(model)
                model.enable_latency_logging = self.enable_latency_logging
            model.start()
            if model.engine:
                self.servers.append(model.start_engine())
        if not is_any_ready and models:
            raise NoModelReady(models)


def _predictor() -> PredictorConfig:
    """The predictor of the command line."""
    return PredictorConfig(
        args.predictor_host,
        args.predictor_protocol if args.predictor_protocol != "v1" else args.protocol,
        args.predictor_use_ssl,
        args.predictor_request_timeout_seconds,
        args.predictor_request_retries,
        args.enable_predictor_health_check,
    )


def _factory(event_loop: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes event loops; None for Python's own."""
    if event_loop == "asyncio":
        return None
    try:
        uvloop = import_module("uvloop")
    except ImportError:
        if event_loop == "uvloop":
            raise
        return None
    made: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return made
