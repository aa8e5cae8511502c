"""The client whose calls are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Self, TypeVar, overload

import numpy.typing as npt

from alipes.client.plain.asyncio_bridge import running_bridge
from alipes.client.plain.base import PlainClient, result_of
from alipes.client.plain.request import Answer, Array, Inputs, Options, Outputs
from alipes.client.plain.shared import SharedMemory
from alipes.client.plain.steps import Look, Pause, Step, Steps
from alipes.client.signature import Signature
from alipes.types import IndexEntry

__all__ = ["AsyncClient"]

T = TypeVar("T")


class AsyncClient(PlainClient):
    """A client for any server of the V2 protocol whose calls are awaited; any number of them run at the same time.

    Large arrays are sent without a copy: leave them unchanged until the response has arrived. Cancelling a coroutine
    cancels its request. A context manager, with and without `async`: leaving it closes the connections.
    """

    async def __aenter__(self) -> Self:
        """The client itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Closes the connections."""
        self.close()

    @overload
    async def infer(self, model: str, inputs: Mapping[str, npt.ArrayLike], **options: Any) -> dict[str, Array]: ...
    @overload
    async def infer(self, model: str, inputs: npt.ArrayLike, **options: Any) -> Array: ...
    async def infer(
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
        return result_of(*await self._drive(self._infer_steps(model, inputs, outputs, timeout_s, Options(**options))))

    async def ask(
        self,
        model: str,
        inputs: Inputs,
        *,
        outputs: Outputs | None = None,
        timeout_s: float | None = None,
        **options: Any,
    ) -> Answer:
        """As `infer`, with the response's version, id and parameters beside its outputs."""
        return (await self._drive(self._infer_steps(model, inputs, outputs, timeout_s, Options(**options))))[1]

    async def is_live(self) -> bool:
        """Whether the server answers."""
        return await self._drive(self._probe_steps(self._operations.live()))

    async def is_ready(self) -> bool:
        """Whether the server is ready."""
        return await self._drive(self._probe_steps(self._operations.ready()))

    async def is_model_ready(self, model: str, version: str = "") -> bool:
        """Whether a model accepts requests now."""
        return await self._drive(self._probe_steps(self._operations.model_ready(model, version)))

    async def server_metadata(self) -> dict[str, Any]:
        """The server's name, version and extensions."""
        return await self._drive(self._call_steps(self._operations.server_metadata()))

    async def metadata(self, model: str, version: str = "") -> dict[str, Any]:
        """A model's versions, inputs and outputs."""
        return await self._drive(self._metadata_steps(model, version))

    async def signature(self, model: str, version: str = "") -> Signature:
        """A model's inputs and outputs, as the server declares them now."""
        return await self._drive(self._signature_steps(model, version))

    async def config(self, model: str, version: str = "") -> dict[str, Any]:
        """A model's configuration, completed."""
        return await self._drive(self._config_steps(model, version))

    async def statistics(self, model: str = "", version: str = "") -> list[dict[str, Any]]:
        """The statistics of a model's versions, or of all models."""
        return await self._drive(self._call_steps(self._operations.statistics(model, version)))

    async def models(self) -> list[IndexEntry]:
        """The repository's models with their states."""
        return await self._drive(self._call_steps(self._operations.index()))

    async def load(
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
        await self._drive(self._load_steps(model, config, files, timeout_s))

    async def unload(self, model: str, *, dependents: bool = False, timeout_s: float | None = None) -> None:
        """Unloads a model and, with `dependents`, the models that only it uses."""
        await self._drive(self._unload_steps(model, dependents, timeout_s))

    async def share(self, byte_size: int) -> SharedMemory:
        """Creates memory that the server maps too: of arrays in it, only the position is sent.

        Raises:
            InferError: If the server refuses; it must run on this machine and allow it.
        """
        return await self._drive(self._share_steps(byte_size))

    async def unshare(self, region: SharedMemory) -> None:
        """Unregisters memory of `share` and releases it."""
        try:
            await self._drive(self._unshare_steps(region))
        finally:
            region.close()

    async def _drive(self, steps: Steps[T]) -> T:
        """Performs the steps of a verb on the running event loop."""
        try:
            step = next(steps)
            while True:
                try:
                    result = await self._perform(step)
                except BaseException as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as stop:
            returned: T = stop.value
            return returned

    async def _perform(self, step: Step) -> Any:
        if isinstance(step, Pause):
            return await asyncio.sleep(step.seconds)
        if isinstance(step, Look):
            return await asyncio.to_thread(step.run, self._link)
        return await running_bridge().call(lambda mailbox, number: step.begin(self._link, mailbox, number))
