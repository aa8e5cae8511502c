"""Prepares models of the Python backend: `model.py` completes its own configuration, in a process of its own."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from alipes.backends.base import Backend, Draft, Engine
from alipes.backends.python.completion import ask_model
from alipes.backends.python.environment import Environment, find_environment
from alipes.backends.python.merge import merge_completed
from alipes.backends.python.setup import worker_setup
from alipes.config.worker_parameters import WorkerParameters, read_worker_parameters
from alipes.disclosure import hidden_prefixes
from alipes.errors import ModelLoadError
from alipes.repository.app_folder import APP_FILE, waiting_key
from alipes.repository.instances_file import MOST_SIDE_BY_SIDE

__all__ = ["FUNCTION_TIMEOUT_S", "PythonBackend"]

_BOOTSTRAP: Final = Path(__file__).parents[2] / "worker" / "bootstrap.py"
"""What the interpreter of a model runs first. Run as a file: the environment need not know of this package."""

FUNCTION_TIMEOUT_S: Final = 600.0
"""Longest call of a function where neither its author nor the server's options say anything, in seconds.

A function stands in front of anybody who finds its URL, and one call that never ends takes an instance for ever. Ten
minutes are longer than clients and proxies wait.
"""

_RESERVED_CHARACTERS: Final = frozenset(";|&$`<>()[]{}\\\"'*?~#!")
"""What a shell reads. Releases of Triton after 2.51 refuse it in the names that they give to processes."""


class PythonBackend(Backend):
    """Prepares one version of a Python model."""

    def __init__(self, draft: Draft) -> None:
        """Reads nothing yet."""
        super().__init__(draft)
        # No `cached_property`: on Python 3.11 one environment that is unpacked would hold up the loads of all models.
        self._found: Environment | None = None

    def complete(self) -> None:
        """Let the model complete its configuration, listed inputs and outputs or not: it may have more to say."""
        self._check_names()
        if self._app().is_file():
            return  # the app has said all of it before it was written
        merge_completed(self.draft.config, self._ask())

    def engine(self) -> Engine:
        """Say which command runs the model, in which environment, within which limits."""
        self._check_names()
        parameters = self._parameters()
        spec: dict[str, Any] = {
            "kind": "worker",
            "command": self._command,
            "attached": None,
            "environment": self._variables(),
            "waiting": self._waiting(),
            "side_by_side": self._side_by_side(),
            "setup": self._setup(),
            "hidden": hidden_prefixes(self.draft.folder, self._environment().python),
            "start_timeout_s": parameters.start_timeout_s,
            "execute_timeout_s": parameters.execute_timeout_s,
            "stop_timeout_s": parameters.stop_timeout_s,
            "max_memory_bytes": parameters.max_memory_bytes,
            "max_leased_bytes": parameters.max_leased_bytes,
        }
        return Engine(spec, parameters.notices, self._private)

    def adapt(self, engine: dict[str, Any]) -> dict[str, Any]:
        """The engine as it is, once the new names of the instances have been checked as a load checks them."""
        self._check_names()
        return engine

    def _app(self) -> Path:
        return self.draft.version_folder / APP_FILE

    def _app_document(self) -> dict[str, Any]:
        """What the version says of its app; nothing where there is none, or the process says what is wrong with it."""
        try:
            document = json.loads(self._app().read_bytes())
        except (OSError, ValueError):
            return {}
        return document if isinstance(document, dict) else {}

    def _side_by_side(self) -> int:
        """Requests that a process works on side by side, as its app says; 0 where it says nothing."""
        places = self._app_document().get("concurrency", 0)
        return min(max(places, 0), MOST_SIDE_BY_SIDE) if isinstance(places, int) else 0

    def _waiting(self) -> str | None:
        """Under which key a process may wait that has imported the app.

        It has the server's interpreter and variables; a model that asks for others has none.
        """
        environment = self._environment()
        is_servers = environment.python == Path(sys.executable) and not self._variables()
        return waiting_key(self._app_document()) or None if is_servers else None

    def _setup(self) -> dict[str, Any]:
        """What a process is told."""
        return worker_setup(self.draft)

    def _variables(self) -> dict[str, str]:
        """Environment variables of a process, above the server's own."""
        return dict(self._environment().variables)

    def _ask(self, **more: bool) -> dict[str, Any]:
        """What a process says of the model, told more than a worker is."""
        draft, timeout_s = self.draft, self.draft.options.worker.complete_timeout_s
        try:
            return ask_model(self._command, self._variables(), {**self._setup(), **more}, timeout_s, draft.load)
        except ModelLoadError as error:
            error.hiding(self._private)
            raise

    def _check_names(self) -> None:
        """Checks the names of the model and of its instances.

        Raises:
            ModelLoadError: If one has a character that a shell reads, unless Triton 2.51 is followed, which takes it.
        """
        config = self.draft.config
        names = (config.name, *(group.name for group in config.instance_group))
        if self.draft.options.triton_release == "2.51" or _RESERVED_CHARACTERS.isdisjoint("".join(names)):
            return
        raise ModelLoadError(
            "Invalid stub name: contains invalid characters", model=config.name, backend="python", code="INVALID_ARG"
        )

    def _parameters(self) -> WorkerParameters:
        config, options = self.draft.config, self.draft.options
        texts = {key: value.string_value for key, value in config.parameters.items()}
        workers = options.worker
        if not workers.execute_timeout_s and self._app().is_file():
            workers = replace(workers, execute_timeout_s=FUNCTION_TIMEOUT_S)
        return read_worker_parameters(texts, config.name, workers)

    def _environment(self) -> Environment:
        if self._found is None:
            draft = self.draft
            value = self._parameters().environment
            self._found = find_environment(value, draft.folder, draft.config.name, draft.load)
        return self._found

    @property
    def _private(self) -> dict[str, str]:
        python = self._environment().python
        return {str(python): python.name}

    @property
    def _command(self) -> list[str]:
        return [str(self._environment().python), str(_BOOTSTRAP)]
