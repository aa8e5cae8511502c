"""The client whose calls give futures."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import Full, Queue
from threading import Lock, Thread
from typing import Any, Self, TypeAlias

from alipes.client.plain.request import Array
from alipes.compat.pytriton.client.arguments import Parameters
from alipes.compat.pytriton.client.exceptions import PyTritonClientClosedError, PyTritonClientQueueFullError
from alipes.compat.pytriton.client.sync import ModelClient

__all__ = ["FuturesModelClient"]

_Work: TypeAlias = "tuple[Future[Any], Callable[[ModelClient], Any]] | None"


class FuturesModelClient:
    """A client for one model whose calls run on threads and give futures. A context manager.

    The threads, at most `max_workers`, use one `ModelClient`; each has a connection of its own while it calls.
    """

    def __init__(  # noqa: PLR0913 - the signature is PyTriton's
        self,
        url: str,
        model_name: str,
        model_version: str | None = None,
        *,
        max_workers: int | None = 128,
        max_queue_size: int | None = 128,
        non_blocking: bool = False,
        init_timeout_s: float | None = None,
        inference_timeout_s: float | None = None,
    ) -> None:
        """Starts nothing yet.

        Args:
            url: Address of the server.
            model_name: The model.
            model_version: Its version; the latest by default.
            max_workers: Most threads; None is no limit.
            max_queue_size: Most calls that wait for a thread; None is no limit.
            non_blocking: Whether a call is refused at once while the queue is full; it waits for a place otherwise.
            init_timeout_s: Longest wait for the server and the model.
            inference_timeout_s: Longest time of a request, and longest wait for a place.

        Raises:
            ValueError: If a limit is below 1.
        """
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if max_queue_size is not None and max_queue_size <= 0:
            raise ValueError("max_queue_size must be greater than 0")
        self._client = ModelClient(
            url, model_name, model_version, init_timeout_s=init_timeout_s, inference_timeout_s=inference_timeout_s
        )
        self._max_workers = max_workers
        self._non_blocking = non_blocking
        self._wait_s = inference_timeout_s
        self._queue: Queue[_Work] = Queue(max_queue_size or 0)
        self._lock = Lock()
        self._threads: list[Thread] = []
        self._idle = 0
        self._closed = False

    def __enter__(self) -> Self:
        """The client itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the client after its calls."""
        self.close()

    def close(self, wait: bool = True) -> None:
        """Take no further call, and close the connections after those that there are.

        Args:
            wait: Whether to return after them.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            threads = list(self._threads)
        closer = Thread(target=self._end, args=(threads,), name="alipes-futures-close")
        closer.start()
        if wait:
            closer.join()

    def wait_for_model(self, timeout_s: float) -> Future[None]:
        """Waits for the server and the model."""
        return self._submit(lambda client: client.wait_for_model(timeout_s))

    def model_config(self) -> Future[Any]:
        """The model's configuration."""
        return self._submit(lambda client: client.model_config)

    def infer_sample(
        self,
        *inputs: Array,
        parameters: Parameters | None = None,
        headers: Parameters | None = None,
        **named_inputs: Array,
    ) -> Future[Any]:
        """Sends one row, without a batch dimension; arguments, result and errors are those of `ModelClient`.

        Raises:
            PyTritonClientClosedError: If the client is closed.
            PyTritonClientQueueFullError: If too many calls wait.
        """
        return self._submit(
            lambda client: client.infer_sample(*inputs, parameters=parameters, headers=headers, **named_inputs)
        )

    def infer_batch(
        self,
        *inputs: Array,
        parameters: Parameters | None = None,
        headers: Parameters | None = None,
        **named_inputs: Array,
    ) -> Future[Any]:
        """Sends a batch; the same errors as `infer_sample`."""
        return self._submit(
            lambda client: client.infer_batch(*inputs, parameters=parameters, headers=headers, **named_inputs)
        )

    def _submit(self, call: Callable[[ModelClient], Any]) -> Future[Any]:
        if self._closed:
            raise PyTritonClientClosedError("FutureModelClient is already closed")
        future: Future[Any] = Future()
        self._need_thread()
        try:
            self._queue.put((future, call), block=not self._non_blocking, timeout=self._wait_s)
        except Full as error:
            raise PyTritonClientQueueFullError("Queue is full") from error
        return future

    def _need_thread(self) -> None:
        """Start a thread where none is free for another call."""
        with self._lock:
            free = self._idle - self._queue.qsize() > 0
            most = self._max_workers
            if free or self._closed or (most is not None and len(self._threads) >= most):
                return
            thread = Thread(target=self._work, name="alipes-futures", daemon=True)
            self._threads.append(thread)
            self._idle += 1
        thread.start()

    def _work(self) -> None:
        while (work := self._queue.get()) is not None:
            with self._lock:
                self._idle -= 1
            future, call = work
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call(self._client))
                except BaseException as error:
                    future.set_exception(error)
            del work, future, call  # an idle thread keeps no array
            with self._lock:
                self._idle += 1

    def _end(self, threads: list[Thread]) -> None:
        for _ in threads:
            self._queue.put(None)
        for thread in threads:
            thread.join()
        self._client.close()
