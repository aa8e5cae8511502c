"""Which of Kubernetes' own programs tests start, in which versions, and where they are built."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

KUBERNETES = "1.37.2"
KWOK = "0.8.0"

_VERSION_VARIABLE = "k8s.io/component-base/version"
_MINOR = KUBERNETES.split(".")[1]
# What a program answers when it is asked for its version: a build outside Kubernetes' repository knows none.
_VERSION_FLAGS = (
    f"-X {_VERSION_VARIABLE}.gitVersion=v{KUBERNETES} -X {_VERSION_VARIABLE}.gitMajor=1"
    f" -X {_VERSION_VARIABLE}.gitMinor={_MINOR} -X {_VERSION_VARIABLE}.gitTreeState=clean"
    f" -X k8s.io/client-go/pkg/version.gitVersion=v{KUBERNETES}"
)


@dataclass(frozen=True)
class Module:
    """A Go module, from the module proxy."""

    path: str
    version: str

    @property
    def staged_version(self) -> str:
        """The version of the modules that Kubernetes keeps in its own repository and publishes beside it."""
        return f"v0.{self.version.removeprefix('v').split('.', 1)[1]}"


@dataclass(frozen=True)
class Program:
    """A program: where its source is, and what the linker writes into it."""

    module: Module
    package: str
    linker_flags: str = ""


_KUBERNETES = Module("k8s.io/kubernetes", f"v{KUBERNETES}")
_KWOK = Module("sigs.k8s.io/kwok", f"v{KWOK}")

PROGRAMS = {
    # The version of etcd that this Kubernetes requires.
    "etcd": Program(_KUBERNETES, "go.etcd.io/etcd/server/v3"),
    **{
        name: Program(_KUBERNETES, f"k8s.io/kubernetes/cmd/{name}", _VERSION_FLAGS)
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
    },
    # Nodes without machines.
    "kwok": Program(_KWOK, "sigs.k8s.io/kwok/cmd/kwok"),
}

STAGES = ("node/fast", "node/heartbeat", "pod/fast")
"""Folders of kwok's source that say what its nodes and pods do, in its file `kwok.yaml`."""

KWOK_FILE = "kwok.yaml"


def folder() -> Path:
    """The folder of these versions in the user's cache; its `bin` holds the programs that are built."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "alipes"
    return cache / "kube" / f"kubernetes-{KUBERNETES}-kwok-{KWOK}"
