"""What is deployed, as one typed description from which every writer starts.

Its names in a file are camelCase, as in Kubernetes; the same file is the `values.yaml` of the Helm chart.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from alipes.deploy.image.reference import Name as ImageName
from alipes.deploy.image.settings import DEFAULT_NAME, MODELS

__all__ = [
    "Description",
    "Key",
    "Network",
    "Part",
    "Ports",
    "Probes",
    "Resources",
    "Scaling",
    "Service",
    "Tls",
    "Toleration",
]

DEFAULT_IMAGE: Final = ImageName.read(DEFAULT_NAME).full
"""What `alipes deploy image` writes without `--name`, as engines call it."""
MOST_REPLICAS: Final = 10_000
"""Servers of one deployment: more than a cluster of Kubernetes has nodes."""
LONGEST_S: Final = 86_400
"""Seconds of anything that is waited for: a day."""

Name = Annotated[str, Meta(pattern=r"^[a-z]([a-z0-9-]{0,51}[a-z0-9])?$")]
"""A label of the DNS, short enough for the suffixes of what Kubernetes derives from it."""
Quantity = Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$")]
"""An amount as Kubernetes writes it: `500m` of a core, `2Gi` of memory."""
NoQuantity = Annotated[str, Meta(pattern=r"^([0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?)?$")]
"""An amount, or nothing."""
Port = Annotated[int, Meta(ge=1024, le=65535)]
"""A port that needs no privilege."""
Seconds = Annotated[int, Meta(ge=0, le=LONGEST_S)]
Count = Annotated[int, Meta(ge=0, le=MOST_REPLICAS)]
Positive = Annotated[int, Meta(ge=1, le=MOST_REPLICAS)]


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A part of a description: nothing but the fields that it names."""


class Resources(Part, frozen=True, kw_only=True):
    """What a server gets of its machine.

    Attributes:
        cpu: Cores that are reserved.
        memory: Memory that is reserved, and the most that it may take.
        cpu_limit: Most cores; nothing is no limit, which keeps latencies short.
        gpus: GPUs of NVIDIA.
        gpu_type: Their kind, by Google's label of nodes, such as `nvidia-l4`; nothing is any.
        shared_memory: Room in `/dev/shm`, for clients that share memory with the server; nothing leaves the default.
    """

    cpu: Quantity = "1"
    memory: Quantity = "2Gi"
    cpu_limit: NoQuantity = ""
    gpus: Annotated[int, Meta(ge=0, le=16)] = 0
    gpu_type: str = ""
    shared_memory: NoQuantity = ""


class Ports(Part, frozen=True, kw_only=True):
    """Where a server listens.

    Attributes:
        http: For HTTP.
        grpc: For gRPC.
        metrics: For metrics.
    """

    http: Port = 8000
    grpc: Port = 8001
    metrics: Port = 8002


class Key(Part, frozen=True, kw_only=True):
    """A key that clients have to send over HTTP and gRPC, out of a secret.

    Attributes:
        secret: Name of the secret; nothing is no key.
        entry: The entry of the secret that holds the key.
        open: What needs no key: the groups of `--api-key-open`.
    """

    secret: str = ""
    entry: str = "key"
    open: tuple[str, ...] = ("health", "metrics")


class Tls(Part, frozen=True, kw_only=True):
    """Encryption of HTTP and gRPC.

    Attributes:
        secret: A secret of the kind `kubernetes.io/tls`, with `tls.crt` and `tls.key`; nothing is none.
    """

    secret: str = ""


class Probes(Part, frozen=True, kw_only=True):
    """When a server counts as started, ready and alive.

    Attributes:
        startup_s: Seconds that it may take until its models serve, their download included.
        period_s: Seconds between two questions.
        timeout_s: Seconds that an answer may take.
    """

    startup_s: Annotated[int, Meta(ge=1, le=LONGEST_S)] = 600
    period_s: Annotated[int, Meta(ge=1, le=3600)] = 5
    timeout_s: Annotated[int, Meta(ge=1, le=3600)] = 4


