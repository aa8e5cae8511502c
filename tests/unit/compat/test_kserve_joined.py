"""Requests are one for a model only where they ask for the same, and each gets its own part of the result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from alipes.compat.kserve.batching import Batching
from alipes.compat.kserve.documents import dump
from alipes.compat.kserve.errors import InferenceError
from alipes.compat.kserve.exchange import Exchange
from alipes.compat.kserve.infer_response import InferResponse
from alipes.compat.kserve.joined import Joined, groups_of
from alipes.compat.kserve.tensors import InferOutput

PREDICT = "/v1/models/m:predict"
INFER = "/v2/models/m/infer"


def v1(*instances: Any, path: str = PREDICT, caller: str = "me", **more: Any) -> Exchange:
    headers = {"content-type": "application/json", "x-caller": caller}
    return Exchange("m", path, headers, dump({"instances": list(instances), **more}), {})


def v2(*rows: float, identity: str, datatype: str = "FP32", **more: Any) -> Exchange:
    tensor = {"name": "x", "shape": [len(rows), 1], "datatype": datatype, "data": list(rows)}
    return Exchange("m", INFER, {}, dump({"id": identity, "inputs": [tensor], **more}), {})


def joined(*exchanges: Exchange) -> Joined:
    (only,) = groups_of(exchanges)
    assert isinstance(only, Joined)
    return only


def test_instances_stand_behind_each_other_and_predictions_are_divided() -> None:
    one = joined(v1(1, 2), v1(), v1(3))
    assert (one.payload, one.sizes) == ({"instances": [1, 2, 3]}, (2, 0, 1))
    parts = one.parts({"predictions": [10, 20, 30], "by": "m"})
    assert [part["predictions"] for part in parts] == [[10, 20], [], [30]]
    assert all(part["by"] == "m" for part in parts)
    assert [part["predictions"].tolist() for part in one.parts({"predictions": np.arange(3)})] == [[0, 1], [], [2]]


def test_headers_are_those_that_all_requests_have() -> None:
    assert joined(v1(1, caller="a"), v1(2, caller="b")).headers == {"content-type": "application/json"}
    assert joined(v1(1), v1(2)).headers["x-caller"] == "me"


@pytest.mark.parametrize(
    "other",
    [
        v1(1, signature_name="other"),
        v1(1, path="/v1/models/m:explain"),
        v2(1.0, identity="1"),
        Exchange("m", PREDICT, {}, b"{", {}),
        Exchange("m", PREDICT, {}, b'{"instances": 1}', {}),
        Exchange("m", PREDICT, {}, b"[]", {}),
        Exchange("m", "/v1/models/m", {}, b"", {}),
    ],
    ids=["other keys", "explain", "V2", "no JSON", "no list", "no object", "no verb"],
)
def test_what_asks_for_something_else_stays_by_itself(other: Exchange) -> None:
    first = v1(1)
    assert set(groups_of([first, other])) == {first, other}


@pytest.mark.parametrize("result", [{"predictions": [1]}, {"predictions": 3}, {}, "text", None])
def test_a_result_that_does_not_fit_is_refused(result: Any) -> None:
    with pytest.raises(InferenceError, match="took 3 instances together"):
        joined(v1(1, 2), v1(3)).parts(result)


def test_tensors_are_joined_along_their_first_axis() -> None:
    one = joined(v2(1.0, 2.0, identity="a"), v2(3.0, identity="b"))
    assert one.payload.inputs[0].as_numpy().tolist() == [[1.0], [2.0], [3.0]]
    output = InferOutput("y", [3, 1], "FP32")
    output.set_data_from_numpy(one.payload.inputs[0].as_numpy() * 2, binary_data=False)
    parts = one.parts(InferResponse("any", "m", [output]))
    assert [(part.id, part.outputs[0].data) for part in parts] == [("a", [2.0, 4.0]), ("b", [6.0])]
    assert [part.outputs[0].shape for part in parts] == [[2, 1], [1, 1]]


def test_tensors_of_other_kinds_stay_by_themselves() -> None:
    first, others = (
        v2(1.0, identity="a"),
        [v2(1, identity="b", datatype="INT32"), v2(1.0, identity="c", outputs=[{"name": "y"}])],
    )
    assert set(groups_of([first, *others])) == {first, *others}


def test_outputs_without_a_row_for_each_are_refused() -> None:
    output = InferOutput("y", [1], "FP32", [1.0])
    with pytest.raises(InferenceError, match="took 2 rows together, and output 'y' has others"):
        joined(v2(1.0, identity="a"), v2(2.0, identity="b")).parts(InferResponse("any", "m", [output]))


class _Plain:
    pass


class _Batched:
    alipes_max_batch_size = 8
    alipes_max_latency_ms = 1.5


def test_a_model_is_batched_only_where_it_says_so() -> None:
    assert not Batching.of(_Plain())
    assert Batching.of(_Plain()).config == {}
    assert Batching.of(_Batched()).config == {
        "max_batch_size": 8,
        "dynamic_batching": {"max_queue_delay_microseconds": 1500},
    }


@pytest.mark.parametrize(("size", "latency"), [(True, 0), (-1, 0), ("8", 0), (8, -1), (8, "1"), (8, 60_001), (8, True)])
def test_what_is_no_number_is_refused(size: Any, latency: Any) -> None:
    one = _Plain()
    one.alipes_max_batch_size, one.alipes_max_latency_ms = size, latency  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="alipes_max_"):
        Batching.of(one)
