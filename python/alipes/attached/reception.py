"""Takes the instances that the server hands over, and gives each a thread."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import Final

from alipes.attached.assignment import Assignment, AssignmentSocket
from alipes.attached.live import LiveInstance
from alipes.attached.model import AttachedModel
from alipes.attached.service import open_link, refuse, serve

__all__ = ["Reception"]

_PAUSE_S: Final = 0.05
"""For how long nothing is taken when this process has no descriptor or thread left."""

_log = logging.getLogger("alipes.attached")


class Reception:
    """Serves whatever instances of the script's models the server asks for."""

    def __init__(self, models: Mapping[str, AttachedModel]) -> None:
        """Takes the models by name, as they are whenever an instance is asked for; `start` begins."""
        self._models = models
        self._socket = AssignmentSocket()
        self._serving: dict[threading.Thread, str] = {}
        self._changed = threading.Condition()
        self._receiving = threading.Thread(target=self._receive, name="alipes-attached", daemon=True)

    @property
    def descriptor(self) -> int:
        """The socket that the server is to inherit."""
        return self._socket.descriptor

    def start(self) -> None:
        """Begins to take instances."""
        self._receiving.start()

    def wait_until_left(self, model: str | None, timeout_s: float) -> bool:
        """Whether no instance is served, of one model or of all; as soon as it is so, or when the time is up."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._names(model), timeout_s)

    def end(self) -> None:
        """Takes no instance any more. Those that are served go on until the server has let go of them."""
        self._socket.end()
        if self._receiving.is_alive():
            self._receiving.join()
        self._socket.close()

    def _names(self, model: str | None) -> list[str]:
        return [name for name in self._serving.values() if model in {None, name}]

    def _receive(self) -> None:
        while True:
            try:
                assignment = self._socket.receive()
            except (OSError, ValueError) as error:
                _log.error("an instance could not be taken from the server: %s", error)
                time.sleep(_PAUSE_S)
                continue
            if assignment is None:
                return
            self._take(assignment)

    def _take(self, assignment: Assignment) -> None:
        setup = assignment.setup
        thread = threading.Thread(
            target=self._serve, args=(assignment,), name=f"alipes-{setup.instance.name}", daemon=True
        )
        with self._changed:
            self._serving[thread] = setup.model_name
        try:
            thread.start()
        except RuntimeError as error:  # the system has no thread left, or the interpreter is ending
            assignment.close()
            self._leave(thread)
            _log.error("the instance %s cannot be served: %s", setup.instance.name, error)

    def _serve(self, assignment: Assignment) -> None:
        try:
            link = open_link(assignment)
            found = self._find(assignment)
            if isinstance(found, LiveInstance):
                serve(link, assignment.setup, found)
            else:
                refuse(link, found)
        except BaseException as error:  # nobody else sees it; the server sees that the instance has ended
            _log.exception("the thread of the instance %s has ended", assignment.setup.instance.name, exc_info=error)
        finally:
            self._leave(threading.current_thread())

    def _leave(self, thread: threading.Thread) -> None:
        with self._changed:
            self._serving.pop(thread, None)
            self._changed.notify_all()

    def _find(self, assignment: Assignment) -> LiveInstance | str:
        """The object that is meant; else why there is none."""
        setup = assignment.setup
        model = self._models.get(setup.model_name)
        if model is None:
            return f"no model '{setup.model_name}' is attached"
        if setup.model_version != model.version:
            return f"version {model.version} of model '{model.name}' is attached, not {setup.model_version}"
        if setup.instance.index >= len(model.instances):
            return (
                f"model '{model.name}' has {len(model.instances)} attached instances, and "
                f"'{setup.instance.name}' would be number {setup.instance.index + 1}"
            )
        return model.instances[setup.instance.index]
