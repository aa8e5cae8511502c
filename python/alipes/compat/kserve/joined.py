"""Requests that are one for a model which takes several at once, and what each of them gets of the result.

As KServe's batcher joins them: `instances` behind each other, `predictions` divided by their number. Those of V2 are
joined along the first axis of their tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import numpy as np

from alipes.compat.kserve.documents import dump
from alipes.compat.kserve.errors import InferenceError
from alipes.compat.kserve.exchange import Exchange
from alipes.compat.kserve.infer_request import InferRequest
from alipes.compat.kserve.infer_response import InferResponse
from alipes.compat.kserve.model import InferenceVerb
from alipes.compat.kserve.tensors import InferInput, InferOutput

__all__ = ["Joined", "groups_of"]

_INSTANCES: Final = "instances"
_PREDICTIONS: Final = "predictions"


@dataclass(frozen=True, slots=True)
class Joined:
    """Several requests as one.

    Attributes:
        exchanges: The requests, in order.
        payload: What the model gets.
        sizes: How many instances, or rows, each has.
    """

    exchanges: tuple[Exchange, ...]
    payload: Any
    sizes: tuple[int, ...]
    _requests: tuple[Any, ...]

    @property
    def headers(self) -> dict[str, str]:
        """The headers that all of them have."""
        first, *others = (one.headers for one in self.exchanges)
        return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}

    def parts(self, result: Any) -> list[Any]:
        """What each request gets of a result.

        Raises:
            InferenceError: If the result cannot be divided by rows.
        """
        ends = list(accumulate(self.sizes))
        places = [slice(end - size, end) for size, end in zip(self.sizes, ends, strict=True)]
        if isinstance(result, InferResponse):
            return self._parts_of_tensors(result, places)
        predictions = result.get(_PREDICTIONS) if isinstance(result, dict) else None
        if not isinstance(predictions, (list, np.ndarray)) or len(predictions) != ends[-1]:
            raise InferenceError(
                f"the model took {ends[-1]} instances together, and gave no list of as many predictions"
            )
        return [{**result, _PREDICTIONS: predictions[place]} for place in places]

    def _parts_of_tensors(self, result: InferResponse, places: Sequence[slice]) -> list[Any]:
        rows = sum(self.sizes)
        arrays = [(one, one.as_numpy()) for one in result.outputs]
        for one, array in arrays:
            if array.ndim == 0 or len(array) != rows:
                raise InferenceError(f"the model took {rows} rows together, and output '{one.name}' has others")
        return [
            self._part(request, result, arrays, place) for request, place in zip(self._requests, places, strict=True)
        ]

    @staticmethod
    def _part(request: InferRequest, result: InferResponse, arrays: Any, place: slice) -> InferResponse:
        outputs = []
        for one, array in arrays:
            output = InferOutput(
                one.name, list(array[place].shape), one.datatype, parameters=dict(one.parameters or {})
            )
            output.set_data_from_numpy(array[place], binary_data=request.use_binary_outputs)
            outputs.append(output)
        return InferResponse(
            request.id or result.id,
            result.model_name,
            outputs,
            result.model_version,
            parameters=result.parameters,
            use_binary_outputs=request.use_binary_outputs,
            requested_outputs=request.request_outputs,
        )


def groups_of(exchanges: Sequence[Exchange]) -> Iterator[Joined | Exchange]:
    """Requests that can be one, and those that stay by themselves: what they ask for is not the same, or unreadable."""
    groups: dict[Any, list[tuple[Exchange, Any]]] = {}
    for one in exchanges:
        key, payload = _key(one)
        if key is None:
            yield one
        else:
            groups.setdefault(key, []).append((one, payload))
    for members in groups.values():
        if len(members) == 1:
            yield members[0][0]
            continue
        payloads = tuple(payload for _, payload in members)
        payload, sizes = _join_tensors(payloads) if isinstance(payloads[0], InferRequest) else _join_instances(payloads)
        yield Joined(tuple(one for one, _ in members), payload, sizes, payloads)


def _key(exchange: Exchange) -> tuple[Any, Any]:
    """What has to be equal of requests that are joined, and the payload; None where it stays by itself."""
    alone = None, None
    if exchange.verb is not InferenceVerb.PREDICT:
        return alone
    try:
        payload = exchange.payload()
        if isinstance(payload, InferRequest):
            return _key_of_tensors(payload, exchange.is_grpc), payload
        if exchange.attributes or not isinstance(payload, dict) or not isinstance(payload.get(_INSTANCES), list):
            return alone
        return (_PREDICTIONS, dump({name: value for name, value in payload.items() if name != _INSTANCES})), payload
    except Exception:  # it is read again by itself, and refused
        return alone


def _key_of_tensors(request: InferRequest, is_grpc: bool) -> Any:
    inputs = tuple((one.name, one.datatype, tuple(one.shape[1:]), repr(one.parameters)) for one in request.inputs)
    sizes = {one.shape[0] if one.shape else None for one in request.inputs}
    if len(sizes) != 1 or None in sizes:
        return None
    return inputs, is_grpc, repr(request.parameters), repr(request.request_outputs)


def _join_instances(payloads: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], tuple[int, ...]]:
    instances = [one for payload in payloads for one in payload[_INSTANCES]]
    return {**payloads[0], _INSTANCES: instances}, tuple(len(payload[_INSTANCES]) for payload in payloads)


def _join_tensors(requests: Sequence[InferRequest]) -> tuple[InferRequest, tuple[int, ...]]:
    first = requests[0]
    inputs = []
    for at, one in enumerate(first.inputs):
        array = np.concatenate([request.inputs[at].as_numpy() for request in requests])
        tensor = InferInput(one.name, list(array.shape), one.datatype, parameters=dict(one.parameters or {}))
        tensor.set_data_from_numpy(array, binary_data=one._raw_data is not None)
        inputs.append(tensor)
    joined = InferRequest(
        first.model_name,
        inputs,
        first.id,
        from_grpc=bool(first.from_grpc),
        parameters=first.parameters,
        request_outputs=first.request_outputs,
        model_version=first.model_version,
    )
    joined._use_raw_outputs = first._use_raw_outputs
    return joined, tuple(int(request.inputs[0].shape[0]) for request in requests)
