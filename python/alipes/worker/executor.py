"""What the link calls for each execution: the model's `execute`, plain or `async`, and the words for its failures."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from alipes.worker import failure

if TYPE_CHECKING:
    from alipes._core import InferenceRequest, WorkerLink
    from alipes.worker.coroutines import Coroutines

__all__ = ["Executor"]


class Executor:
    """Executes requests with a model."""

    def __init__(
        self,
        link: WorkerLink,
        model: Any,
        instance: str,
        decoupled: bool,
        begin: Callable[[], None] | None = None,
    ) -> None:
        """Takes what executes.

        Args:
            link: The link.
            model: The initialized model.
            instance: The name of the instance.
            decoupled: The model's transaction policy.
            begin: Called first on each further thread that executes for the model.
        """
        self._begin = begin
        self._link = link
        self._model = model
        self._decoupled = decoupled
        self._not_none = (
            f"Python model '{instance}' is using the decoupled mode and the execute function must return None."
        )
        self._coroutines: Coroutines | None = None

    def execute(self, requests: list[InferenceRequest]) -> Any:
        """What the model returns for requests, or its coroutine for them."""
        returned = self._model.execute(requests)
        # The first question spares the second, which costs more, for what nearly all models return.
        if type(returned) is list or not isinstance(returned, Coroutine):
            return returned
        if self._decoupled:
            return self._start(requests, returned)
        del requests  # the coroutine has them; what it lets go of is free before the answers are sent
        return self._loop().wait(returned)

    def describe(self, error: BaseException) -> str:
        """The text for what `execute` raised. `SystemExit` is no exception: it fails requests, and not the worker."""
        text = failure.describe(error)
        failure.log_trace(error)
        failure.forget(error)
        return text

    def coroutines(self) -> Coroutines:
        """The model's event loop, on a thread of its own from now on: for coroutines that others wait for."""
        coroutines = self._loop()
        coroutines.go_on()
        return coroutines

    def finish(self) -> None:
        """Lets the model finalize, then ends its coroutines. Raises what `finalize` raises."""
        if self._coroutines is not None:
            self._coroutines.go_on()  # `finalize` may wait for what it starts there
        try:
            if hasattr(self._model, "finalize"):
                self._model.finalize()
        finally:
            if self._coroutines is not None:
                self._coroutines.stop()

    def _start(self, requests: list[InferenceRequest], coroutine: Coroutine[Any, Any, Any]) -> None:
        """Has a coroutine of a decoupled model go on in the background while further requests are taken."""

        def end(returned: object, error: BaseException | None) -> None:
            if error is not None:
                self._link.fail(requests, self.describe(error))
            elif returned is not None:
                self._link.fail(requests, self._not_none)

        self._loop().start(coroutine, end)

    def _loop(self) -> Coroutines:
        if self._coroutines is None:
            from alipes.worker.coroutines import Coroutines  # asyncio is slow to import, and few models need it

            self._coroutines = Coroutines(self._begin)
        return self._coroutines
