"""The clients of a run as the pods of an Indexed Job of Kubernetes, which share a volume with this machine."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, Final

from msgspec import structs

from alipes.batch.executors.base import ExecutorOptions, Watch, failures_of, worker_command
from alipes.batch.folder import RunFolder, Start
from alipes.batch.worker import STOPPED
from alipes.cloud.kubernetes import Cluster
from alipes.deploy.kubernetes.job import INDEX, indexed_job
from alipes.deploy.reading import described, with_settings
from alipes.deploy.repository_place import VOLUME, Claim, claim_of
from alipes.errors import BatchError, CloudError, CloudTimeout, ConfigError

__all__ = ["KubernetesExecutor"]

_LOOK_S: Final = 1.0
_REMOVAL_S: Final = 60.0
"""How long the end of pods is waited for; they go without us, too."""
_MOST_ROUNDS: Final = 4
_OURS: Final = ("claim", "path", "kubeconfig", "context", "namespace")


class KubernetesExecutor:
    """Applies a job, and waits for it."""

    def __init__(self, options: ExecutorOptions, watch: Watch) -> None:
        """Reads what it needs, and asks nothing yet.

        Args:
            options: `image`; `claim`, a volume that pods may write to, as CLAIM or CLAIM/FOLDER, and `path`, where it
                is here and in the pods; `kubeconfig`, `context` and `namespace`; every value of `alipes deploy`, such
                as `resources.memory`.
            watch: Called again and again while clients run.

        Raises:
            ConfigError: If something is missing or wrong.
        """
        if missing := [name for name in ("image", "claim", "path") if not options.get(name)]:
            raise ConfigError(
                f"executor 'kubernetes' needs {missing[0]}=…: the image of pods, the claim of a volume that they share "
                "with this machine, and the path where both have it",
                key="executor_options",
            )
        values = [f"{name}={value}" for name, value in options.items() if name not in _OURS]
        self._description = described(with_settings({"name": "batch"}, values))
        claim = claim_of(f"{VOLUME}{options['claim']}")
        assert claim is not None
        self._claim: Claim = claim
        self._path = PurePosixPath(options["path"])
        self._connection = {name: options.get(name) for name in ("kubeconfig", "context", "namespace")}
        self._watch = watch
        self._rounds = 0
        self.failures: list[str] = []

    def run(self, folder: RunFolder, start: Start, shards: Sequence[int]) -> None:
        """Runs the clients of some shards to their end.

        Raises:
            ConfigError: If pods would not find the folder or the inputs.
            BatchError: If Kubernetes refuses the job.
        """
        self._check_shared(folder)
        self._rounds += 1
        try:
            self._run(folder, self._job(folder, start, len(shards)))
        except CloudError as error:
            raise BatchError(f"Kubernetes: {error}") from error
        self.failures += failures_of(folder, start)
        if self._is_left(folder) and not self.failures and self._rounds >= _MOST_ROUNDS:
            self.failures.append(f"{_MOST_ROUNDS} jobs of Kubernetes ended with work left")

    def _run(self, folder: RunFolder, job: dict[str, Any]) -> None:
        cluster = Cluster(**self._connection)
        try:
            (made,) = cluster.apply([job])
            while not _has_ended(status := cluster.read(made).get("status", {})):
                self._watch()
                time.sleep(_LOOK_S)
            if self._is_left(folder) and (reason := _failure(status)):
                self.failures.append(f"job {made.name} of Kubernetes failed: {reason}")
        finally:
            # By its name: it may be there though nothing was answered yet.
            with suppress(CloudTimeout):
                cluster.remove([job], timeout_s=_REMOVAL_S)

    def _is_left(self, folder: RunFolder) -> bool:
        return len(folder.done()) < folder.plan().piece_count

    def _job(self, folder: RunFolder, start: Start, count: int) -> dict[str, Any]:
        command = ["python", *worker_command(folder, INDEX, start)[1:]]
        unique = hashlib.sha256(f"{folder.path.absolute()} {start.number} {start.begun_s} {self._rounds}".encode())
        name = f"{self._description.name[:40].rstrip('-')}-{unique.hexdigest()[:8]}"
        return indexed_job(
            structs.replace(self._description, name=name), command, count, self._claim, str(self._path), STOPPED
        )

    def _check_shared(self, folder: RunFolder) -> None:
        plan = folder.plan()
        inputs = [plan.folder] if plan.folder else [name for name, _, _ in plan.files[:1]]
        for place in (folder.path.absolute(), *map(Path, inputs)):
            if not place.is_relative_to(self._path):
                raise ConfigError(
                    f"pods find {self._path} alone, and {place} is not in it: put results and inputs there",
                    key="executor_options",
                )


def _has_ended(status: dict[str, Any]) -> bool:
    return any(one["type"] in ("Complete", "Failed") and one["status"] == "True" for one in _conditions(status))


def _failure(status: dict[str, Any]) -> str:
    failed = [one for one in _conditions(status) if one["type"] == "Failed" and one["status"] == "True"]
    return str(failed[0].get("message") or failed[0].get("reason") or "no reason") if failed else ""


def _conditions(status: dict[str, Any]) -> list[dict[str, Any]]:
    return list(status.get("conditions", []))