class Scaling(Part, frozen=True, kw_only=True):
    """How many servers there are, decided by load.

    Attributes:
        kind: `none`; `hpa`, which Kubernetes brings; or `keda`. Neither goes below one server: where none runs, nothing
            counts the requests that wait.
        least: Fewest servers.
        most: Most servers.
        cpu_percent: Of the reserved cores, at which servers are added; 0 does not look at them.
        pending_requests: Waiting requests of a server at which servers are added; 0 does not look at them. With `hpa`
            an adapter has to offer the metric `nv_inference_pending_request_count` of pods.
        concurrency: Requests in a server, waiting and executed, at which servers are added; 0 does not look at them.
            With `hpa` an adapter has to offer the metric `alipes_inference_concurrency` of pods.
        wait_ms: Milliseconds that the request has waited that has waited longest, at which servers are added; 0 does
            not look at it. With `hpa` an adapter has to offer `alipes_inference_longest_wait_seconds` of pods.
        prometheus: Address of the Prometheus that `keda` asks.
    """

    kind: Literal["none", "hpa", "keda"] = "none"
    least: Positive = 1
    most: Positive = 10
    cpu_percent: Annotated[int, Meta(ge=0, le=1000)] = 80
    pending_requests: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    concurrency: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    wait_ms: Annotated[int, Meta(ge=0, le=3_600_000)] = 0
    prometheus: str = "http://prometheus-server.monitoring:80"


class Network(Part, frozen=True, kw_only=True):
    """Who may connect.

    Attributes:
        restricted: Whether a network policy says so.
        namespaces: Namespaces whose pods may, beside the server's own.
    """

    restricted: bool = False
    namespaces: tuple[str, ...] = ()


class Service(Part, frozen=True, kw_only=True):
    """The address in front of the servers.

    Attributes:
        type: Its kind: within the cluster, at a port of each node, or with a load balancer of the cloud.
        annotations: What the cloud is told of it.
    """

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    annotations: dict[str, str] = {}


class Toleration(Part, frozen=True, kw_only=True):
    """A taint of nodes that the servers bear.

    Attributes:
        key: Its key.
        operator: Whether its value counts.
        value: Its value.
        effect: What it would do; nothing is anything.
    """

    key: str
    operator: Literal["Exists", "Equal"] = "Exists"
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""


class Description(Part, frozen=True, kw_only=True):
    """A deployment of alipes.

    Attributes:
        name: Of everything that belongs to it.
        image: The image, such as `alipes deploy image` writes.
        repository: The models: a folder of the image, a claim of a volume (`pvc://CLAIM/FOLDER`), or a bucket
            (`gs://`, `s3://`, `az://`).
        pull_policy: When the image is fetched.
        pull_secrets: Secrets with the registry's password.
        replicas: Servers, unless `scaling` decides.
        streams: Whether each server has a name of its own, for clients whose sequences stay with one.
        arguments: Further flags of `alipes serve`.
        environment: Variables.
        secrets: Secrets whose entries become variables, such as the keys of a bucket.
        service_account: Account of the pods, which may stand for rights to a bucket; nothing is the namespace's own.
        resources: Of each server.
        ports: Of each server.
        key: What clients have to send.
        tls: Encryption.
        probes: Questions of the supervisor.
        pause_s: Seconds between the decision to stop a server and the signal, in which its address is forgotten.
        exit_timeout_s: Seconds in which a server finishes its requests.
        unavailable: Most servers that maintenance may take away at the same time.
        scaling: By load.
        network: Who may connect.
        service: The address in front.
        node_selector: Labels of the nodes that may be taken.
        tolerations: Taints that are borne.
        scrape: Whether pods carry the annotations by which Prometheus finds them.
        labels: Further labels of everything.
        annotations: Further annotations of pods.
    """

    name: Name = "alipes"
    image: Annotated[str, Meta(min_length=1, max_length=1024, pattern=r"^\S+$")] = DEFAULT_IMAGE
    repository: Annotated[str, Meta(min_length=1, max_length=4096)] = MODELS
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()
    replicas: Count = 1
    streams: bool = False
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    secrets: tuple[str, ...] = ()
    service_account: str = ""
    resources: Resources = Resources()
    ports: Ports = Ports()
    key: Key = Key()
    tls: Tls = Tls()
    probes: Probes = Probes()
    pause_s: Seconds = 5
    exit_timeout_s: Seconds = 30
    unavailable: Positive = 1
    scaling: Scaling = Scaling()
    network: Network = Network()
    service: Service = Service()
    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()
    scrape: bool = True
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
