"""The backends of frameworks: a program in worker processes opens the model's file and runs its batches.

Such a backend says which program that is, and what brings the framework. The file itself completes the configuration.
`alipes.worker.frameworks` is the other side of it.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final

from alipes.backends.base import Draft, Engine
from alipes.backends.proofs import keep_proof, known_proof, proof_key
from alipes.backends.python.backend import PythonBackend
from alipes.backends.python.setup import Framework, worker_setup
from alipes.config.complete import complete_from_signature, is_complete, rows_within, wants_proof
from alipes.config.framework_parameters import ignored_parameters
from alipes.config.instances import instance_names
from alipes.config.parameters import Parameter
from alipes.config.paths import confined, kind_of
from alipes.config.render import config_json
from alipes.config.spec import available_cores
from alipes.errors import ConfigError
from alipes.row_proof import RowProof
from alipes.signature import Signature

__all__ = ["FrameworkBackend"]

_KEY: Final = "default_model_filename"

_THREADS: Final = "OMP_NUM_THREADS"
"""How many threads the libraries under most frameworks take; what the server itself was started with comes first."""

_WAIT: Final = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Threads of OpenMP sleep while they wait for one another.

A thread that spins takes the core from the very thread that it waits for where other programs use the cores: 32 ms
where a sleeping one takes 0.08 (TorchScript, 64 rows, three layers of 64, two cores with eight other programs)."""


class FrameworkBackend(PythonBackend):
    """Prepares one version of a model that a framework opens.

    Attributes:
        program: The module with `open_model`, which worker processes import.
        extra: What `pip install` takes to bring what the program imports, such as `alipes[torch]`.
        files: What the model file can be called where the configuration does not say; the first that is there.
        parameters: The parameters that its models may carry, beside those of Python models.
    """

    program: ClassVar[str]
    extra: ClassVar[str]
    files: ClassVar[tuple[str, ...]] = ()
    parameters: ClassVar[tuple[Parameter, ...]] = ()

    def __init__(self, draft: Draft) -> None:
        """Reads nothing yet."""
        super().__init__(draft)
        self._notices: tuple[str, ...] = ()

    def complete(self) -> None:
        """Complete inputs, outputs, largest batch and dynamic batching from the file, where they are not listed."""
        self._check_names()
        config = self.draft.config
        if is_complete(config):
            return
        options = self.draft.options.model
        default = options.default_max_batch_size
        wanted = wants_proof(config, default)
        # A key reads the whole folder.
        facts = [self.program, *self._command, config_json(config)]
        key = proof_key(self.draft.version_folder, facts) if wanted else ""
        proof = known_proof(key)
        found = self._ask(prove_rows=wanted and proof is None)
        if found["rows"] is not None:
            proof = RowProof(**found["rows"])
            keep_proof(key, proof)
        signature = Signature.from_json(json.dumps(found["signature"]))
        rows = rows_within(signature, default, options.default_max_batch_bytes)
        notice = complete_from_signature(config, signature, rows, proof, options.default_max_queue_delay_us)
        self._notices = (notice,) if notice else ()

    def engine(self) -> Engine:
        """How a worker runs the model, with a notice of each parameter that does nothing."""
        engine, config = super().engine(), self.draft.config
        ignored = ignored_parameters(self.parameters, config.parameters, config.name)
        return replace(engine, notices=(*self._notices, *engine.notices, *ignored))

    def _setup(self) -> dict[str, Any]:
        """What a process is told."""
        name = self.draft.config.name
        allowed = self.draft.options.model.allow_pickles
        allows = name in allowed or "*" in allowed
        framework = Framework(self.program, self.extra, allows, adapts_threads=not os.environ.get(_THREADS))
        return worker_setup(self.draft, self._file(), framework)

    def _file(self) -> Path:
        """The model's file or folder: the one that the configuration names, else the first of the usual ones.

        Raises:
            ConfigError: If there is none, it is neither file nor folder, or its name leads out of the version's folder.
        """
        config, folder = self.draft.config, self.draft.version_folder
        named = config.default_model_filename
        names = dict.fromkeys([named, *self.files] if named else self.files)
        found = [path for path in (confined(folder, name, _KEY) for name in names) if kind_of(path) != "nothing"]
        if not found:
            raise ConfigError(
                f"model '{config.name}' has no model file: {folder} holds no {' or '.join(names)}", key=_KEY
            )
        if kind_of(found[0]) not in ("file", "folder"):  # to open a pipe would wait for its writer
            raise ConfigError(f"{found[0]} is neither a regular file nor a folder", path=found[0], key=_KEY)
        config.default_model_filename = found[0].name
        return found[0]

    def _variables(self) -> dict[str, str]:
        """Environment variables of a process: it takes at most its instance's share of the cores."""
        share = max(1, available_cores() // len(instance_names(self.draft.config)))
        threads = {} if os.environ.get(_THREADS) else {_THREADS: str(share)}
        wait = {name: value for name, value in _WAIT.items() if not os.environ.get(name)}
        return {**threads, **wait, **super()._variables()}
