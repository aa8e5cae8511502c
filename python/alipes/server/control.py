"""The control thread: takes control requests from the data plane and submits loads and unloads to the loader pool.

It only dispatches, so a load that takes minutes never delays the next request. It waits inside the data plane with the
interpreter released.
"""

from __future__ import annotations

import json
import time
from functools import partial
from typing import TYPE_CHECKING

from alipes.config.record_options import LogOptions
from alipes.disclosure import public
from alipes.errors import AlipesError
from alipes.model_load import Load
from alipes.server.failures import LoadFailed
from alipes.server.lifecycle import Lifecycle
from alipes.server.loader import LoaderPool
from alipes.server.log import change, log
from alipes.server.override import Override, read_override
from alipes.server.provisional import Provisional, split_revert_after
from alipes.server.service_thread import ServiceThread
from alipes.types import ModelKey

if TYPE_CHECKING:
    from alipes import _core

# Triton's text in every mode but `explicit`, odd as it is.
NOT_ALLOWED = "explicit model load / unload is not allowed if polling is enabled"

# The longest wait for a control request, and so for the check whether to end.
WAIT_S = 1.0


class Control(ServiceThread):
    """Serves control requests until it is stopped; ends at once when the data plane has stopped."""

    def __init__(self, core: _core.Server, lifecycle: Lifecycle, pool: LoaderPool, *, allowed: bool) -> None:
        """Prepares the thread.

        Args:
            core: Where requests come from.
            lifecycle: Carries them out.
            pool: Threads on which it does so.
            allowed: Whether loading and unloading is allowed at all (mode `explicit`).
        """
        super().__init__("alipes-control")
        self._core = core
        self._lifecycle = lifecycle
        self._pool = pool
        self._allowed = allowed
        self._provisional = Provisional()

    def _run(self) -> None:
        while not self._stopping.is_set():
            request = self._core.next_control(WAIT_S)
            if request is not None:
                self._dispatch(request)
            for model in self._provisional.due(time.monotonic()):
                self._pool.submit(model, partial(self._revert, model))

    def _dispatch(self, request: _core.Control) -> None:
        if request.kind == "log":
            _change_log(LogOptions(file="", **json.loads(request.parameters)))  # where the log goes never changes
            request.reply(None)
        elif not self._allowed:
            request.reply("UNAVAILABLE", NOT_ALLOWED)
        elif not self._submit(request):
            request.reply("UNAVAILABLE", "Server is stopping")

    def _submit(self, request: _core.Control) -> bool:
        """Queues a request. An unload ends the loads of its model that came before: they would be in vain."""
        if request.kind == "unload":
            self._lifecycle.supersede(ModelKey(request.model), every_namespace=True)
            return self._pool.submit(request.model, partial(self._serve, request, None), unloads=True)
        announced = self._lifecycle.announce(request.model)
        submitted = self._pool.submit(request.model, partial(self._serve, request, announced))
        if not submitted:
            self._lifecycle.forget(announced)
        return submitted

    def _serve(self, request: _core.Control, announced: Load | None) -> None:
        try:
            self._carry_out(request, announced)
        except LoadFailed as failure:
            request.reply(failure.code, str(failure))
        except AlipesError as error:
            request.reply("INTERNAL", public(str(error)))
        except Exception as error:
            # The client gets one line and the log the rest: no traceback leaves the process.
            log.exception("failed to %s '%s'", request.kind, request.model)
            request.reply("INTERNAL", f"failed to {request.kind} '{request.model}': {type(error).__name__}")
        else:
            request.reply(None)
        finally:
            if announced is not None:
                self._lifecycle.forget(announced)

    def _carry_out(self, request: _core.Control, announced: Load | None) -> None:
        parameters: dict[str, object] = json.loads(request.parameters or "{}")
        if request.kind == "unload":
            self._provisional.forget(request.model)
            self._lifecycle.unload(request.model, dependents=parameters.get("unload_dependents") is True)
        else:
            self._load(request.model, read_override(request.model, parameters), announced)

    def _load(self, model: str, override: Override | None, announced: Load | None) -> None:
        override, seconds = split_revert_after(model, override)
        if seconds is not None:
            before = self._provisional.base(model)
            self._lifecycle.load(model, override, announced=announced)
            self._provisional.begin(model, before, seconds, time.monotonic())
        else:
            override = self._provisional.resolved(model, override)
            self._lifecycle.load(model, override, announced=announced)
            self._provisional.settle(model, override)

    def _revert(self, model: str) -> None:
        """Loads what a provisional load took the place of. Where that fails, the provisional one goes on serving."""
        found = self._provisional.take(model, time.monotonic())
        if found is None:
            return
        before, seconds = found
        log.warning("model '%s' goes back to its former configuration: no word for %g s", model, seconds)
        try:
            self._lifecycle.load(model, before)
        except LoadFailed as failure:
            log.error("model '%s' cannot go back to its former configuration: %s", model, failure)
        else:
            self._provisional.settle(model, before)


def _change_log(options: LogOptions) -> None:
    """Writes the log by other settings. What a client turns off is the last that the log says of it."""
    levels = {"information": options.info, "warnings": options.warning, "errors": options.error}
    off = [name for name, is_on in levels.items() if not is_on]
    if off:
        log.warning("a client asks for a log without %s", ", ".join(off))
    change(options)
