"""What does not go together in a description of KServe: what KServe would refuse, or take and not do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from alipes.deploy.kserve.description import Canary, KServe, Predictor
from alipes.deploy.kserve.graph_faults import graph_faults
from alipes.deploy.kserve.parts import Logger, Scaling, Storage
from alipes.deploy.kserve.placement import unplaced
from alipes.deploy.quantities import bytes_of

__all__ = ["Fault", "faults_of"]

STORAGES: Final = (
    *("gs://", "s3://", "pvc://", "file://", "https://", "http://", "hdfs://", "webhdfs://"),
    *("oci://", "oci+native://", "hf://"),
)
"""What KServe fetches from without further settings of the cluster."""
AGENT_STORAGES: Final = ("s3://", "gs://", "https://", "http://")
"""What its agent fetches trained models from."""
_KINDS: Final = {"Knative": ("kpa",), "Standard": ("hpa", "keda", "external", "none")}
METRICS: Final = {
    "kpa": ("concurrency", "rps"),
    "hpa": ("cpu", "memory"),
    "keda": ("query", "concurrency", "wait", "cpu", "memory"),
    "external": (),
    "none": (),
}
"""What each scaler looks at; the first is the default."""
_PERCENT: Final = 100


class Fault(NamedTuple):
    """One place that is wrong.

    Attributes:
        where: Its dotted name.
        what: What is wrong there.
    """

    where: str
    what: str


def scaler_of(scaling: Scaling, mode: str) -> str:
    """What decides how many servers there are."""
    return scaling.kind or _KINDS[mode][0]


def faults_of(wanted: KServe) -> list[Fault]:
    """Everything that does not go together, in the order of the values."""
    faults = [
        *_predictor_faults(wanted),
        *_canary_faults(wanted),
        *_model_faults(wanted),
        *_other_faults(wanted),
    ]
    for number, graph in enumerate(wanted.graphs):
        faults += [Fault(f"graphs[{number}].{where}", what) for where, what in graph_faults(graph)]
    return faults


def _predictor_faults(wanted: KServe) -> Iterator[Fault]:
    predictor = wanted.predictor
    if wanted.models.items:
        if predictor.storage != Storage():
            yield Fault("predictor.storage", "a service has one model or, in `models`, many")
    else:
        yield from _storage_faults(predictor.storage, "predictor.storage")
    yield from _scaling_faults(predictor.scaling, wanted.mode, "predictor.scaling")
    yield from _mode_faults(predictor, wanted)
    if predictor.logger is not None:
        yield from _logger_faults(predictor.logger)
    if not predictor.runtime and wanted.runtimes.formats and predictor.format not in wanted.runtimes.formats:
        yield Fault("predictor.format", f"runtimes.formats has no runtime of '{predictor.format}'")


def _mode_faults(predictor: Predictor, wanted: KServe) -> Iterator[Fault]:
    """What KServe would take in the other mode alone."""
    if wanted.mode == "Standard":
        if predictor.canary_percent is not None:
            yield Fault("predictor.canaryPercent", "revisions are Knative's: in Standard mode, describe `canaries`")
        if predictor.concurrency:
            yield Fault("predictor.concurrency", "Knative limits requests in flight; in Standard mode nothing would")
    elif wanted.canaries:
        yield Fault("canaries", "KServe has them in Standard mode; with Knative, say `predictor.canaryPercent`")


def _storage_faults(storage: Storage, where: str) -> Iterator[Fault]:
    if storage.uri and (storage.key or storage.path or storage.parameters):
        yield Fault(where, "say `uri`, or `key` and `path`, not both")
    elif not storage.uri and not storage.path:
        yield Fault(where, "say where the model is: `uri`, or `key` and `path`")
    elif storage.uri and not storage.uri.startswith(STORAGES):
        yield Fault(f"{where}.uri", f"KServe fetches from {', '.join(STORAGES)}, not from '{storage.uri}'")


def _scaling_faults(scaling: Scaling, mode: str, where: str) -> Iterator[Fault]:
    kind = scaler_of(scaling, mode)
    if kind not in _KINDS[mode]:
        yield Fault(f"{where}.kind", f"in {mode} mode there is {', '.join(_KINDS[mode])}, not '{kind}'")
        return
    if scaling.most and scaling.least > scaling.most:
        yield Fault(where, f"at least {scaling.least} and at most {scaling.most} servers")
    if not scaling.least and kind not in {"kpa", "keda"}:
        yield Fault(f"{where}.least", f"'{kind}' does not bring back a server where none is: only kpa and keda do")
    if scaling.metric and scaling.metric not in METRICS[kind]:
        known = ", ".join(METRICS[kind]) or "no metric"
        yield Fault(f"{where}.metric", f"'{kind}' looks at {known}, not at '{scaling.metric}'")
        return
    metric: str = scaling.metric or (METRICS[kind] or ("",))[0]
    if kind == "keda" and not scaling.target:
        yield Fault(f"{where}.target", "say at which value keda adds servers")
    if metric in {"cpu", "memory"} and scaling.target > _PERCENT:
        yield Fault(f"{where}.target", f"{metric} is a percentage, at most {_PERCENT}")
    if scaling.query and metric != "query":
        yield Fault(f"{where}.query", f"'{metric or kind}' queries nothing")


def _logger_faults(logger: Logger) -> Iterator[Fault]:
    if bool(logger.url) == (logger.storage is not None):
        yield Fault("predictor.logger", "say `url` or `storage`")
    if logger.storage is None and (logger.batch_size or logger.batch_interval):
        yield Fault("predictor.logger.batchSize", "records are joined for `storage` alone")


def _canary_faults(wanted: KServe) -> Iterator[Fault]:
    names: set[str] = set()
    for number, canary in enumerate(wanted.canaries):
        where = f"canaries[{number}]"
        if canary.name in names:
            yield Fault(f"{where}.name", f"'{canary.name}' is the name of another canary")
        if canary.name == wanted.predictor.name:
            yield Fault(f"{where}.name", f"'{canary.name}' is the name of the predictor")
        names.add(canary.name)
        yield from _storage_faults(canary.storage, f"{where}.storage")
        if bool(canary.storage.uri) != bool(wanted.predictor.storage.uri):
            yield Fault(f"{where}.storage", "KServe 0.20 takes `uri` or `path` for all predictors of a service alike")
        yield from _replica_faults(canary, wanted, where)
    total = sum(canary.percent for canary in wanted.canaries)
    if total > _PERCENT:
        yield Fault("canaries", f"they get {total} of {_PERCENT} requests")
    if wanted.canaries and wanted.models.items:
        yield Fault("canaries", "KServe has none of a service with many models")


def _replica_faults(canary: Canary, wanted: KServe, where: str) -> Iterator[Fault]:
    least = wanted.predictor.scaling.least
    if (canary.replicas or 0) > least:
        yield Fault(f"{where}.replicas", f"{canary.replicas} are more than the {least} of the predictor")


def _model_faults(wanted: KServe) -> Iterator[Fault]:
    names: set[str] = set()
    for number, model in enumerate(wanted.models.items):
        where = f"models.items[{number}]"
        if model.name in names:
            yield Fault(f"{where}.name", f"'{model.name}' is the name of another model")
        names.add(model.name)
        if not model.uri.startswith(AGENT_STORAGES):
            yield Fault(f"{where}.uri", f"KServe's agent fetches from {', '.join(AGENT_STORAGES)}, not '{model.uri}'")
    room = bytes_of(wanted.predictor.resources.memory) - bytes_of(wanted.models.reserve)
    for number in unplaced(wanted.models, room):
        model = wanted.models.items[number]
        what = f"{model.memory} is more than the {room} bytes that a server has for models"
        if bytes_of(model.memory) <= room:
            what = f"all {wanted.models.shards} services of `shards` are full"
        yield Fault(f"models.items[{number}].memory", what)


def _other_faults(wanted: KServe) -> Iterator[Fault]:
    for name, component in (("transformer", wanted.transformer), ("explainer", wanted.explainer)):
        if component is not None:
            yield from _scaling_faults(component.scaling, wanted.mode, f"{name}.scaling")
    account = wanted.account
    if account.name and (account.secrets or account.annotations):
        yield Fault("account", "an account that is there is named; one with `secrets` or `annotations` is made")
    if wanted.cache is not None and not wanted.predictor.storage.uri:
        yield Fault("cache", "a model is copied from its `predictor.storage.uri`")
