"""The client that waits for each response."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, TypeVar, overload

import numpy.typing as npt

from alipes.client.plain.base import PlainClient, result_of
from alipes.client.plain.request import Answer, Array, Inputs, Options, Outputs, named_outputs
from alipes.client.plain.retry import Failure
from alipes.client.plain.shared import SharedMemory
from alipes.client.plain.steps import Steps
from alipes.client.signature import Signature
from alipes.errors import AlipesError
from alipes.types import IndexEntry

__all__ = ["Client"]

T = TypeVar("T")


class Client(PlainClient):
    """A client for any server of the V2 protocol that waits for each response.

    Several threads may use it at the same time, each on a connection of its own, and a forked process may go on using
    it. A context manager: leaving it closes the connections.
    """

    @overload
    def infer(self, model: str, inputs: Mapping[str, npt.ArrayLike], **options: Any) -> dict[str, Array]: ...
    @overload
    def infer(self, model: str, inputs: npt.ArrayLike, **options: Any) -> Array: ...
    def infer(
        self,
        model: str,
        inputs: Inputs,
        *,
        outputs: Outputs | None = None,
        timeout_s: float | None = None,
        **options: Any,
    ) -> dict[str, Array] | Array:
        """Sends an inference request and waits for its outputs.

        Args:
            model: The model's name.
            inputs: Arrays by the name of their input; or the array alone, for a model with one input.
            outputs: The requested outputs; an array in shared memory by an output's name receives that output.
            timeout_s: Time for all attempts together; the client's own by default.
            options: Further fields of the request; see `Options`.

        Returns:
            Arrays by the name of their output; for a single array, the single output where the model has one.

        Raises:
            InvalidArgument: If the inputs do not fit the model's declaration; nothing was sent then.
            InferError: If the server refuses or fails the request; the class tells the code.
            DeadlineExceeded: If the time is up.
            TransportError: If the server cannot be reached.
        """
        failed = None
        if outputs is None and not options and not self._regions and (plan := self._plans.get(model)) is not None:
            # The fast path: one step into the data plane checks, encodes and sends arrays as declared.
            limit_s = self.timeout_s if timeout_s is None else timeout_s
            began_s = time.monotonic()
            try:
                answered: dict[str, Array] | Array | None = self._link.plain(plan, inputs, limit_s)
            except AlipesError as error:
                failed = Failure(error, began_s)
            else:
                if answered is not None:
                    return named_outputs(model, answered) if type(answered) is dict else answered
        return result_of(*self._drive(self._infer_steps(model, inputs, outputs, timeout_s, Options(**options), failed)))

    def ask(
        self,
        model: str,
        inputs: Inputs,
        *,
        outputs: Outputs | None = None,
        timeout_s: float | None = None,
        **options: Any,
    ) -> Answer:
        """As `infer`, with the response's version, id and parameters beside its outputs."""
        return (self._drive(self._infer_steps(model, inputs, outputs, timeout_s, Options(**options))))[1]

    def is_live(self) -> bool:
        """Whether the server answers."""
        return self._drive(self._probe_steps(self._operations.live()))

    def is_ready(self) -> bool:
        """Whether the server is ready."""
        return self._drive(self._probe_steps(self._operations.ready()))

    def is_model_ready(self, model: str, version: str = "") -> bool:
        """Whether a model accepts requests now."""
        return self._drive(self._probe_steps(self._operations.model_ready(model, version)))

    def server_metadata(self) -> dict[str, Any]:
        """The server's name, version and extensions."""
        return self._drive(self._call_steps(self._operations.server_metadata()))

    def metadata(self, model: str, version: str = "") -> dict[str, Any]:
        """A model's versions, inputs and outputs."""
        return self._drive(self._metadata_steps(model, version))

    def signature(self, model: str, version: str = "") -> Signature:
        """A model's inputs and outputs, as the server declares them now."""
        return self._drive(self._signature_steps(model, version))

    def config(self, model: str, version: str = "") -> dict[str, Any]:
        """A model's configuration, completed."""
        return self._drive(self._config_steps(model, version))

    def statistics(self, model: str = "", version: str = "") -> list[dict[str, Any]]:
        """The statistics of a model's versions, or of all models."""
        return self._drive(self._call_steps(self._operations.statistics(model, version)))

    def models(self) -> list[IndexEntry]:
        """The repository's models with their states."""
        return self._drive(self._call_steps(self._operations.index()))

    def load(
        self,
        model: str,
        *,
        config: Mapping[str, Any] | str | None = None,
        files: Mapping[str, bytes] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Loads or reloads a model; returns when the server has finished.

        Args:
            model: The model's name.
            config: A configuration in the place of the repository's.
            files: Files in the place of the repository's, by path: `1/model.onnx`.
            timeout_s: The longest wait; none by default.
        """
        self._drive(self._load_steps(model, config, files, timeout_s))

    def unload(self, model: str, *, dependents: bool = False, timeout_s: float | None = None) -> None:
        """Unloads a model and, with `dependents`, the models that only it uses."""
        self._drive(self._unload_steps(model, dependents, timeout_s))

    def share(self, byte_size: int) -> SharedMemory:
        """Creates memory that the server maps too: of arrays in it, only the position is sent.

        Raises:
            InferError: If the server refuses; it must run on this machine and allow it.
        """
        region = self._drive(self._share_steps(byte_size))
        region.on_close(lambda: self._drive(self._unshare_steps(region)))
        return region

    def _drive(self, steps: Steps[T]) -> T:
        """Performs the steps of a verb on the calling thread."""
        try:
            step = next(steps)
            while True:
                try:
                    result = step.run(self._link)
                except BaseException as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as stop:
            returned: T = stop.value
            return returned
