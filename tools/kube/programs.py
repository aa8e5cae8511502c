"""Which of Kubernetes' own programs tests start, in which versions, and where they are built."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

KUBERNETES = "1.37.2"
KWOK = "0.8.0"
KSERVE = "0.20.0"
# Which this KServe requires. Its packages are missing from the modules of later versions.
KNATIVE = "0.48.1"
# Which this Knative requires: its programs end at once with another.
OPENTELEMETRY = "1.39.0"
OPENTELEMETRY_CONTRIB = "0.64.0"

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
    """A program: where its source is, what the linker writes into it, and of which versions it is.

    A package whose path begins with a dot is a folder beside this file, built with what the module requires. Modules in
    `replaced` are used in place of the versions that it requires.
    """

    module: Module
    package: str
    linker_flags: str = ""
    versions: str = f"kubernetes-{KUBERNETES}-kwok-{KWOK}"
    replaced: tuple[Module, ...] = ()

    @property
    def own_source(self) -> Path | None:
        """The folder of a package that no module publishes."""
        return Path(__file__).parent / self.package if self.package.startswith(".") else None

    def folder(self) -> Path:
        """The folder of its versions in the user's cache; its `bin` holds the programs that are built."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "alipes"
        return cache / "kube" / self.versions


def _with_source(versions: str, source: str) -> str:
    """Versions, to which the text of a program of our own belongs."""
    digest = hashlib.sha256()
    for file in sorted((Path(__file__).parent / source).glob("*.go")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return f"{versions}-{digest.hexdigest()[:12]}"


_KUBERNETES = Module("k8s.io/kubernetes", f"v{KUBERNETES}")
_KWOK = Module("sigs.k8s.io/kwok", f"v{KWOK}")
_KSERVE = Module("github.com/kserve/kserve", f"v{KSERVE}")
_KNATIVE = Module("knative.dev/serving", f"v{KNATIVE}")
# Of the same day as this Knative, which requires them; they have no numbers.
_NETWORKING = Module("knative.dev/networking", "v0.0.0-20260120131110-a7cdca238a0d")
_CACHING = Module("knative.dev/caching", "v0.0.0-20260120130310-f1fc03b7f5ee")
_EXPORTERS = ("metric/otlpmetricgrpc", "metric/otlpmetrichttp", "trace", "trace/otlptracegrpc", "trace/otlptracehttp")
_TELEMETRY = tuple(
    Module(f"go.opentelemetry.io/{path}", f"v{version}")
    for version, paths in {
        OPENTELEMETRY: (
            *("otel", "otel/metric", "otel/trace", "otel/sdk", "otel/sdk/metric", "otel/exporters/stdout/stdouttrace"),
            *(f"otel/exporters/otlp/otlp{name}" for name in _EXPORTERS),
        ),
        OPENTELEMETRY_CONTRIB: ("contrib/instrumentation/net/http/otelhttp", "contrib/instrumentation/runtime"),
    }.items()
    for path in paths
)

PROGRAMS = {
    # The version of etcd that this Kubernetes requires.
    "etcd": Program(_KUBERNETES, "go.etcd.io/etcd/server/v3"),
    **{
        name: Program(_KUBERNETES, f"k8s.io/kubernetes/cmd/{name}", _VERSION_FLAGS)
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
    },
    # Nodes without machines.
    "kwok": Program(_KWOK, "sigs.k8s.io/kwok/cmd/kwok"),
    # What KServe's webhooks and its controller make of objects, without an API server.
    "kserve-render": Program(_KSERVE, "./kserve-render", versions=_with_source(f"kserve-{KSERVE}", "kserve-render")),
    # What Knative's scaler decides, in the version that this KServe requires.
    "kn-decide": Program(_KSERVE, "./kn-decide", versions=_with_source(f"kserve-{KSERVE}", "kn-decide")),
    # KServe's controllers.
    "kserve-manager": Program(_KSERVE, "github.com/kserve/kserve/cmd/manager", versions=f"kserve-{KSERVE}"),
    # What runs graphs of services.
    "kserve-router": Program(_KSERVE, "github.com/kserve/kserve/cmd/router", versions=f"kserve-{KSERVE}"),
    # What runs beside each server that has many models, a batcher or a logger.
    "kserve-agent": Program(_KSERVE, "github.com/kserve/kserve/cmd/agent", versions=f"kserve-{KSERVE}"),
    # What runs beside each server of Knative, and what orders, starts and ends these.
    **{
        f"kn-{name}": Program(
            _KSERVE, f"knative.dev/serving/cmd/{name}", versions=f"knative-{KNATIVE}", replaced=_TELEMETRY
        )
        for name in ("queue", "activator", "autoscaler", "controller", "webhook")
    },
}

STAGES = ("node/fast", "node/heartbeat", "pod/fast")
"""Folders of kwok's source that say what its nodes and pods do, in its file `kwok.yaml`."""

KWOK_FILE = "kwok.yaml"

KSERVE_KINDS_FOLDER = "config/crd/full"
"""The folder of KServe's source with the kinds that it adds to an API server."""

KSERVE_KINDS = (
    *("*_clusterservingruntimes.yaml", "*_servingruntimes.yaml", "*_inferenceservices.yaml", "*_inferencegraphs.yaml"),
    *("*_trainedmodels.yaml", "*_localmodelcaches.yaml", "*_localmodelnamespacecaches.yaml"),
    "*_clusterstoragecontainers.yaml",
)
"""Those that are written here, and that which its controllers look at."""

KSERVE_KINDS_FILE = "kinds.yaml"

KSERVE_SETTINGS = "config/configmap/inferenceservice.yaml"
"""The file of KServe's source with the settings that it is installed with."""

KSERVE_SETTINGS_FILE = "settings.yaml"

KSERVE_WEBHOOKS = "config/webhook/manifests.yaml"
"""The file of KServe's source by which an API server asks its controllers about objects and pods."""

KSERVE_WEBHOOKS_FILE = "webhooks.yaml"

KNATIVE_FILES: dict[str, tuple[tuple[Module, str], ...]] = {
    "kinds.yaml": (
        (_KNATIVE, "config/core/300-resources/*.yaml"),
        *((_NETWORKING, f"config/{name}.yaml") for name in ("certificate", "domain-claim", "ingress")),
        (_NETWORKING, "config/serverlessservice.yaml"),
        (_CACHING, "config/image.yaml"),
    ),
    "settings.yaml": ((_KNATIVE, "config/core/configmaps/*.yaml"), (_NETWORKING, "config/config-network.yaml")),
    "webhooks.yaml": ((_KNATIVE, "config/core/webhooks/*.yaml"),),
}
"""Files beside `kn-controller`, each of files of modules: Knative's kinds, settings and webhooks."""
