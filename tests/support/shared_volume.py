"""A claim of a volume, bound to a folder of this machine as a controller of volumes does it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.kube import ControlPlane

CLAIM = "data"


@contextmanager
def shared_volume(plane: ControlPlane, namespace: str, folder: Path) -> Iterator[None]:
    """The claim `CLAIM` of a namespace for as long as the block runs."""
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    claim = {
        "metadata": {"name": CLAIM, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": spec | {"volumeName": namespace, "resources": {"requests": {"storage": "1Gi"}}},
    }
    claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    # A kubelet compares the numbers: a claim of the same name may be another one.
    number = plane.request("POST", claims, claim)["metadata"]["uid"]
    bound = {"claimRef": {"name": CLAIM, "namespace": namespace, "uid": number}}
    place = {"capacity": {"storage": "1Gi"}, "hostPath": {"path": str(folder)}}
    volumes = "/api/v1/persistentvolumes"
    plane.request("POST", volumes, {"metadata": {"name": namespace}, "spec": spec | place | bound})
    plane.patch_status(f"{claims}/{CLAIM}", {"phase": "Bound"})
    try:
        yield
    finally:
        plane.request("DELETE", f"{volumes}/{namespace}")
