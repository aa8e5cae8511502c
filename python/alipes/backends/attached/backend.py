"""Prepares models whose instances are objects of the script that started the server; `alipes.attached` writes them."""

from __future__ import annotations

from typing import Any, Final

from alipes.backends.attached.socket import is_socket
from alipes.backends.base import Backend, Draft, Engine
from alipes.backends.python.setup import worker_setup
from alipes.config.worker_parameters import read_worker_parameters
from alipes.errors import ModelLoadError
from alipes.repository.instances_file import read_side_by_side

__all__ = ["AttachedBackend"]

_FILE: Final = "attached"
"""What log lines name in place of a model's file."""

_NOT_OF_THREADS: Final = ("EXECUTION_ENV_PATH", "EXECUTE_TIMEOUT_SECONDS", "MAX_WORKER_MEMORY_BYTES")
"""Parameters of Python models that need a process, which the server may choose and end."""


class AttachedBackend(Backend):
    """Prepares one version of a model that a script has attached."""

    def __init__(self, draft: Draft) -> None:
        """Looks for the script.

        Raises:
            ModelLoadError: If no script started the server to take instances.
        """
        super().__init__(draft)
        socket = draft.options.worker.attached_socket
        if socket is None or not is_socket(socket):
            raise ModelLoadError(
                f"model '{draft.config.name}' has backend 'attached', whose instances are objects of a script, and no "
                "script started this server: serve the model with alipes.attached.Attachment",
                model=draft.config.name,
                backend="attached",
                code="UNAVAILABLE",
            )
        self._socket = socket

    def complete(self) -> None:
        """Nothing: the script has written all that there is to know."""

    def engine(self) -> Engine:
        """Say where the instances are handed over, and within which limits."""
        config, options = self.draft.config, self.draft.options.worker
        texts = {key: value.string_value for key, value in config.parameters.items()}
        parameters = read_worker_parameters(texts, config.name, options)
        spec: dict[str, Any] = {
            "kind": "worker",
            "command": [],
            "attached": self._socket,
            "environment": {},
            "side_by_side": read_side_by_side(self.draft.version_folder),
            "setup": worker_setup(self.draft, _FILE),
            "hidden": {},
            "start_timeout_s": parameters.start_timeout_s,
            # Nobody can end a thread of a script, nor tell the memory of one from that of the others.
            "execute_timeout_s": 0.0,
            "stop_timeout_s": parameters.stop_timeout_s,
            "max_memory_bytes": 0,
            "max_leased_bytes": parameters.max_leased_bytes,
        }
        notices = (
            f"parameter '{key}' of model '{config.name}' is ignored: its instances are threads of a script"
            for key in _NOT_OF_THREADS
            if key in texts
        )
        return Engine(spec, (*parameters.notices, *notices))
