"""What is deployed on KServe, as one typed description from which every object is written."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from alipes.deploy.description import DEFAULT_IMAGE, LONGEST_S, Count, Name, Part, Probes, Quantity, Resources, Seconds
from alipes.deploy.kserve.parts import Account, Batcher, Cache, Component, Logger, Nodes, PayloadLog, Scaling, Storage

__all__ = ["Canary", "Graph", "KServe", "Model", "Models", "Predictor", "Router", "Runtimes", "Step"]

Image = Annotated[str, Meta(min_length=1, max_length=1024, pattern=r"^\S+$")]
Format = Literal["onnx", "triton", "sklearn", "xgboost", "lightgbm", "pytorch", "tensorflow", "mlflow"]
Percent = Annotated[int, Meta(ge=0, le=100)]


class Runtimes(Part, frozen=True, kw_only=True):
    """The runtimes: by them, KServe knows the image and how it is run.

    Attributes:
        written: Whether they are written; no, where the cluster has them already.
        name: What their names begin with; the format follows.
        scope: Whether all namespaces may use them.
        formats: Formats that have one; nothing is all.
        chosen: Whether KServe may choose them for services that name none.
        pickles: Whether models of `sklearn` and `mlflow` may be pickles, as KServe's own runtimes have it: files that
            run code while they are read.
        priority: Among runtimes of the same format; that with the highest is chosen. Those of KServe have 1 to 3.
    """

    written: bool = True
    name: Name = "alipes"
    scope: Literal["cluster", "namespace"] = "cluster"
    formats: tuple[Format, ...] = ()
    chosen: bool = True
    pickles: bool = True
    priority: Annotated[int, Meta(ge=1, le=1_000_000)] = 4


class Predictor(Part, frozen=True, kw_only=True):
    """The servers of a model.

    Attributes:
        format: What the model is.
        format_version: Its major version; nothing is any.
        storage: Where it is.
        runtime: The runtime; nothing is that of the format, of those described here.
        protocol: What clients speak; nothing leaves it to KServe. With Knative, `grpc-v2` is served alone.
        name: Of the predictor; after a canary was promoted, that of the canary.
        arguments: Further flags of the server.
        environment: Variables.
        resources: Of each server.
        scaling: How many there are.
        concurrency: Requests that one server gets at the same time, which Knative ensures; 0 is no limit.
        timeout_s: Seconds that a request may take; 0 leaves it to KServe.
        canary_percent: Requests that the newest revision gets, with Knative; nothing is all of them.
        batcher: How the server joins requests, as KServe's batcher would.
        logger: KServe's logger.
        payload_log: The server's own log of requests and responses.
        labels: Further labels of pods.
        annotations: Further annotations of pods, such as `autoscaling.knative.dev/window`.
    """

    format: Format = "triton"
    format_version: str = ""
    storage: Storage = Storage()
    runtime: str = ""
    protocol: Literal["", "v1", "v2", "grpc-v2"] = ""
    name: Annotated[str, Meta(pattern=r"^([a-z]([a-z0-9-]{0,30}[a-z0-9])?)?$")] = ""
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    resources: Resources = Resources()
    scaling: Scaling = Scaling()
    concurrency: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    timeout_s: Seconds = 0
    canary_percent: Percent | None = None
    batcher: Batcher | None = None
    logger: Logger | None = None
    payload_log: PayloadLog | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class Canary(Part, frozen=True, kw_only=True):
    """Another model beside the first one, with a share of its requests, without Knative.

    Attributes:
        name: Of this predictor.
        percent: Requests that it gets; with 0 it runs, and gets none.
        storage: Where its model is.
        format_version: Of its model; nothing is any.
        replicas: How many servers, of those that the predictor has at least; nothing is one.
        arguments: Further flags of its server.
    """

    name: Annotated[str, Meta(pattern=r"^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$")]
    percent: Percent
    storage: Storage
    format_version: str = ""
    replicas: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    arguments: tuple[str, ...] = ()


class Model(Part, frozen=True, kw_only=True):
    """A model among many in one service.

    Attributes:
        name: By which clients ask for it.
        uri: Where it is: `s3`, `gs`, `https` or `http`.
        memory: Most that it takes.
        format: What it is.
    """

    name: Annotated[str, Meta(pattern=r"^[a-z0-9]([a-z0-9-]{0,251}[a-z0-9])?$")]
    uri: str
    memory: Quantity
    format: Format = "onnx"


class Models(Part, frozen=True, kw_only=True):
    """Many models in few servers: trained models, placed by their memory.

    Attributes:
        items: The models. They are placed in this order: one that is added at the end moves no other.
        reserve: Memory of each server that is left for the server itself.
        shards: Most services that they are placed over.
    """

    items: tuple[Model, ...] = ()
    reserve: Quantity = "512Mi"
    shards: Annotated[int, Meta(ge=1, le=1000)] = 100


class Step(Part, frozen=True, kw_only=True):
    """A step of a router.

    Attributes:
        name: Of the step.
        service: An InferenceService that is called; or else
        node: another router of the graph; or else
        url: an address.
        data: What is sent: `$request` or `$response` of the step before; nothing leaves it to KServe.
        weight: Requests of a hundred that go here, in a Splitter.
        condition: When this step is taken, in a Switch, and whether it goes on, in a Sequence: GJSON of the request.
        dependency: `Hard` ends the request where the step fails.
        map_predictions: Whether the predictions of the step before become the instances of this one.
    """

    name: str = ""
    service: str = ""
    node: str = ""
    url: str = ""
    data: str = ""
    weight: Percent | None = None
    condition: str = ""
    dependency: Literal["", "Soft", "Hard"] = ""
    map_predictions: bool = False


class Router(Part, frozen=True, kw_only=True):
    """A node of a graph.

    Attributes:
        kind: Steps one after the other, one by chance, all at once, or that whose condition holds.
        steps: The steps.
    """

    kind: Literal["Sequence", "Splitter", "Ensemble", "Switch"]
    steps: Annotated[tuple[Step, ...], Meta(min_length=1)]


class Graph(Part, frozen=True, kw_only=True):
    """A graph of services behind one address. Ensembles of the server do the same without a hop between models.

    Attributes:
        name: Of the graph.
        nodes: Its routers by name; requests begin at `root`.
        timeout_s: Seconds that a request may take; 0 leaves it to KServe.
        least: Fewest routers.
        most: Most routers; 0 is no limit.
    """

    name: Name
    nodes: dict[str, Router]
    timeout_s: Seconds = 0
    least: Count = 1
    most: Count = 0


class KServe(Part, frozen=True, kw_only=True):
    """A deployment of alipes on KServe.

    Attributes:
        name: Of the service, and of what belongs to it.
        image: The image of the server, such as `alipes deploy image` writes.
        mode: `Standard`: Kubernetes alone; `Knative`: with Knative, down to no server.
        runtimes: What KServe knows of the server.
        predictor: The model and its servers.
        canaries: Other models that get a share of the requests, in `Standard` mode.
        models: Many models in place of one.
        transformer: What requests pass before the model, and responses after it.
        explainer: What explains predictions.
        graphs: Graphs of services.
        account: By which models are fetched.
        cache: A copy of the model on nodes.
        nodes: Which nodes may be taken.
        pull_secrets: Secrets with the registry's password.
        probes: Questions of the supervisor.
        pause_s: Seconds between the decision to stop a server and the signal, in `Standard` mode.
        exit_timeout_s: Seconds in which a server finishes its requests.
        scrape: Whether Prometheus finds the metrics by annotations.
        labels: Further labels of everything.
        annotations: Further annotations of services, such as `serving.kserve.io/enable-tag-routing`.
    """

    name: Name = "alipes"
    image: Image = DEFAULT_IMAGE
    mode: Literal["Standard", "Knative"] = "Standard"
    runtimes: Runtimes = Runtimes()
    predictor: Predictor = Predictor()
    canaries: tuple[Canary, ...] = ()
    models: Models = Models()
    transformer: Component | None = None
    explainer: Component | None = None
    graphs: tuple[Graph, ...] = ()
    account: Account = Account()
    cache: Cache | None = None
    nodes: Nodes = Nodes()
    pull_secrets: tuple[str, ...] = ()
    probes: Probes = Probes()
    pause_s: Annotated[int, Meta(ge=0, le=LONGEST_S)] = 5
    exit_timeout_s: Seconds = 30
    scrape: bool = True
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
