"""The client whose calls are awaited."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Generator, Mapping, Sequence
from functools import partial
from typing import Any, Self, TypeVar, Unpack, overload

from alipes._core import ClientLink, ClientPlan
from alipes.client.arguments import Version, model_name, split_of, timeout_of, version_text
from alipes.client.guessed import MISSING, refuse_missing
from alipes.client.plain.asyncio_bridge import running_bridge
from alipes.client.plain.base import PlainClient, result_of
from alipes.client.plain.options import RequestOptions, read_options
from alipes.client.plain.request import Answer, Array, Inputs, Outputs, check_tensors, named_outputs
from alipes.client.plain.responses import AsyncResponses, in_thread
from alipes.client.plain.retry import Failure
from alipes.client.plain.shared import SharedMemory
from alipes.client.plain.steps import (
    ControlStep,
    InferStep,
    Listen,
    Look,
    LookUp,
    OpenStream,
    Pause,
    ServerStep,
    Step,
    Steps,
    TransportStep,
    Where,
)
from alipes.client.signature import Signature, Value
from alipes.errors import AlipesError
from alipes.types import IndexEntry, Shadow, TrafficSplit

__all__ = ["AsyncClient"]

T = TypeVar("T")


class AsyncClient(PlainClient):
    """A client for any server of the V2 protocol whose calls are awaited; any number of them run at the same time.

    Large arrays are sent without a copy: leave them unchanged until the response has arrived. Cancelling a coroutine
    cancels its request. A context manager, with and without `async`: leaving it closes the connections.

    >>> async def ask():
    ...     async with AsyncClient("localhost:8001") as client:
    ...         print(await client.infer("double", [[1.0, 2.0]]), (await client.models())[0].name)
    >>> asyncio.run(ask())
    [[2. 4.]] double
    """

    async def __aenter__(self) -> Self:
        """The client itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Closes the connections."""
        self._link.close()

    @overload
    async def infer(
        self,
        model: str,
        inputs: Mapping[str, Value],
        *,
        outputs: Outputs | None = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
        **options: Unpack[RequestOptions],
    ) -> dict[str, Array]: ...
    @overload
    async def infer(
        self,
        model: str,
        inputs: Value,
        *,
        outputs: Outputs | None = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
        **options: Unpack[RequestOptions],
    ) -> Array: ...
    async def infer(
        self,
        model: str,
        inputs: Inputs = MISSING,
        *,
        outputs: Outputs | None = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
        **options: Unpack[RequestOptions],
    ) -> dict[str, Array] | Array:
        """Sends an inference request and waits for its outputs.

        Args:
            model: The model's name.
            inputs: Arrays by the name of their input; or the array alone, for a model with one input.
            outputs: The requested outputs; an array in shared memory by an output's name receives that output,
                and so does a `RegionTensor`; inputs may be such tensors, too.
            timeout_s: Time for all attempts together; the client's own by default.
            timeout: The same under its short name, here and in all other methods.
            options: Further fields of the request: `version`, `request_id`, `sequence_id`, `sequence_start`,
                `sequence_end`, `priority`, `queue_timeout_s`, `parameters`, `headers`; see `alipes.client.Options`.

        Returns:
            Arrays by the name of their output; for a single array, the single output where the model has one.

        Raises:
            InvalidArgument: If the inputs do not fit the model's declaration, or an argument is of another type;
                nothing was sent then.
            InferError: If the server refuses or fails the request; the class tells the code.
            DeadlineExceeded: If the time is up.
            TransportError: If the server cannot be reached.
            TypeError: If there are no inputs.
        """
        if inputs is MISSING:
            refuse_missing("infer", model, options)
        limit_s = timeout_of(timeout_s, timeout)
        began_s, failed = 0.0, None
        try:
            if outputs is None and not options and not self._regions and (plan := self._plans.get(model)) is not None:
                began_s = time.monotonic()
                answered = await self._ask_plainly(plan, inputs, self.timeout_s if limit_s is None else limit_s)
                if answered is not None:
                    return named_outputs(model, answered) if type(answered) is dict else answered
        except AlipesError as error:
            failed = Failure(error, began_s)
        except TypeError:
            pass  # nothing was sent: the other path says which argument is wrong
        steps = self._infer_steps(model, inputs, outputs, limit_s, read_options(options), failed)
        return result_of(*await self._drive(steps))

    async def call(self, function: str, /, *values: Any, **arguments: Any) -> Any:
        """Calls a function in the words of its signature, and returns what it returns: the same over gRPC and HTTP.

        Args:
            function: Its name. Of a model that is no function, arrays by the name of their input are passed, and its
                output is returned as an array, or its outputs by name.
            values: Its first arguments, by position.
            arguments: Its arguments by name; those with a default may be left out.

        Returns:
            Its value: numbers, texts, lists, arrays, or what its JSON says. Of a generator, an iterator for `async
            for` over its values, each as it comes, for which the client has to ask over gRPC.

        Raises:
            InvalidArgument: If there is no such argument, one is missing, or a value is of another type.
            InferError: If the server refuses or the function fails; the class tells the code.
            DeadlineExceeded: If the client's time is up.
            TransportError: If the server cannot be reached.
        """
        called = await self._drive(self._called_steps(function, values, arguments))
        if called.is_stream:
            return AsyncResponses(lambda: self._drive(self._values_steps(function, called)))
        return await self._drive(self._value_steps(function, called))

    async def ask(
        self,
        model: str,
        inputs: Inputs,
        *,
        outputs: Outputs | None = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
        **options: Unpack[RequestOptions],
    ) -> Answer:
        """As `infer`, with the response's version, id and parameters beside its outputs."""
        limit_s = timeout_of(timeout_s, timeout)
        return (await self._drive(self._infer_steps(model, inputs, outputs, limit_s, read_options(options))))[1]

    @overload
    def stream(
        self,
        model: str,
        inputs: Mapping[str, Value],
        *,
        outputs: Sequence[str] | None = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
        **options: Unpack[RequestOptions],
    ) -> AsyncResponses[dict[str, Array]]: ...
    @overload
    def stream(
        self,
        model: str,
        inputs: Value,
        *,
        outputs: Sequence[str] | None = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
        **options: Unpack[RequestOptions],
    ) -> AsyncResponses[Array]: ...
    def stream(
        self,
        model: str,
        inputs: Inputs = MISSING,
        *,
        outputs: Sequence[str] | None = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
        **options: Unpack[RequestOptions],
    ) -> AsyncResponses[Any]:
        """Yields the outputs of each response to a request, as the server makes them: for decoupled models, over gRPC.

        Leaving the loop cancels the request. Other models give one response.

        Args:
            model: The model's name.
            inputs: As `infer` takes them.
            outputs: Names of the requested outputs.
            timeout_s: The longest wait for each response; the client's own by default.
            timeout: The same under its short name.
            options: As `infer` takes them.

        Returns:
            An iterator over what `infer` returns. The request is sent when the first response is wanted.

        Raises:
            InvalidArgument: If an argument is of another type. Everything else is raised by the iterator.
            TypeError: If there are no inputs.
            Unsupported: If the client asks over HTTP; the error says where gRPC is.
        """
        if inputs is MISSING:
            refuse_missing("stream", model, options)
        check_tensors(inputs, outputs)
        limit_s, fields = timeout_of(timeout_s, timeout), read_options(options)
        begin = partial(self._stream_steps, model_name(model), inputs, outputs, limit_s, fields)
        return AsyncResponses(lambda: self._drive(begin()))

    async def is_live(self, *, timeout_s: float | None = None, timeout: float | None = None) -> bool:
        """Whether the server answers."""
        return await self._drive(self._live_steps(timeout_of(timeout_s, timeout)))

    async def is_ready(
        self,
        model: str | None = None,
        version: Version = None,
        *,
        model_version: Version = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> bool:
        """Whether the server is ready; of a model, whether it accepts requests now."""
        wanted = version_text(version, model_version)
        return await self._drive(self._ready_steps(model, wanted, timeout_of(timeout_s, timeout)))

    async def is_model_ready(
        self,
        model: str = "",
        version: Version = None,
        *,
        model_name: str = "",
        model_version: Version = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> bool:
        """Whether a model accepts requests now; `model_name` is tritonclient's word for it."""
        wanted = version_text(version, model_version)
        return await self._drive(self._ready_steps(model or model_name, wanted, timeout_of(timeout_s, timeout)))

    live = is_live
    ready = is_ready

    async def server_metadata(self, *, timeout_s: float | None = None, timeout: float | None = None) -> dict[str, Any]:
        """The server's name, version and extensions."""
        return await self._drive(self._server_metadata_steps(timeout_of(timeout_s, timeout)))

    async def metadata(
        self,
        model: str,
        version: Version = None,
        *,
        model_version: Version = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """A model's versions, inputs and outputs."""
        wanted = version_text(version, model_version)
        return await self._drive(self._metadata_steps(model, wanted, timeout_of(timeout_s, timeout)))

    async def signature(
        self,
        model: str,
        version: Version = None,
        *,
        model_version: Version = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> Signature:
        """A model's inputs and outputs, as the server declares them now."""
        wanted = version_text(version, model_version)
        return await self._drive(self._signature_steps(model, wanted, timeout_of(timeout_s, timeout)))

    async def config(
        self,
        model: str,
        version: Version = None,
        *,
        model_version: Version = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """A model's configuration, completed."""
        wanted = version_text(version, model_version)
        return await self._drive(self._config_steps(model, wanted, timeout_of(timeout_s, timeout)))

    async def statistics(
        self,
        model: str = "",
        version: Version = None,
        *,
        model_version: Version = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> list[dict[str, Any]]:
        """The statistics of a model's versions, or of all models.

        One document for each version: `inference_count` rows in `execution_count` executions, `batch_stats` by size,
        `inference_stats["success"]["count"]` requests and `["ns"]` nanoseconds. They begin anew with each load.
        """
        wanted = version_text(version, model_version)
        return await self._drive(self._statistics_steps(model, wanted, timeout_of(timeout_s, timeout)))

    async def models(self, *, timeout_s: float | None = None, timeout: float | None = None) -> list[IndexEntry]:
        """The repository's models with their states."""
        return await self._drive(self._models_steps(timeout_of(timeout_s, timeout)))

    stats = statistics
    list_models = models

    async def load(
        self,
        model: str,
        *,
        config: Mapping[str, Any] | str | None = None,
        files: Mapping[str, bytes] | None = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> None:
        """Loads or reloads a model; returns when the server has finished.

        Args:
            model: The model's name.
            config: A configuration in the place of the repository's.
            files: Files in the place of the repository's, by path: `1/model.onnx`.
            timeout_s: The longest wait; none by default.
            timeout: The same under its short name.

        Raises:
            NotFound: If the server has no model of that name; the error names those that it has.
            NotReady: If the server does not load by name: start it with `--model-control-mode explicit`.
            InferError: If the server does not load it; the class tells the code.
        """
        await self._drive(self._load_steps(model, config, files, timeout_of(timeout_s, timeout)))

    async def unload(
        self, model: str, *, dependents: bool = False, timeout_s: float | None = None, timeout: float | None = None
    ) -> None:
        """Unloads a model and, with `dependents`, the models that only it uses.

        As in Triton, a name that is not loaded is no error.

        Raises:
            NotReady: If the server does not unload by name: start it with `--model-control-mode explicit`.
            NotFound: If it does not, and has no such model either.
        """
        await self._drive(self._unload_steps(model, dependents, timeout_of(timeout_s, timeout)))

    async def traffic(
        self, model: str, *, timeout_s: float | None = None, timeout: float | None = None
    ) -> TrafficSplit:
        """How the requests for a model that name no version are divided among its versions. Over HTTP alone.

        Raises:
            NotFound: If the server has no model of that name; the error names those that it has.
            Unsupported: If this client speaks gRPC.
        """
        return await self._drive(self._traffic_steps(model, timeout_of(timeout_s, timeout)))

    async def set_traffic(
        self,
        model: str,
        weights: Mapping[int, int],
        *,
        sticky_header: str | None = None,
        shadow: Shadow | int | None = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> TrafficSplit:
        """Divides the requests for a model that name no version among its versions, from now on. Over HTTP alone.

        Of several servers all are set, or none: where one cannot be set, the others are set back, and the error says
        which it was.

        Args:
            model: The model's name.
            weights: The weight of each version, `{1: 90, 2: 10}`. Versions that are left out get no such request, and
                an empty dictionary leaves all to the highest version again.
            sticky_header: A header; requests with the same value of it go to the same version. Sequences stay where
                they began in any case.
            shadow: A version that gets copies of the requests of versions with a weight; its answers go to no caller
                and are compared with theirs (`traffic_outcomes`). Without weights, the highest of the other versions
                answers.
            timeout_s: The longest wait; the client's own by default.
            timeout: The same under its short name.

        Returns:
            How they are divided now.

        Raises:
            InvalidArgument: If a version does not serve, or a weight is none.
            NotFound: If the server has no model of that name; the error names those that it has.
            Unsupported: If this client speaks gRPC.
        """
        limit_s = timeout_of(timeout_s, timeout)
        return await self._drive(self._set_traffic_steps(model, split_of(weights, sticky_header, shadow), limit_s))

    async def traffic_outcomes(
        self, model: str, *, timeout_s: float | None = None, timeout: float | None = None
    ) -> dict[int, dict[str, Any]]:
        """What became of the requests for a model since its weights are what they are, by version. Over HTTP alone.

        Of each version `answered` and `failed` requests, `latency_us` as pairs of a time and how many answers began
        after about so long, and `samples`, one number of each of the newest answers, by output. A request with several
        responses counts once, when it ends: its latency and its samples are those of the first response, and
        `response_interval_us` has the mean time between two responses. Of several servers, what became of the requests
        at all of them together.

        Raises:
            NotFound: If the server has no model of that name; the error names those that it has.
            Unsupported: If this client speaks gRPC.
        """
        return await self._drive(self._traffic_outcomes_steps(model, timeout_of(timeout_s, timeout)))

    async def share(self, byte_size: int) -> SharedMemory:
        """Creates memory that the server maps too: of arrays in it, only the position is sent.

        Raises:
            InferError: If the server refuses; it must run on this machine and allow it.
        """
        return await self._drive(self._share_steps(byte_size))

    async def unshare(self, region: SharedMemory) -> None:
        """Unregisters memory of `share` and releases it."""
        region.close()
        await self._drive(self._unshare_steps(region))

    def close(self) -> Awaitable[None]:
        """Closes the connections that no request uses now: at once, and `await client.close()` does the same."""
        self._link.close()
        return _Done()

    aclose = close

    async def _ask_plainly(self, plan: ClientPlan, inputs: Inputs, limit_s: float | None) -> Any:
        """The fast path: one step into the data plane checks, encodes and sends arrays as declared; or `None`."""
        link = self._link
        if not isinstance(link, ClientLink):  # several servers: the steps choose one of them
            return None
        return await running_bridge().call(lambda mailbox, at: link.begin_plain(mailbox, at, plan, inputs, limit_s))

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

    async def _perform(self, step: Step, link: ClientLink | None = None) -> Any:
        link = self._link if link is None else link
        if isinstance(step, InferStep | ControlStep):
            return await running_bridge().call(partial(step.begin, link))
        if isinstance(step, Pause):
            return await asyncio.sleep(step.seconds)
        if isinstance(step, TransportStep):
            return step.run(link)
        if isinstance(step, (Look, LookUp, Listen, Where, OpenStream)):
            return await in_thread(lambda: step.run(link))
        if isinstance(step, ServerStep):
            return await self._perform(step.step, step.link)
        return await asyncio.gather(*map(self._drive, step.verbs), return_exceptions=True)


class _Done(Awaitable[None]):
    """What is done already, for those who await it."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()
