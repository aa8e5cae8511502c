"""The requests of a run, prepared for its server."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from alipes._core import LoadTestRequests
from alipes.client import Tls
from alipes.client.endpoint import Endpoint
from alipes.client.signature import TensorSpec
from alipes.compat.perf_analyzer.data_files import from_files
from alipes.compat.perf_analyzer.dataset import Array, Dataset, Step
from alipes.compat.perf_analyzer.failures import Failed
from alipes.compat.perf_analyzer.generated_data import generated
from alipes.compat.perf_analyzer.model import Model
from alipes.compat.perf_analyzer.settings import SentData, Target
from alipes.errors import AlipesError

__all__ = ["Prepared", "dataset_of", "prepare", "tensor", "tls_of"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Requests, ready to be sent.

    Attributes:
        requests: For the engine.
        expected: Of each request, outputs that it has to have; without any it is empty.
        message: What was read for them, in words.
        ends: Which of them is the last of a sequence; empty where there are no sequences.
    """

    requests: LoadTestRequests
    expected: Sequence[Step] = field(default_factory=list)
    message: str = ""
    ends: Sequence[bool] = ()


def dataset_of(model: Model, data: SentData) -> Dataset:
    """The data of the options.

    Raises:
        Failed: If it does not fit the model.
    """
    if isinstance(data.source, str):
        return generated(model, data)
    return from_files(model, data, data.source)


def tls_of(target: Target) -> Tls | None:
    """How connections are encrypted."""
    if target.encryption is None:
        return None
    return Tls(**{role: str(path) for role, path in target.encryption.items()})


def empty_requests(target: Target) -> LoadTestRequests:
    """No requests yet, for the server."""
    endpoint = Endpoint.parse(target.address, tls_of(target))
    security = endpoint.tls.read() if endpoint.tls is not None else None
    headers = list(target.headers.items())
    compression = target.compression or None
    return LoadTestRequests(endpoint.address, endpoint.wire, headers=headers, tls=security, compression=compression)


def prepare(target: Target, model: Model, data: SentData, dataset: Dataset, streaming: bool = False) -> Prepared:
    """The requests of a server of the V2 protocol, over streams of gRPC where that is wanted.

    Raises:
        Failed: If they cannot be sent.
    """
    requests = empty_requests(target)
    decoupled = streaming and model.is_decoupled
    batches = dataset.batches(data.batch, model.max_batch > 0)
    outputs = [(name, {"binary_data": False}) for name in model.outputs] if _gets_json(target, data) else None
    try:
        for step, _ in batches:
            if data.json_inputs and target.protocol == "http":
                requests.post(_path(target), "application/json", _document(model, data, step))
                continue
            tensors = [tensor(model, name, array) for name, array in step.items()]
            parameters = dict(data.parameters)
            requests.infer(target.model, target.version, tensors, outputs, "", parameters, streaming, decoupled)
    except (AlipesError, ValueError) as error:
        raise Failed(f"error: Failed to init manager inputs: {error}\n") from error
    return Prepared(requests, [expected for _, expected in batches] if dataset.expected else [], dataset.message)


def tensor(model: Model, name: str, array: Array) -> tuple[str, str, tuple[int, ...], Array]:
    """An input as it is sent."""
    spec = model.inputs[name].spec
    if spec.datatype == "BF16" and array.dtype.kind == "f":
        array = TensorSpec(name, spec.datatype, array.shape).tensor(model.name, array)
    return name, spec.datatype, array.shape, array


def _gets_json(target: Target, data: SentData) -> bool:
    return data.json_outputs and target.protocol == "http"


def _path(target: Target) -> str:
    version = f"/versions/{target.version}" if target.version else ""
    return f"/v2/models/{quote(target.model, safe='')}{version}/infer"


def _document(model: Model, data: SentData, step: Step) -> bytes:
    inputs = [
        {
            "name": name,
            "datatype": model.inputs[name].spec.datatype,
            "shape": array.shape,
            "data": [element.decode() for element in array.flat] if array.dtype.kind == "O" else array.ravel().tolist(),
        }
        for name, array in step.items()
    ]
    parameters: Mapping[str, Any] = {**data.parameters, "binary_data_output": not data.json_outputs}
    return json.dumps({"inputs": inputs, "parameters": parameters}, separators=(",", ":")).encode()
