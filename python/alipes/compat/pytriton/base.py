"""What `Triton` and `RemoteTriton` have in common: models that are bound, and a server that they are brought to."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Self

from alipes.compat.pytriton.context import TritonContext
from alipes.compat.pytriton.exceptions import PyTritonInvalidOperationError, PyTritonUnrecoverableError
from alipes.compat.pytriton.model import BoundModel, check_model_name
from alipes.compat.pytriton.policy import TritonLifecyclePolicy
from alipes.compat.pytriton.settings import ModelConfig, Tensor
from alipes.compat.pytriton.workspace import Workspace

__all__ = ["MONITORING_PERIOD_S", "TritonBase"]

_LOG: Final = logging.getLogger("alipes.compat.pytriton")

MONITORING_PERIOD_S: Final = 10.0
_LONGEST_LOOK_S: Final = 0.5
"""How often `serve` looks whether the server is alive, at least: it should not outlive it for long."""


class TritonBase:
    """Models of this script, and the server that they are brought to."""

    def __init__(
        self, url: str, workspace: Workspace | str | Path | None, triton_lifecycle_policy: TritonLifecyclePolicy
    ) -> None:
        """Takes the address of the server, the folder for files of the script, and when the server starts.

        Raises:
            FileExistsError: If the folder is there already.
        """
        self._url = url
        self._workspace = workspace if isinstance(workspace, Workspace) else Workspace(workspace)
        self._triton_lifecycle_policy = triton_lifecycle_policy
        self._triton_context = TritonContext()
        self._models: dict[tuple[str, int], BoundModel] = {}
        self._changed = threading.Condition(threading.RLock())
        self._stopped = True
        self._connected = False
        self._pid = os.getpid()
        atexit.register(self.stop)

    def __enter__(self) -> Self:
        """Connects, unless the policy says that `run` or `serve` will."""
        if self._triton_lifecycle_policy.launch_triton_on_startup:
            try:
                self.connect()
            except BaseException:
                self.stop()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stops."""
        self.stop()

    def bind(  # noqa: PLR0913, PLR0917 - the signature is PyTriton's
        self,
        model_name: str,
        infer_func: Callable[..., Any] | Sequence[Callable[..., Any]],
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        model_version: int = 1,
        config: ModelConfig | None = None,
        strict: bool = False,
        trace_config: list[str] | None = None,
    ) -> None:
        """Make a function a model; it is loaded at once where the server is connected.

        Args:
            model_name: The model's name: letters, digits, dots, underscores and dashes.
            infer_func: Takes a list of requests and returns a list of dictionaries of arrays; several functions are
                several instances.
            inputs: The model's inputs.
            outputs: Its outputs.
            model_version: Its version.
            config: How it is served.
            strict: Whether outputs are compared with the declaration.
            trace_config: Taken and not used: traces are made by the server, as `TritonConfig.trace_config` says.

        Raises:
            PyTritonValidationError: If the name or the declaration cannot be used.
            PyTritonBadParameterError: If settings do not go together.
            PyTritonInvalidOperationError: If there is such a model.
            InferError: If the server does not load it.
        """
        check_model_name(model_name)
        model = BoundModel(
            model_name=model_name,
            model_version=model_version,
            infer_func=infer_func,
            inputs=inputs,
            outputs=outputs,
            config=config or ModelConfig(),
            context=self._triton_context,
            strict=strict,
        )
        with self._changed:
            if model.key in self._models:
                raise PyTritonInvalidOperationError("Cannot add model with the same name twice.")
            if self._connected:
                self._load(model)
            self._models[model.key] = model

    def connect(self) -> None:
        """Bring the models that are bound to the server.

        Raises:
            TimeoutError: If the server is not ready in time.
        """
        with self._changed:
            if self._connected:
                return
            self._open_server()
            self._stopped = False
            for model in self._models.values():
                self._load(model)
            self._connected = True
        _LOG.info("Press Ctrl-C, or type `kill -SIGINT %d`, to stop.", os.getpid())

    def serve(self, monitoring_period_s: float = MONITORING_PERIOD_S) -> None:
        """Connect, and return when the server or a model ends, `stop` is called, or Ctrl-C is pressed; then stop.

        Args:
            monitoring_period_s: How often they are looked at, at least.
        """
        self.connect()
        try:
            with self._changed:
                while self.is_alive():
                    self._changed.wait(min(monitoring_period_s, _LONGEST_LOOK_S))
        except KeyboardInterrupt:
            _LOG.info("Ctrl-C: stopping.")
        self.stop()

    def stop(self) -> bool:
        """Let go of the models and of the server; requests that are under way are answered first.

        Returns:
            Whether there was something to stop.
        """
        if os.getpid() != self._pid:
            return False  # a forked process has the object, and neither server nor folder
        with self._changed:
            if self._stopped:
                self._workspace.clean()  # that of a server which never started, or could not
                return False
            self._stopped, self._connected = True, False
        atexit.unregister(self.stop)
        try:
            self._close_server()
        finally:
            self._models.clear()
            self._workspace.clean()
            with self._changed:
                self._changed.notify_all()
        return True

    def is_alive(self) -> bool:
        """Whether the server and the models can answer."""
        return not self._stopped and self._is_reachable()

    def is_connected(self) -> bool:
        """Whether the models were brought to the server."""
        return self._connected

    def _stop_after(self, error: PyTritonUnrecoverableError) -> None:
        """Stop, once the failed request is answered: an inference function cannot go on."""
        _LOG.error("Unrecoverable error of an inference callable; the server stops: %s", error)
        threading.Thread(target=self.stop, name="alipes-pytriton-stop").start()

    def _load(self, model: BoundModel) -> None:
        """Warm a model up, and bring it to the server."""
        model.warm_up()
        self._attach(model)
        _LOG.info("Model %s is served: POST %s/v2/models/%s/infer", model.model_name, self._url, model.model_name)

    @abstractmethod
    def _open_server(self) -> None:
        """Have a server that answers."""

    @abstractmethod
    def _attach(self, model: BoundModel) -> None:
        """Bring a model to the server; return when it can answer."""

    @abstractmethod
    def _is_reachable(self) -> bool:
        """Whether the server answers."""

    @abstractmethod
    def _close_server(self) -> None:
        """Take the models from the server, and end it where it is ours."""
