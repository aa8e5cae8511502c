"""A kubelet that runs the pods of a job as processes of this machine, for nodes without a machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from support.kube import ControlPlane, Refused

_LOOK_S = 0.1


@dataclass
class ActedKubelet:
    """Starts the one container of each pod of a namespace, and says how it ended.

    Attributes:
        seen: The pods that it has started, by name.
    """

    plane: ControlPlane
    namespace: str
    variables: Mapping[str, str]
    seen: dict[str, dict[str, Any]] = field(default_factory=dict)
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def look(self) -> None:
        """Does what there is to do now."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        for pod in self.plane.request("GET", path)["items"]:
            name, one = pod["metadata"]["name"], f"{path}/{pod['metadata']['name']}"
            if name not in self.seen and pod["spec"].get("nodeName"):
                self.seen[name] = pod
                self._processes[name] = self._started(pod)
                self.plane.patch_status(one, {"phase": "Running", "containerStatuses": [_container({"running": {}})]})
            process = self._processes.get(name)
            if process is None:
                continue
            if pod["metadata"].get("deletionTimestamp"):
                process.send_signal(signal.SIGTERM)
                process.wait()
                self._processes.pop(name)
                self.plane.request("DELETE", one, {"gracePeriodSeconds": 0})
            elif (code := process.poll()) is not None and pod["status"]["phase"] == "Running":
                ended = {"exitCode": code if code >= 0 else 128 - code, "reason": "Error" if code else "Completed"}
                phase = "Failed" if code else "Succeeded"
                self.plane.patch_status(one, {"phase": phase, "containerStatuses": [_container({"terminated": ended})]})

    def stop(self) -> None:
        """Ends what runs."""
        for process in self._processes.values():
            process.kill()
            process.wait()

    def _started(self, pod: dict[str, Any]) -> subprocess.Popen[bytes]:
        (container,) = pod["spec"]["containers"]
        index = pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        program, *words = [word.replace("$(JOB_COMPLETION_INDEX)", index) for word in container["command"]]
        assert program == "python"
        assert "JOB_COMPLETION_INDEX" in {one["name"] for one in container["env"]}
        return subprocess.Popen([sys.executable, *words], env=os.environ | dict(self.variables))


def _container(state: dict[str, Any]) -> dict[str, Any]:
    return {"name": "task", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": state}


@contextmanager
def acted_kubelet(plane: ControlPlane, namespace: str, variables: Mapping[str, str]) -> Iterator[ActedKubelet]:
    """A kubelet for as long as the block runs."""
    kubelet = ActedKubelet(plane, namespace, variables)
    over = threading.Event()

    def act() -> None:
        while not over.wait(_LOOK_S):
            with suppress(Refused):  # a pod that went meanwhile
                kubelet.look()

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield kubelet
    finally:
        over.set()
        thread.join()
        kubelet.stop()
