"""NVIDIA's driver on nodes of GKE that are not told to install it by themselves."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["NAME", "NAMESPACE", "daemon_set"]

NAME: Final = "nvidia-driver-installer"
NAMESPACE: Final = "kube-system"

# The installer that Container-Optimized OS has on each node; nothing is pulled.
_INSTALLER: Final = "cos-nvidia-installer:fixed"
_PAUSE: Final = "registry.k8s.io/pause:3.10"

_HAS_GPUS: Final = "cloud.google.com/gke-accelerator"
_BY_GKE: Final = "cloud.google.com/gke-gpu-driver-version"
"""The label of nodes on which GKE installs the driver, as it does on those of `create_gpu_node_pool_config`."""

_HOST_FOLDERS: Final = {
    "dev": ("/dev", "/dev"),
    "nvidia": ("/home/kubernetes/bin/nvidia", "/usr/local/nvidia"),
    "vulkan": ("/home/kubernetes/bin/nvidia/vulkan/icd.d", "/etc/vulkan/icd.d"),
    "root": ("/", "/root"),
    "cos-tools": ("/var/lib/cos-tools", "/build/cos-tools"),
}

_SETTINGS: Final = {
    "NVIDIA_INSTALL_DIR_HOST": "/home/kubernetes/bin/nvidia",
    "NVIDIA_INSTALL_DIR_CONTAINER": "/usr/local/nvidia",
    "VULKAN_ICD_DIR_HOST": "/home/kubernetes/bin/nvidia/vulkan/icd.d",
    "VULKAN_ICD_DIR_CONTAINER": "/etc/vulkan/icd.d",
    "ROOT_MOUNT_DIR": "/root",
    "COS_TOOLS_DIR_HOST": "/var/lib/cos-tools",
    "COS_TOOLS_DIR_CONTAINER": "/build/cos-tools",
}


def daemon_set() -> dict[str, Any]:
    """A daemon set that installs the driver on each node with GPUs for which GKE does not.

    It runs on Container-Optimized OS, which is what nodes of GKE run unless they are made otherwise.
    """
    labels = {"k8s-app": NAME}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": labels}, "spec": _pod()},
        },
    }


def _pod() -> dict[str, Any]:
    mounts = [{"name": name, "mountPath": inside} for name, (_, inside) in _HOST_FOLDERS.items()]
    volumes = [{"name": name, "hostPath": {"path": host}} for name, (host, _) in _HOST_FOLDERS.items()]
    installer = {
        "name": "install",
        "image": _INSTALLER,
        "imagePullPolicy": "Never",
        "securityContext": {"privileged": True},
        "resources": {"requests": {"cpu": "150m"}},
        "env": [{"name": name, "value": value} for name, value in _SETTINGS.items()],
        "volumeMounts": mounts,
    }
    terms = [{"key": _HAS_GPUS, "operator": "Exists"}, {"key": _BY_GKE, "operator": "DoesNotExist"}]
    return {
        "priorityClassName": "system-node-critical",
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": terms}]}
            }
        },
        "tolerations": [{"operator": "Exists"}],
        "hostNetwork": True,
        "hostPID": True,
        "volumes": volumes,
        "initContainers": [installer],
        # A daemon set's pods have to go on running; they are ready once the installer has ended well.
        "containers": [{"name": "pause", "image": _PAUSE}],
    }
