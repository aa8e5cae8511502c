"""The client whose calls are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Self, TypeVar, overload

import numpy.typing as npt

from alipes.client.plain.base import PlainClient, config_text
from alipes.client.plain.operations import Call
from alipes.client.plain.postbox import postbox
from alipes.client.plain.question import Answer, Array, Inputs, Options, Outputs, Question
from alipes.client.plain.retry import Attempts
from alipes.client.plain.shared import SharedMemory
from alipes.client.plain.signature import Signature, read_signature
from alipes.errors import AlipesError, InferError, InvalidArgument, TransportError
from alipes.types import IndexEntry

__all__ = ["AsyncClient"]

T = TypeVar("T")


class AsyncClient(PlainClient):
    """Asks a server of the V2 protocol, ours or another, from coroutines; any number of questions at a time.

    Large arrays are sent from where they lie: leave them alone until the answer is there. Whoever is cancelled
    withdraws the question. A context manager, with and without `async`: leaving it closes the connections.
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
        """Asks a model and waits for its outputs.

        Args:
            model: The model's name.
            inputs: Arrays by the name of their input; or the array alone, for a model with one input.
            outputs: The wanted outputs; arrays in shared memory by their names have them written there.
            timeout_s: Time for all attempts together; the client's own by default.
            options: What else the request says; see `Options`.

        Returns:
            Arrays by the name of their output; for a single array, the single output where the model has one.

        Raises:
            InvalidArgument: If the inputs do not fit the model's declaration; nothing was sent then.
            InferError: What the server says; its class tells the code.
            DeadlineExceeded: If the time is up.
            TransportError: If the server cannot be reached.
        """
        question, answer = await self._infer(model, inputs, outputs, timeout_s, Options(**options))
        if question.single and len(answer.outputs) == 1:
            return next(iter(answer.outputs.values()))
        return answer.outputs

    async def ask(
        self,
        model: str,
        inputs: Inputs,
        *,
        outputs: Outputs | None = None,
        timeout_s: float | None = None,
        **options: Any,
    ) -> Answer:
        """As `infer`, with what the answer says beside its outputs."""
        return (await self._infer(model, inputs, outputs, timeout_s, Options(**options)))[1]

    async def is_live(self) -> bool:
        """Whether the server answers."""
        return await self._truth(self._operations.live())

    async def is_ready(self) -> bool:
        """Whether the server is ready."""
        return await self._truth(self._operations.ready())

    async def is_model_ready(self, model: str, version: str = "") -> bool:
        """Whether a model can be asked now."""
        return await self._truth(self._operations.model_ready(model, version))

    async def server_metadata(self) -> dict[str, Any]:
        """The server's name, version and extensions."""
        return await self._call(self._operations.server_metadata())

    async def metadata(self, model: str, version: str = "") -> dict[str, Any]:
        """A model's versions, inputs and outputs."""
        return await self._call(self._operations.metadata(model, version))

    async def signature(self, model: str, version: str = "") -> Signature:
        """A model's inputs and outputs, as the server declares them now."""
        return self._learn(model, version, await self._ask_signature(model, version))

    async def config(self, model: str, version: str = "") -> dict[str, Any]:
        """A model's configuration, completed."""
        return await self._call(self._operations.config(model, version))

    async def statistics(self, model: str = "", version: str = "") -> list[dict[str, Any]]:
        """The statistics of a model's versions, or of all models."""
        return await self._call(self._operations.statistics(model, version))

    async def models(self) -> list[IndexEntry]:
        """The repository's models with their states."""
        return await self._call(self._operations.index())

    async def load(
        self,
        model: str,
        *,
        config: Mapping[str, Any] | str | None = None,
        files: Mapping[str, bytes] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Has a model loaded, or loaded again; takes as long as that takes.

        Args:
            model: The model's name.
            config: A configuration in the place of the repository's.
            files: Files in the place of the repository's, by path: `1/model.onnx`.
            timeout_s: The longest wait; none by default.
        """
        await self._call(self._operations.load(model, config_text(config), files or {}), self._patient(timeout_s))
        self._forget(model)

    async def unload(self, model: str, *, dependents: bool = False, timeout_s: float | None = None) -> None:
        """Has a model unloaded, and those that it alone needs."""
        await self._call(self._operations.unload(model, dependents), self._patient(timeout_s))
        self._forget(model)

    async def share(self, byte_size: int) -> SharedMemory:
        """Memory that the server sees too: arrays in it are sent as a word of where they lie.

        Raises:
            InferError: If the server refuses; it must run on this machine and allow it.
        """
        region = SharedMemory(byte_size)
        try:
            await self._call(self._operations.share(region.name, region.key, byte_size))
        except BaseException:
            region.close()
            raise
        self._regions = (*self._regions, region)
        return region

    async def unshare(self, region: SharedMemory) -> None:
        """Has the server forget memory of `share`, and gives it back."""
        self._regions = tuple(other for other in self._regions if other is not region)
        try:
            await self._call(self._operations.unshare(region.name))
        finally:
            region.close()

    async def _infer(
        self, model: str, inputs: Inputs, outputs: Outputs | None, timeout_s: float | None, options: Options
    ) -> tuple[Question, Answer]:
        attempts = self._attempts(timeout_s, repeatable=not options.sequence_id)
        try:
            question = await self._fitting(model, inputs, outputs, options)
            box = postbox()
            reply = await self._repeat(
                attempts,
                lambda left_s: box.ask(
                    lambda mailbox, number: self._link.begin_infer(mailbox, number, *question.arguments(left_s))
                ),
            )
        except AlipesError as error:
            self._name(error, model, options)
            raise
        return question, question.answer(reply)

    async def _fitting(self, model: str, inputs: Inputs, outputs: Outputs | None, options: Options) -> Question:
        known = self._known(model, options.version)
        if known is not None:
            try:
                return self._question(known, inputs, outputs, options)
            except InvalidArgument:
                # The model may have been loaded again with other inputs meanwhile.
                if await self.signature(model, options.version) == known:
                    raise
        return self._question(await self.signature(model, options.version), inputs, outputs, options)

    async def _ask_signature(self, model: str, version: str) -> Signature:
        metadata = await self.metadata(model, version)
        try:
            config = await self.config(model, version)
        except InferError:
            config = None  # another server's: then it says itself which inputs it misses
        return read_signature(metadata, config)

    async def _truth(self, call: Call[bool]) -> bool:
        try:
            return await self._call(call, timeout_s=self.timeout_s, times=0)
        except (InferError, TransportError):
            return False

    async def _call(self, call: Call[T], timeout_s: float | None = None, times: int | None = None) -> T:
        attempts = self._attempts(timeout_s, repeatable=call.repeatable, retry=call.retry)

        def ask(left_s: float | None) -> Awaitable[Any]:
            return postbox().ask(
                lambda mailbox, number: self._link.begin_call(mailbox, number, call.path, call.body, left_s)
            )

        return call.read(await (ask(attempts.left_s()) if times == 0 else self._repeat(attempts, ask)))

    async def _repeat(self, attempts: Attempts, ask: Callable[[float | None], Awaitable[T]]) -> T:
        while True:
            try:
                return await ask(attempts.left_s())
            except AlipesError as error:
                await asyncio.sleep(attempts.after(error))

    def _patient(self, timeout_s: float | None) -> float:
        return float("inf") if timeout_s is None else timeout_s
