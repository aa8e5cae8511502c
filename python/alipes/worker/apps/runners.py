"""How a function is called for requests: one at a time, together, or many side by side."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, Protocol

from alipes.worker.apps.asks import Ask, ask_of, failed
from alipes.worker.apps.callers import answering
from alipes.worker.apps.joined import Joined
from alipes.worker.apps.plan import Plan
from alipes.worker.apps.rows import Rows, row_reader
from alipes.worker.triton.logger import Logger

if TYPE_CHECKING:
    from alipes._core import InferenceRequest, InferenceResponse, InferenceResponseSender
    from alipes.worker.apps.asks import Bodies

__all__ = ["Coroutines", "Runner", "runner_of"]

_FINAL: Final = 1
_LOOK_S: Final = 0.05
"""Seconds between two looks for callers that have left coroutines."""


class Runner(Protocol):
    """Calls a function."""

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse | None] | None:
        """The responses for requests; None for those that are answered later."""

    def close(self) -> None:
        """Ends what still runs."""


def runner_of(function: Callable[..., Any], plan: Plan, bodies: Bodies, concurrency: int) -> Runner:
    """The runner that a plan calls for.

    Args:
        function: What is called.
        plan: What it takes and gives.
        bodies: Reads the bodies of calls.
        concurrency: Requests that run side by side, where they do.
    """
    if plan.is_async:
        return Coroutines(function, plan, bodies, concurrency)
    if plan.is_stream:
        return _Streams(function, plan, bodies, concurrency)
    return _Batches(function, plan, bodies) if plan.batched else _OneByOne(function, plan, bodies)


class _OneByOne:
    def __init__(self, function: Callable[..., Any], plan: Plan, bodies: Bodies) -> None:
        self._function = function
        self._plan = plan
        self._bodies = bodies

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse | None]:
        return [self._answer(request) for request in requests]

    def close(self) -> None:
        pass

    def _answer(self, request: InferenceRequest) -> InferenceResponse:
        ask = ask_of(request, self._plan, self._bodies)
        try:
            ask.read()
            with answering((request,)):
                value = self._function(**ask.arguments)
            return ask.response(value)
        except Exception as error:
            return failed(error, ask.failure)


class _Batches:
    def __init__(self, function: Callable[..., Any], plan: Plan, bodies: Bodies) -> None:
        reader = None if plan.any_rows else row_reader(plan)
        self._rows = Rows(function, reader, bodies.encode) if reader is not None else None
        self._joined = Joined(function, plan, Logger.log_warn)
        self._plan = plan
        self._bodies = bodies

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse | None]:
        with answering(requests):
            return self._answers(requests)

    def _answers(self, requests: list[InferenceRequest]) -> list[InferenceResponse | None]:
        if self._rows is None:
            return [*self._one_by_one(requests)]
        found = self._rows.answers(requests)
        if left := [at for at, response in enumerate(found) if response is None]:
            for at, response in zip(left, self._one_by_one([requests[at] for at in left]), strict=True):
                found[at] = response
        return found

    def _one_by_one(self, requests: list[InferenceRequest]) -> list[InferenceResponse]:
        """The responses to requests that are read one by one."""
        asks = [ask_of(request, self._plan, self._bodies) for request in requests]
        found: dict[int, Any] = {}
        good = []
        for at, ask in enumerate(asks):
            try:
                ask.read()
                good.append(at)
            except Exception as error:
                found[at] = error
        found.update(zip(good, self._joined.answers([asks[at] for at in good]), strict=True))
        return [_response(ask, found[at]) for at, ask in enumerate(asks)]

    def close(self) -> None:
        pass


class _Streams:
    """Generators, each on a thread of its own: a slow reader holds up nobody else."""

    def __init__(self, function: Callable[..., Any], plan: Plan, bodies: Bodies, concurrency: int) -> None:
        self._function = function
        self._plan = plan
        self._bodies = bodies
        self._threads = ThreadPoolExecutor(concurrency, "alipes-stream")
        self._free = threading.Semaphore(concurrency)

    def execute(self, requests: list[InferenceRequest]) -> None:
        for request in requests:
            sender, ask = request.get_response_sender(), ask_of(request, self._plan, self._bodies)
            self._free.acquire()
            self._threads.submit(self._run, request, sender, ask)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(self, request: InferenceRequest, sender: InferenceResponseSender, ask: Ask) -> None:
        try:
            with answering((request,)):
                self._send_all(sender, ask)
        except Exception as error:
            with contextlib.suppress(Exception):  # the caller may be gone
                sender.send(failed(error, ask.failure))
        finally:
            with contextlib.suppress(Exception):
                sender.send(flags=_FINAL)
            self._free.release()

    def _send_all(self, sender: InferenceResponseSender, ask: Ask) -> None:
        ask.read()
        values = self._function(**ask.arguments)
        try:
            for value in values:
                if sender.is_cancelled():
                    return
                sender.send(ask.response(value))
        finally:
            values.close()


class Coroutines:
    """Coroutines and asynchronous generators on one event loop; a caller that leaves cancels its own."""

    def __init__(self, function: Callable[..., Any], plan: Plan, bodies: Bodies, concurrency: int) -> None:
        """Starts the loop, on a thread of its own."""
        self._function = function
        self._plan = plan
        self._bodies = bodies
        self._free = threading.Semaphore(concurrency)
        self._senders = ThreadPoolExecutor(concurrency, "alipes-send")  # it starts a thread when one is needed
        self._begun: deque[tuple[InferenceRequest, InferenceResponseSender, Ask, Callable[..., Any]]] = deque()
        self._is_woken = False
        self._running: dict[asyncio.Task[None], InferenceResponseSender] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="alipes-coroutines", daemon=True)
        self._thread.start()
        self._watch: asyncio.Task[None] | None = None

    def run(self, coroutine: Any) -> Any:
        """What a coroutine returns, such as that of an `async def setup`."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse | None] | None:
        """Has the function answer requests later."""
        for request in requests:
            self.begin(request, ask_of(request, self._plan, self._bodies), self._function)
        return None if self._plan.is_stream else [None for _ in requests]

    def begin(self, request: InferenceRequest, ask: Ask, function: Callable[..., Any]) -> None:
        """Has a coroutine answer a request later, beside the others."""
        sender = request.get_response_sender()
        self._free.acquire()
        self._begun.append((request, sender, ask, function))
        # One wake-up is for all that have come until the loop looks: a transformer with 64 callers answers 1.2 times as
        # many requests by it (two cores).
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._start_all)

    def close(self) -> None:
        """Cancels what still runs."""

        async def cancel() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            if others:
                await asyncio.wait(others, timeout=2.0)

        self.run(cancel())
        self._senders.shutdown(wait=False, cancel_futures=True)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _start_all(self) -> None:
        self._is_woken = False  # before the look: what comes after it wakes the loop again
        while self._begun:
            self._start(*self._begun.popleft())

    def _start(
        self, request: InferenceRequest, sender: InferenceResponseSender, ask: Ask, function: Callable[..., Any]
    ) -> None:
        with answering((request,)):  # a task has the context in which it is made
            task = self._loop.create_task(self._run(sender, ask, function))
        self._running[task] = sender
        task.add_done_callback(self._end)
        if self._watch is None or self._watch.done():
            self._watch = self._loop.create_task(self._cancel_left())

    def _end(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        self._free.release()

    async def _cancel_left(self) -> None:
        """Cancels what nobody waits for any more, as long as anything runs."""
        while self._running:
            await asyncio.sleep(_LOOK_S)
            for task, sender in list(self._running.items()):
                if sender.is_cancelled():
                    task.cancel()

    async def _run(self, sender: InferenceResponseSender, ask: Ask, function: Callable[..., Any]) -> None:
        try:
            ask.read()
            if self._plan.is_stream:
                await self._send_all(sender, ask)
            else:
                sender.send(ask.response(await function(**ask.arguments)), flags=_FINAL)
                return
        except asyncio.CancelledError:
            _send(sender, ask.failure(_cancelled()), self._plan.is_stream)
        except Exception as error:
            _send(sender, failed(error, ask.failure), self._plan.is_stream)
        if self._plan.is_stream:
            with contextlib.suppress(Exception):
                sender.send(flags=_FINAL)

    async def _send_all(self, sender: InferenceResponseSender, ask: Ask) -> None:
        values = self._function(**ask.arguments)
        try:
            async for value in values:
                # `send` waits for a reader that is slow: not on the loop of all the others, nor on a thread of theirs.
                await self._loop.run_in_executor(self._senders, sender.send, ask.response(value))
        finally:
            await values.aclose()


def _send(sender: InferenceResponseSender, response: InferenceResponse, goes_on: bool) -> None:
    with contextlib.suppress(Exception):  # the caller may be gone
        sender.send(response, flags=0 if goes_on else _FINAL)


def _cancelled() -> Exception:
    from alipes.errors import Cancelled

    return Cancelled("the caller has left")


def _response(ask: Ask, found: Any) -> InferenceResponse:
    if isinstance(found, Exception):
        return failed(found, ask.failure)
    try:
        return ask.response(found)
    except Exception as error:
        return failed(error, ask.failure)
