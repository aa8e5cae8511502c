"""The clients of a run as the pods of an Indexed Job of Kubernetes, which share a volume with this machine."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, Final

from msgspec import structs

from alipes.batch.executors.base import ExecutorOptions, Rounds, Watch, worker_command
from alipes.batch.folder import RunFolder, Start
from alipes.batch.worker import STOPPED
from alipes.cloud.kubernetes import Cluster
from alipes.cloud.kubernetes.jobs import wait_for_job
from alipes.deploy.kubernetes.job import INDEX, indexed_job
from alipes.deploy.kubernetes.pod import Shared
from alipes.deploy.reading import described, with_settings
from alipes.deploy.repository_place import VOLUME, claim_of
from alipes.errors import BatchError, CloudError, CloudTimeout, ConfigError

__all__ = ["KubernetesExecutor"]

_REMOVAL_S: Final = 60.0
"""How long the end of pods is waited for; they go without us, too."""
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
        self._path = PurePosixPath(options["path"])
        self._shared = Shared(claim, str(self._path), os.geteuid(), _groups())
        self._connection = {name: options.get(name) for name in ("kubeconfig", "context", "namespace")}
        self._watch = watch
        self._rounds = Rounds()
        self.failures = self._rounds.failures

    def run(self, folder: RunFolder, start: Start, shards: Sequence[int]) -> None:
        """Runs the clients of some shards to their end.

        Raises:
            ConfigError: If pods would not find the folder or the inputs.
            BatchError: If Kubernetes refuses the job, or cannot start its pods.
        """
        self._check_shared(folder)
        self._rounds.begin()
        try:
            failure = self._run(self._job(folder, start, len(shards)))
        except CloudError as error:
            raise BatchError(f"Kubernetes: {error}") from error
        is_left = self._rounds.end(folder, start, "jobs of Kubernetes ended with work left")
        if is_left and failure:
            self.failures.append(f"the job of Kubernetes failed: {failure}")

    def _run(self, job: dict[str, Any]) -> str:
        """Runs a job to its end; why it failed, if it did."""
        cluster = Cluster(**self._connection)
        try:
            (made,) = cluster.apply([job])
            return wait_for_job(cluster.client, made, self._watch)
        finally:
            # By its name: it may be there though nothing was answered yet.
            with suppress(CloudTimeout):
                cluster.remove([job], timeout_s=_REMOVAL_S)

    def _job(self, folder: RunFolder, start: Start, count: int) -> dict[str, Any]:
        command = ["python", *worker_command(folder, INDEX, start)[1:]]
        unique = f"{folder.path.absolute()} {start.number} {start.begun_s} {self._rounds.count}"
        digest = hashlib.sha256(unique.encode()).hexdigest()
        name = f"{self._description.name[:40].rstrip('-')}-{digest[:8]}"
        return indexed_job(structs.replace(self._description, name=name), command, count, self._shared, STOPPED)

    def _check_shared(self, folder: RunFolder) -> None:
        plan = folder.plan()
        inputs = [plan.folder] if plan.folder else [name for name, _, _ in plan.files[:1]]
        for place in (folder.path.absolute(), *map(Path, inputs)):
            if not place.is_relative_to(self._path):
                raise ConfigError(
                    f"pods find {self._path} alone, and {place} is not in it: put results and inputs there",
                    key="executor_options",
                )


def _groups() -> tuple[int, ...]:
    """The groups of this process, the main one first."""
    group = os.getegid()
    return (group, *sorted(set(os.getgroups()) - {group}))
