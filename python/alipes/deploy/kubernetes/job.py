"""A job of pods that share some work: an Indexed Job of Kubernetes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from alipes.deploy.description import Description
from alipes.deploy.kubernetes.metadata import metadata
from alipes.deploy.kubernetes.pod import TASK, Shared, task_pod

__all__ = ["INDEX", "indexed_job"]

INDEX: Final = "$(JOB_COMPLETION_INDEX)"
"""What stands for the number of a pod in its command: Kubernetes replaces it."""

_RETRIES: Final = 3
"""How often each pod is made again that was lost."""
_FORGOTTEN_S: Final = 3600
"""How long a job that has ended stays, if nobody removes it."""


def indexed_job(
    description: Description, command: Sequence[str], count: int, shared: Shared, stopped: int
) -> dict[str, Any]:
    """The job.

    Args:
        description: Its name, and the image, the resources and the nodes of its pods.
        command: What each pod runs, with `INDEX` in it.
        count: How many pods there are.
        shared: A volume that all of them share.
        stopped: Exit code of a pod that is to be made again, as often as it may be.
    """

    def on_exit(code: int, action: str) -> dict[str, Any]:
        codes = {"containerName": TASK, "operator": "In", "values": [code]}
        return {"action": action, "onExitCodes": codes}

    spec = {
        "completionMode": "Indexed",
        "completions": count,
        "parallelism": count,
        "backoffLimitPerIndex": _RETRIES,
        # The work of a pod that cannot go on is for the others.
        "maxFailedIndexes": count,
        "podFailurePolicy": {"rules": [on_exit(stopped, "Ignore"), on_exit(1, "FailIndex")]},
        "podReplacementPolicy": "Failed",
        "ttlSecondsAfterFinished": _FORGOTTEN_S,
        "template": task_pod(description, command, shared),
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata(description), "spec": spec}
