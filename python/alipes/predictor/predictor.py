"""`Predictor`: a handle to the model behind a function, as a transformer and an explainer have one."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Unpack

from alipes.client.arguments import check_type, seconds, setting_error, timeout_of
from alipes.client.plain.options import RequestOptions, read_options
from alipes.client.plain.request import check_tensors
from alipes.client.plain.retry import Attempts, Retry
from alipes.errors import AlipesError, Cancelled, ConfigError, DeadlineExceeded, InferError
from alipes.predictor.blocking import awaited
from alipes.predictor.budget import RetryBudget
from alipes.predictor.failures import REFUSED, failure_of
from alipes.predictor.link import Link, PredictorCall
from alipes.worker.apps.callers import trace_headers
from alipes.worker.apps.predictor_flags import HANDLES, PredictorFlags, predictor_flags
from alipes.worker.triton.logger import Logger

if TYPE_CHECKING:
    from alipes.client.signature import Value
    from alipes.client.tls import Tls

__all__ = ["Fallback", "Predictor"]

DEFAULT_TIMEOUT_S: Final = 60.0
"""Longest time of a call where nobody says another."""

_READY_S: Final = 5.0
"""Longest wait for whether a predictor is ready."""

Fallback = Callable[[Any], Any]
"""A function, plain or `async`, of the inputs as the caller passed them; it returns outputs in the form of `infer`."""


class Predictor:
    """A handle to a model that a function calls with tensors: over gRPC, over HTTP in binary, or at the same server.

    A call has one time-out for all of its attempts. Further attempts are counted against a budget. When the caller of
    the function leaves, the call is withdrawn. The predictor's part belongs to the trace of the function's request.
    Any number of threads and coroutines may share a handle.

    Examples:
        >>> import alipes, numpy as np
        >>> @alipes.model
        ... def double(x: float) -> float:
        ...     return 2 * x
        >>> predictor = alipes.Predictor("double")
        >>> predictor.infer({"x": 3.0})["output_0"].tolist()
        6.0
    """

    def __init__(  # noqa: PLR0913 - each is an option of its own
        self,
        model: str = "",
        address: str | None = None,
        *,
        timeout_s: float | None = None,
        retry: Retry | None = None,
        budget: RetryBudget | None = None,
        fallback: Predictor | Fallback | None = None,
        headers: Mapping[str, str] | None = None,
        api_key: str | None = None,
        tls: Tls | None = None,
    ) -> None:
        """Connects with the first call.

        Args:
            model: The predictor's model; left out, the one that `--model-name` names.
            address: `grpc://host:port` or `http://host:port`, as `alipes.Client` takes it. Left out, the server that
                `--predictor-host` names; without that flag, the server that runs the function.
            timeout_s: Time for a call with all its attempts; left out, that of the flag, or else 60 s.
            retry: Further attempts of one call; left out, as many as the flag says, or else two.
            budget: Bounds the further attempts of all calls together; left out, a tenth of the calls, and ten besides.
            fallback: What answers a call that fails or takes too long: another `Predictor`, or a function of the
                inputs. Calls that are refused for what they say are not passed to it.
            headers: Headers of each request.
            api_key: The key that each request shows; by default that of the environment's `ALIPES_API_KEY`.
            tls: How encrypted connections are checked.

        Raises:
            ConfigError: If an argument is of another type.
        """
        check_type("model", str, "the name of a model as text", model)
        check_type("address", str, "text such as 'grpc://localhost:8001'", address)
        check_type("retry", Retry, "a Retry, such as Retry(times=3)", retry)
        check_type("budget", RetryBudget, "a RetryBudget, such as RetryBudget(0.1)", budget)
        if fallback is not None and not isinstance(fallback, Predictor) and not callable(fallback):
            raise setting_error("fallback", "a Predictor, or a function of the inputs", fallback)
        limit_s = seconds("timeout_s", timeout_s, setting_error)
        if limit_s is not None and not limit_s > 0:
            raise setting_error("timeout_s", "seconds above 0", timeout_s)
        self._model, self._address, self._timeout_s, self._retry = model, address, limit_s, retry
        self._budget = budget if budget is not None else RetryBudget()
        self._fallback = fallback
        self._security = (headers, api_key, tls)
        self._link: Link | None = None
        self._linking = threading.Lock()
        self._has_failed = False
        if address is None:
            HANDLES.add(self)
        else:
            self._link = self._linked(PredictorFlags())  # a wrong address is an error here, and not of the first call

    def infer(
        self,
        inputs: Mapping[str, Value] | Value,
        *,
        outputs: Sequence[str] | None = None,
        timeout_s: float | None = None,
        **options: Unpack[RequestOptions],
    ) -> Any:
        """Calls the predictor and waits for it; `await infer_async(...)` in `async` functions.

        Args:
            inputs: Arrays by the name of their input; or the array alone, for a model with one input.
            outputs: Names of the wanted outputs; all by default.
            timeout_s: Time for all attempts together; the handle's own by default.
            options: Further fields of the request, as `Client.infer` takes them.

        Returns:
            Arrays by the name of their output; for a single array, the single output where the model has one.

        Raises:
            NotReady: If the predictor cannot be reached or serves no such model, and no fallback answers.
            DeadlineExceeded: If the time is up.
            Internal: If the predictor fails, or refuses the call for what it says.
            Cancelled: If the caller of the function has left.
        """
        return awaited(self.infer_async(inputs, outputs=outputs, timeout_s=timeout_s, **options))

    async def infer_async(
        self,
        inputs: Mapping[str, Value] | Value,
        *,
        outputs: Sequence[str] | None = None,
        timeout_s: float | None = None,
        **options: Unpack[RequestOptions],
    ) -> Any:
        """`infer` for `async` functions: others run while the answer is awaited; cancelling it withdraws the call."""
        flags = predictor_flags()
        link, model = self._linked(flags), self._named(flags)
        limit_s = self._timeout_s or flags.timeout_s or DEFAULT_TIMEOUT_S
        wanted = None if outputs is None else list(outputs)
        call = PredictorCall(model, inputs, wanted, options, trace_headers())
        try:
            check_tensors(inputs, outputs)
            read_options(options)
            limit_s = timeout_of(timeout_s) or limit_s
            attempts = Attempts(self._policy(flags), limit_s, repeatable="sequence_id" not in options)
            async with asyncio.timeout(limit_s):
                answer = await self._attempted(link, call, attempts)
        except TimeoutError:
            error: AlipesError = DeadlineExceeded("the time is up")
        except AlipesError as failed:
            error = failed
        else:
            self._note(None)
            return answer
        failure = failure_of(error, model, str(link), limit_s)
        failure.__cause__ = error
        return await self._answer_of_fallback(call, error, failure)

    def is_ready(self) -> bool:
        """Whether the predictor's model can be called now; the fallback is not asked."""
        return bool(awaited(self.is_ready_async()))

    async def is_ready_async(self) -> bool:
        """`is_ready` for `async` functions."""
        flags = predictor_flags()
        try:
            async with asyncio.timeout(_READY_S):
                return await self._linked(flags).is_ready(self._named(flags), _READY_S)
        except (TimeoutError, AlipesError):
            return False

    def max_batch_size(self) -> int:
        """Rows that one call of the predictor's model may have; 0 where nobody says it.

        Raises:
            InferError: As `infer` does.
        """
        return int(awaited(self._found(lambda link, model: link.max_batch_size(model, _READY_S))))

    def input_axes(self, name: str = "") -> int | None:
        """Axes of an input of the predictor's model, that of the batch among them; None where nobody says it.

        Args:
            name: The input; left out, the only one.

        Raises:
            InferError: As `infer` does.
        """
        found: int | None = awaited(self._found(lambda link, model: link.input_axes(model, name, _READY_S)))
        return found

    async def _found(self, look: Callable[[Link, str], Awaitable[Any]]) -> Any:
        """What the server says of the model."""
        flags = predictor_flags()
        link, model = self._linked(flags), self._named(flags)
        try:
            async with asyncio.timeout(_READY_S):
                return await look(link, model)
        except TimeoutError:
            error: AlipesError = DeadlineExceeded("the time is up")
        except AlipesError as failed:
            error = failed
        raise failure_of(error, model, str(link), _READY_S) from error

    def close(self) -> None:
        """Closes the connections that no call uses now; later calls open new ones."""
        if self._link is not None:
            self._link.close()

    def __repr__(self) -> str:
        """The class, the model and the server."""
        return f"{type(self).__name__}({self._model!r}, {self._address!r})"

    def _named(self, flags: PredictorFlags) -> str:
        model = self._model or flags.model
        if not model:
            raise ConfigError("name the predictor's model: alipes.Predictor('iris'), or serve with --model-name=iris")
        if model == flags.model and not flags.host and self._address is None:
            raise ConfigError(f"predictor '{model}' would be this app itself: say where it is, with --predictor-host")
        return model

    def _policy(self, flags: PredictorFlags) -> Retry:
        if self._retry is not None:
            return self._retry
        return Retry() if flags.retries is None else Retry(times=flags.retries)

    def _linked(self, flags: PredictorFlags) -> Link:
        with self._linking:
            if self._link is None:
                self._link = self._connected(flags)
            return self._link

    def _connected(self, flags: PredictorFlags) -> Link:
        from alipes.predictor.remote import RemoteLink, address_of

        address = self._address if self._address is not None else address_of(flags)
        if address is not None:
            return RemoteLink(address, *self._security)
        from alipes.predictor.direct import DirectLink  # a handle to another server needs no plans of functions

        return DirectLink()

    async def _attempted(self, link: Link, call: PredictorCall, attempts: Attempts) -> Any:
        """The answer to a call, after as many attempts as its policy and the budget allow."""
        self._budget.count_call()
        while True:
            try:
                return await link.infer(call, attempts.left_s())
            except AlipesError as error:
                pause_s = attempts.after(error)  # raises the error where there is no further attempt
                if not self._budget.take():
                    raise
            await asyncio.sleep(pause_s)

    async def _answer_of_fallback(self, call: PredictorCall, error: AlipesError, failure: InferError) -> Any:
        """What the fallback answers.

        Raises:
            InferError: The failure, where there is no fallback, or it fails too.
        """
        if self._fallback is None or isinstance(error, (*REFUSED, Cancelled)):
            raise failure
        self._note(failure)
        try:
            if isinstance(self._fallback, Predictor):
                options = call.options
                return await self._fallback.infer_async(call.inputs, outputs=call.outputs, **options)
            return await _called(self._fallback, call.inputs)
        except Exception as second:
            text = f"{failure.message}; and its fallback fails: {second}"
            failure.message, failure.args = text, (text,)
            raise failure from second

    def _note(self, failure: InferError | None) -> None:
        """Says in the log that the fallback answers from now on, or no longer does."""
        if (failure is not None) == self._has_failed:
            return
        self._has_failed = failure is not None
        if failure is not None:
            Logger.log_warn(f"{failure.message}: the fallback answers")
        else:
            Logger.log_info(f"predictor '{self._model}' answers again")


async def _called(function: Fallback, inputs: Any) -> Any:
    """What a fallback returns: a plain one runs on a thread, so that it keeps no other call waiting."""
    found = await asyncio.to_thread(function, inputs)
    return await _of(found) if inspect.isawaitable(found) else found


async def _of(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
