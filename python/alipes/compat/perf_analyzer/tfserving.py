"""Models of TensorFlow Serving over gRPC: what their signatures say, and requests for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from alipes.client.signature import TensorSpec
from alipes.compat.perf_analyzer.dataset import Array, Dataset
from alipes.compat.perf_analyzer.direct_calls import call
from alipes.compat.perf_analyzer.failures import Exit, Failed
from alipes.compat.perf_analyzer.model import Model, Port, server_words
from alipes.compat.perf_analyzer.requests import Prepared, empty_requests, tensor
from alipes.compat.perf_analyzer.settings import Settings, Target
from alipes.compat.perf_analyzer.tfserving_messages import METADATA, PREDICT, TENSORFLOW_TYPES, message
from alipes.datatypes import numpy_type
from alipes.errors import AlipesError

__all__ = ["ask_tfserving", "prepare_predictions"]

_DATATYPES: Final = {number: datatype for datatype, number in TENSORFLOW_TYPES.items()}
_FIELD: Final = "signature_def"


def ask_tfserving(settings: Settings) -> Model:
    """The model as its signature describes it; with `-b` the first axis of each tensor is that of the batch.

    Raises:
        Failed: If the server is not there, does not know the model or its signature, or describes it otherwise.
    """
    target = settings.target
    signatures = _signatures(target)
    if target.signature not in signatures:
        known = ", ".join(sorted(signatures)) or "none"
        raise Failed(f"error: failed to create model parser: there is no signature '{target.signature}': {known}\n")
    signature = signatures[target.signature]
    is_open = all(info.tensor_shape.dim and info.tensor_shape.dim[0].size == -1 for info in signature.inputs.values())
    batch = settings.data.batch if settings.data.has_batch and is_open else 0
    inputs, outputs = _ports(signature.inputs, batch > 0), _ports(signature.outputs, batch > 0)
    return Model(target.model, target.version, inputs, outputs, max_batch=batch)


def prepare_predictions(model: Model, settings: Settings, dataset: Dataset) -> Prepared:
    """The requests.

    Raises:
        Failed: If they cannot be made.
    """
    if dataset.expected:
        raise Failed("Error: validation_data is not served for --service-kind tfserving", Exit.OPTION)
    requests = empty_requests(settings.target)
    for step, _ in dataset.batches(settings.data.batch, model.max_batch > 0):
        request = message("serving.PredictRequest", model_spec=_spec(settings.target))
        request.model_spec.signature_name = settings.target.signature
        for name, array in step.items():
            request.inputs[name].CopyFrom(_tensor(*tensor(model, name, array)[1:]))
        requests.call(PREDICT, request.SerializeToString())
    return Prepared(requests, [], dataset.message)


def _spec(target: Target) -> Any:
    """The model and its version: a number, or a label of the server's configuration."""
    if not target.version:
        return message("serving.ModelSpec", name=target.model)
    if target.version.isdecimal():
        return message(
            "serving.ModelSpec", name=target.model, version=message("serving.Version", value=int(target.version))
        )
    return message("serving.ModelSpec", name=target.model, version_label=target.version)


def _signatures(target: Target) -> Mapping[str, Any]:
    from google.protobuf.message import DecodeError

    request = message("serving.GetModelMetadataRequest", model_spec=_spec(target), metadata_field=[_FIELD])
    response = message("serving.GetModelMetadataResponse")
    signatures = message("serving.SignatureDefMap")
    try:
        response.MergeFromString(call(target, METADATA, request.SerializeToString()))
        signatures.MergeFromString(response.metadata[_FIELD].value)
    except AlipesError as error:
        raise Failed(f"error: failed to get model metadata: {server_words(error, target)}\n") from error
    except DecodeError as error:
        raise Failed(f"error: failed to get model metadata: the answer cannot be read: {error}\n") from error
    return dict(signatures.signature_def)


def _ports(described: Mapping[str, Any], takes_batches: bool) -> dict[str, Port]:
    ports = {}
    for name, info in sorted(described.items()):
        sizes = [int(dim.size) for dim in info.tensor_shape.dim]
        if info.dtype not in _DATATYPES or info.tensor_shape.unknown_rank:
            raise Failed(
                f"error: failed to create model parser: tensor '{name}' has the type {info.dtype}, or any number of "
                "axes, which is not served\n"
            )
        ports[name] = Port(TensorSpec(name, _DATATYPES[info.dtype], tuple(sizes[int(takes_batches) :])))
    return ports


def _tensor(datatype: str, shape: tuple[int, ...], array: Array) -> Any:
    made = message("TensorProto", dtype=TENSORFLOW_TYPES[datatype])
    for size in shape:
        made.tensor_shape.dim.add(size=size)
    if datatype == "BYTES":
        made.string_val.extend(bytes(element) for element in array.flat)
    else:
        made.tensor_content = array.astype(numpy_type(datatype) or array.dtype, copy=False).tobytes()
    return made
