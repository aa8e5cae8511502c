"""The client whose calls wait for their answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

import numpy.typing as npt

from alipes.client.plain.base import PlainClient, config_text
from alipes.client.plain.operations import Call
from alipes.client.plain.question import Answer, Array, Inputs, Options, Outputs, Question
from alipes.client.plain.retry import Attempts, Failure
from alipes.client.plain.shared import SharedMemory
from alipes.client.plain.signature import Signature, read_signature
from alipes.errors import AlipesError, InferError, InvalidArgument, TransportError
from alipes.types import IndexEntry

__all__ = ["Client"]

T = TypeVar("T")


class Client(PlainClient):
    """Asks a server of the V2 protocol, ours or another, and waits for each answer.

    It may be used from several threads at a time, each of which then has a connection of its own, and in a process that
    was forked. A context manager: leaving it closes the connections.
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
        failed = None
        if outputs is None and not options and not self._regions and (plan := self._plans.get(model)) is not None:
            limit_s = self.timeout_s if timeout_s is None else timeout_s
            began_s = time.monotonic()
            try:
                answered: dict[str, Array] | Array | None = self._link.plain(plan, inputs, limit_s)
            except AlipesError as error:
                failed = Failure(error, began_s)
            else:
                if answered is not None:
                    return answered
        question, answer = self._infer(model, inputs, outputs, timeout_s, Options(**options), failed)
        if question.single and len(answer.outputs) == 1:
            return next(iter(answer.outputs.values()))
        return answer.outputs

    def ask(
        self,
        model: str,
        inputs: Inputs,
        *,
        outputs: Outputs | None = None,
        timeout_s: float | None = None,
        **options: Any,
    ) -> Answer:
        """As `infer`, with what the answer says beside its outputs."""
        return self._infer(model, inputs, outputs, timeout_s, Options(**options))[1]

    def is_live(self) -> bool:
        """Whether the server answers."""
        return self._truth(self._operations.live())

    def is_ready(self) -> bool:
        """Whether the server is ready."""
        return self._truth(self._operations.ready())

    def is_model_ready(self, model: str, version: str = "") -> bool:
        """Whether a model can be asked now."""
        return self._truth(self._operations.model_ready(model, version))

    def server_metadata(self) -> dict[str, Any]:
        """The server's name, version and extensions."""
        return self._call(self._operations.server_metadata())

    def metadata(self, model: str, version: str = "") -> dict[str, Any]:
        """A model's versions, inputs and outputs."""
        return self._call(self._operations.metadata(model, version))

    def signature(self, model: str, version: str = "") -> Signature:
        """A model's inputs and outputs, as the server declares them now."""
        return self._learn(model, version, self._ask_signature(model, version))

    def config(self, model: str, version: str = "") -> dict[str, Any]:
        """A model's configuration, completed."""
        return self._call(self._operations.config(model, version))

    def statistics(self, model: str = "", version: str = "") -> list[dict[str, Any]]:
        """The statistics of a model's versions, or of all models."""
        return self._call(self._operations.statistics(model, version))

    def models(self) -> list[IndexEntry]:
        """The repository's models with their states."""
        return self._call(self._operations.index())

    def load(
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
        self._call(self._operations.load(model, config_text(config), files or {}), self._patient(timeout_s))
        self._forget(model)

    def unload(self, model: str, *, dependents: bool = False, timeout_s: float | None = None) -> None:
        """Has a model unloaded, and those that it alone needs."""
        self._call(self._operations.unload(model, dependents), self._patient(timeout_s))
        self._forget(model)

    def share(self, byte_size: int) -> SharedMemory:
        """Memory that the server sees too: arrays in it are sent as a word of where they lie.

        Raises:
            InferError: If the server refuses; it must run on this machine and allow it.
        """
        region = SharedMemory(byte_size)
        try:
            self._call(self._operations.share(region.name, region.key, byte_size))
        except BaseException:
            region.close()
            raise
        self._regions = (*self._regions, region)
        region.on_close(lambda: self._unshare(region))
        return region

    def _unshare(self, region: SharedMemory) -> None:
        self._regions = tuple(other for other in self._regions if other is not region)
        self._call(self._operations.unshare(region.name))

    def _infer(
        self,
        model: str,
        inputs: Inputs,
        outputs: Outputs | None,
        timeout_s: float | None,
        options: Options,
        failed: Failure | None = None,
    ) -> tuple[Question, Answer]:
        attempts = self._attempts(timeout_s, repeatable=not options.sequence_id)
        try:
            if failed is not None:
                time.sleep(attempts.after_first(failed))
            question = self._fitting(model, inputs, outputs, options)
            reply = self._repeat(attempts, lambda left_s: self._link.infer(*question.arguments(left_s)))
        except AlipesError as error:
            self._name(error, model, options)
            raise
        return question, question.answer(reply)

    def _fitting(self, model: str, inputs: Inputs, outputs: Outputs | None, options: Options) -> Question:
        known = self._known(model, options.version)
        if known is not None:
            try:
                return self._question(known, inputs, outputs, options)
            except InvalidArgument:
                # The model may have been loaded again with other inputs meanwhile.
                if self.signature(model, options.version) == known:
                    raise
        return self._question(self.signature(model, options.version), inputs, outputs, options)

    def _ask_signature(self, model: str, version: str) -> Signature:
        metadata = self.metadata(model, version)
        try:
            config = self.config(model, version)
        except InferError:
            config = None  # another server's: then it says itself which inputs it misses
        return read_signature(metadata, config)

    def _truth(self, call: Call[bool]) -> bool:
        try:
            return self._call(call, timeout_s=self.timeout_s, times=0)
        except (InferError, TransportError):
            return False

    def _call(self, call: Call[T], timeout_s: float | None = None, times: int | None = None) -> T:
        attempts = self._attempts(timeout_s, repeatable=call.repeatable, retry=call.retry)
        if times == 0:
            return call.read(self._link.call(call.path, call.body, attempts.left_s()))
        return call.read(self._repeat(attempts, lambda left_s: self._link.call(call.path, call.body, left_s)))

    def _repeat(self, attempts: Attempts, ask: Callable[[float | None], T]) -> T:
        while True:
            try:
                return ask(attempts.left_s())
            except AlipesError as error:
                time.sleep(attempts.after(error))

    def _patient(self, timeout_s: float | None) -> float:
        return float("inf") if timeout_s is None else timeout_s
