"""The models of a script of the SDK as attached models of a server."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from argparse import Namespace
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from alipes.attached import AttachedModel, Attachment
from alipes.compat.kserve.batching import Batching
from alipes.compat.kserve.constants import MAX_GRPC_MESSAGE_LENGTH
from alipes.compat.kserve.instance import ModelHandlers, ProbedInstance, ThreadInstance, gives_pieces, is_plain
from alipes.compat.kserve.latency_log import LatencyWriter
from alipes.compat.kserve.logging import logger
from alipes.compat.kserve.model import BaseKServeModel, InferenceModel, Model
from alipes.compat.kserve.tasks import TaskInstance

if TYPE_CHECKING:
    from alipes.compat.kserve.model_server import ModelServer

__all__ = ["ServedModels", "flags"]

_METRICS: Final = "ALIPES_METRICS_PORT"


class ServedModels:
    """A server, and the models that it serves."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, workers: int, most_at_once: int, server_flags: Mapping[str, Any]
    ) -> None:
        """Starts nothing yet. Called on the thread of the event loop.

        Args:
            loop: The event loop of the models' coroutines.
            workers: Plain handlers of a model that run at the same time.
            most_at_once: Requests that a model with coroutines answers at the same time.
            server_flags: Flags of the server.
        """
        self._loop, self._workers, self._most_at_once = loop, max(1, workers), max(1, most_at_once)
        self._attachment = Attachment(**server_flags)
        self._pools: list[ThreadPoolExecutor] = []
        self._tasks: list[TaskInstance] = []
        self._latency: LatencyWriter | None = None
        self._adding = threading.Lock()
        self._loop_thread = threading.get_ident()

    def start(self, models: Mapping[str, BaseKServeModel]) -> None:
        """Start the server, and serve models by name; returns when all of them can answer.

        Raises:
            ServeError: If the server cannot be started.
            InferError: If a model cannot be loaded.
        """
        for name, model in models.items():
            self._attachment.add(self._attached(model, name))
        self._latency = LatencyWriter()
        self._attachment.start()

    def add(self, model: BaseKServeModel, name: str) -> None:
        """Serve one more model; in the place of another of the same name. On the loop's own thread it only begins."""
        if threading.get_ident() == self._loop_thread:
            self._loop.run_in_executor(None, self._add, model, name)
        else:
            self._add(model, name)

    def _add(self, model: BaseKServeModel, name: str) -> None:
        with self._adding:
            if name in self._attachment.models:
                self._attachment.remove(name)
            self._attachment.add(self._attached(model, name))

    def stop(self) -> None:
        """End the server: requests that have begun are answered. The loop has to run meanwhile."""
        self._attachment.stop()
        for pool in self._pools:
            pool.shutdown(wait=False)
        for one in self._tasks:
            one.close()
        if self._latency is not None:
            self._latency.stop()

    @property
    def is_running(self) -> bool:
        """Whether the server runs."""
        return self._attachment.is_running

    @property
    def url(self) -> str:
        """Its address over HTTP."""
        return self._attachment.url

    def _attached(self, model: BaseKServeModel, name: str) -> AttachedModel:
        handlers, batching, pieces = ModelHandlers(model, name), Batching.of(model), gives_pieces(model)
        config = _config(model, name, batching, pieces)
        if is_plain(model) and not pieces:
            threads = [ThreadInstance(handlers, bool(batching)) for _ in range(self._workers)]
            return AttachedModel(name, config, [ProbedInstance(threads[0], handlers, self._loop), *threads[1:]])
        if isinstance(model, Model) and model._threads is None:
            model._threads = ThreadPoolExecutor(self._workers, f"alipes-{name}")
            self._pools.append(model._threads)
        tasks = TaskInstance(handlers, self._loop, self._most_at_once, pieces=pieces, together=bool(batching))
        self._tasks.append(tasks)
        instances = [ProbedInstance(tasks, handlers, self._loop)]
        return AttachedModel(name, config, instances, side_by_side=self._most_at_once)


def flags(server: ModelServer, arguments: Namespace) -> dict[str, Any]:
    """The flags of the server that stand for what a script says.

    Metrics have a port of the system's choice, unless `ALIPES_METRICS_PORT` names one: a machine may run many scripts.
    """
    chosen: dict[str, Any] = {
        "http_port": server.http_port,
        "allow_grpc": server.enable_grpc,
        "idle_timeout_secs": server.timeout_keep_alive,
        "exit_timeout_secs": server.grace_period,
    }
    if arguments.grpc_max_receive_message_length not in (MAX_GRPC_MESSAGE_LENGTH, -1):
        # The SDK's default would refuse what HTTP takes; -1 is no limit.
        chosen["grpc_max_request_bytes"] = arguments.grpc_max_receive_message_length
    if server.enable_grpc:
        chosen["grpc_port"] = server.grpc_port
    if server.enable_docs_url:
        chosen["enable_docs_url"] = True
    if _METRICS not in os.environ:
        chosen["metrics_port"] = 0
    if server.ssl_certfile:
        chosen |= {"http_use_ssl": True, "http_server_cert": server.ssl_certfile}
        # One file may hold both, as Python's `load_cert_chain` has it.
        chosen["http_server_key"] = server.ssl_keyfile or server.ssl_certfile
        if not server.enable_grpc:
            # This process loads its models over an endpoint without TLS, at which nobody else can ask for anything.
            chosen |= {"allow_grpc": True, "grpc_address": "127.0.0.1", "grpc_port": 0}
    elif server.ssl_keyfile:
        raise ValueError("ssl_keyfile needs ssl_certfile: there is no certificate for the key")
    return chosen


def _config(model: BaseKServeModel, name: str, batching: Batching, pieces: bool) -> dict[str, Any]:
    endpoint = json.dumps({"methods": ["POST"], "whole": True, "stream": pieces})
    config = {"parameters": {"endpoint": {"string_value": endpoint}}, **_declared(model, name, batching)}
    if pieces:
        config["model_transaction_policy"] = {"decoupled": True}
    return config | batching.config


def _declared(model: BaseKServeModel, name: str, batching: Batching) -> dict[str, Any]:
    """The inputs and outputs that a model says it has, for its metadata."""
    if not isinstance(model, InferenceModel) or asyncio.iscoroutinefunction(model.get_input_types):
        return {}
    try:
        sides = {"input": model.get_input_types(), "output": model.get_output_types()}
        return {side: [_tensor(one, bool(batching)) for one in tensors] for side, tensors in sides.items() if tensors}
    except Exception as error:
        logger.warning("the inputs and outputs of model %s cannot be declared: %s", name, error)
        return {}


def _tensor(one: Mapping[str, Any], has_rows: bool) -> dict[str, Any]:
    """A tensor as a configuration declares it: without the axis along which requests are joined, where they are."""
    datatype = str(one["datatype"]).upper()
    kind = "STRING" if datatype == "BYTES" else datatype
    dims = [int(size) for size in one["shape"]][int(has_rows) :]
    return {"name": one["name"], "data_type": f"TYPE_{kind}", "dims": dims}
