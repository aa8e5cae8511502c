"""The DNS of a cluster for one name: a file of hosts that follows the addresses of a headless Service."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from support.kube import ControlPlane

# Quicker than the DNS of a cluster, which answers from its cache for some seconds.
_LOOK_S = 0.5
# The file is written in place, as it is mounted: always in one piece of one length.
_LENGTH = 1024


def addresses(plane: ControlPlane, namespace: str, service: str) -> list[str]:
    """Where the pods are that a service sends requests to."""
    path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    slices = plane.request("GET", f"{path}?labelSelector=kubernetes.io/service-name={service}")["items"]
    endpoints = [one for each in slices for one in each.get("endpoints") or () if one["conditions"]["ready"]]
    return sorted(address for one in endpoints for address in one["addresses"])


class HostsFile:
    """A file of hosts in which a name has the addresses of a service, for as long as the context lasts.

    Addresses of further services, which take over from it, are those of the same name.
    """

    def __init__(self, file: Path, plane: ControlPlane, namespace: str, service: str, *others: str) -> None:
        """Writes the file for the first time."""
        self._file = file
        self._look = lambda: [one for name in (service, *others) for one in addresses(plane, namespace, name)]
        self._name = service
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow)
        file.write_text("", encoding="ascii")
        self._write()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._stop.wait(_LOOK_S):
            self._write()

    def _write(self) -> None:
        lines = ["127.0.0.1 localhost", *(f"{address} {self._name}" for address in self._look())]
        with self._file.open("r+", encoding="ascii") as file:
            file.write("\n".join(lines).ljust(_LENGTH - 1) + "\n")
