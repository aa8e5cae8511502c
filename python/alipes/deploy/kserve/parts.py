"""Parts of what is deployed on KServe: storage, scaling, batcher, logger, nodes."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from alipes.deploy.description import LONGEST_S, MOST_REPLICAS, Count, Part, Positive, Resources, Seconds, Toleration

__all__ = [
    "Account",
    "Batcher",
    "Cache",
    "Component",
    "Logger",
    "LoggerStorage",
    "Nodes",
    "PayloadLog",
    "Scaling",
    "Storage",
]

Milliseconds = Annotated[int, Meta(ge=1, le=LONGEST_S * 1000)]
"""Of a wait for company: at least one, or nothing would be batched."""


class Storage(Part, frozen=True, kw_only=True):
    """Where KServe fetches a model from.

    Attributes:
        uri: An address such as `s3://bucket/folder`, `gs://`, `hf://owner/model`, `pvc://claim/folder`, `oci://image`.
        key: An entry of the secret `storage-config`, in place of an address.
        path: The folder in the storage of that entry.
        parameters: What differs from that entry, such as another `bucket`.
    """

    uri: str = ""
    key: str = ""
    path: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


class Account(Part, frozen=True, kw_only=True):
    """The service account by which a model is fetched.

    Attributes:
        name: An account; nothing is the namespace's own, unless one is made.
        secrets: Secrets with the keys of a storage: an account of the service's name is made, which has them.
        annotations: By which a cloud knows the account: it is made, too.
    """

    name: str = ""
    secrets: tuple[str, ...] = ()
    annotations: dict[str, str] = field(default_factory=dict)


class Scaling(Part, frozen=True, kw_only=True):
    """How many servers there are.

    Attributes:
        kind: What decides: `kpa`, Knative's own; `hpa` of Kubernetes; `keda`; `external`, something else; `none`, so
            that there are always `least`. Nothing is what fits: `kpa` with Knative, and `hpa` without.
        least: Fewest servers; 0 with `kpa` and `keda` alone.
        most: Most servers; 0 is no limit with `kpa`, and `least` with the others.
        metric: What is looked at. `kpa`: `concurrency` or `rps`; `hpa`: `cpu` or `memory`; `keda`: `cpu`, `memory`,
            `concurrency`, which is the requests in a server, `wait`, which is the seconds that the request has waited
            that has waited longest, or `query`. Nothing is the first of each, and the waiting requests with `keda`.
        target: Its value at which servers are added: requests in flight or a second, a percentage, or what the query
            gives; 0 leaves it to the scaler, except with `keda`.
        prometheus: Address of the Prometheus that `keda` queries.
        query: What it is queried; nothing is all requests that wait.
    """

    kind: Literal["", "kpa", "hpa", "keda", "external", "none"] = ""
    least: Count = 1
    most: Count = 0
    metric: Literal["", "concurrency", "rps", "cpu", "memory", "wait", "query"] = ""
    target: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    prometheus: str = "http://prometheus-server.monitoring:80"
    query: str = ""


class Batcher(Part, frozen=True, kw_only=True):
    """What KServe's batcher would do, by the server itself: on every protocol, for each model apart, without a sidecar.

    It holds for models whose own configuration says nothing of batches, and whose rows are independent.

    Attributes:
        max_batch_size: Most instances, or rows, of a batch, and of one request.
        max_latency_ms: Milliseconds that a request waits for others while the batch is not full.
    """

    max_batch_size: Positive = 32
    max_latency_ms: Milliseconds = 500


class LoggerStorage(Part, frozen=True, kw_only=True):
    """Where a logger writes.

    Attributes:
        key: An entry of the secret `storage-config`.
        path: The folder.
        parameters: `type` and `format`, as KServe documents them.
        account: The service account with the secret.
    """

    key: str
    path: str
    parameters: dict[str, str]
    account: str = ""


class Logger(Part, frozen=True, kw_only=True):
    """KServe's logger, a process beside the server that sends requests and responses to a sink.

    Attributes:
        url: Where CloudEvents go.
        mode: What is sent.
        headers: Headers of requests that go along.
        annotations: Annotations of the service that go along.
        storage: Files, in place of a sink.
        batch_size: Records of a file.
        batch_interval: The longest wait for as many, such as `5s`.
    """

    url: str = ""
    mode: Literal["all", "request", "response"] = "all"
    headers: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    storage: LoggerStorage | None = None
    batch_size: Annotated[int, Meta(ge=0, le=MOST_REPLICAS)] = 0
    batch_interval: Annotated[str, Meta(pattern=r"^([0-9]+(ms|s|m))?$")] = ""


class PayloadLog(Part, frozen=True, kw_only=True):
    """Requests and responses, which the server itself sends or writes: on every protocol, and without a sidecar.

    Attributes:
        url: Where CloudEvents go, or where files are written, such as `s3://bucket/folder`.
        mode: What is sent.
        sample: The share of requests that is sent, with their responses.
        headers: Headers of requests that go along.
        redacted: Names of headers, parameters, tensors and members of bodies whose values do not.
        format: Of files.
        batch_size: Most requests and responses of a file; 0 leaves it to the server.
        batch_interval_s: Seconds after which a file is written; 0 leaves it to the server.
    """

    url: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9]*://\S+$")]
    mode: Literal["all", "request", "response"] = "all"
    sample: Annotated[float, Meta(ge=0, le=1)] = 1.0
    headers: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()
    format: Literal["json", "csv", "parquet"] = "json"
    batch_size: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    batch_interval_s: Seconds = 0


class Cache(Part, frozen=True, kw_only=True):
    """A copy of the model on the disks of nodes, made before servers start there.

    Attributes:
        size: Room that it takes.
        node_groups: KServe's groups of nodes that hold it.
        whole_cluster: Whether services of all namespaces may use it.
    """

    size: Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+)?(k|M|G|T|Ki|Mi|Gi|Ti)?$")]
    node_groups: Annotated[tuple[str, ...], Meta(min_length=1)]
    whole_cluster: bool = False


class Nodes(Part, frozen=True, kw_only=True):
    """Which nodes may be taken.

    Attributes:
        selector: Labels that they have.
        affinity: Labels, each with the values of which they have one.
        tolerations: Taints that are borne.
    """

    selector: dict[str, str] = field(default_factory=dict)
    affinity: dict[str, tuple[str, ...]] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()


class Component(Part, frozen=True, kw_only=True):
    """A transformer or an explainer: an app that `alipes serve` runs, or a container of your own.

    Attributes:
        image: The image.
        app: The app in the image, such as `/app/transformer.py`: it runs with the ports and probes of the predictor,
            which it calls over gRPC. Without one the image starts a program of its own.
        arguments: Of its program. KServe adds the model's name and the predictor's address.
        environment: Variables.
        resources: Of each container.
        scaling: How many there are.
        timeout_s: Seconds that a request may take; 0 leaves it to KServe.
    """

    image: Annotated[str, Meta(min_length=1, max_length=1024, pattern=r"^\S+$")]
    app: Annotated[str, Meta(max_length=1024, pattern=r"^(|[^\s-]\S*)$")] = ""
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    resources: Resources = Resources()
    scaling: Scaling = Scaling()
    timeout_s: Seconds = 0
