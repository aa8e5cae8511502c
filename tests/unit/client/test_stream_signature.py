"""What a client finds out about a model from documents alone."""

from __future__ import annotations

from typing import Any

import pytest
from alipes.client.inference.memory import memory_of
from alipes.client.inference.stream_signature import read_stream_signature

STATE = {"sequence_batching": {"state": [{"input_name": "input_snapshot", "dims": ["1", "3", "16"]}]}}


def tensor(name: str, *shape: int, datatype: str = "FP32") -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": [str(size) for size in shape]}


def port(name: str, *dims: int) -> dict[str, Any]:
    return {"name": name, "data_type": "TYPE_FP32", "dims": [str(size) for size in dims]}


def step(model: str, inputs: dict[str, str], outputs: dict[str, str]) -> dict[str, Any]:
    return {"model_name": model, "model_version": "-1", "input_map": inputs, "output_map": outputs}


def ensemble(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"platform": "ensemble", "ensemble_scheduling": {"step": list(steps)}}


WINDOWS = {
    "backend": "onnxruntime",
    "input": [port("snapshot_update", 1, 3, 8)],
    "output": [port("net.strain_snapshot", 2, 2, 16), port("net.witness_snapshot", 2, 16)],
    **STATE,
}
NATIVE = {**WINDOWS, "backend": "snapshotter", "sequence_batching": {"direct": {}}}
NET = {"backend": "onnxruntime", "input": [port("strain", -1, 2, 16), port("witness", -1, 16)]}
MEAN = {
    "backend": "averager",
    "sequence_batching": {"direct": {}},
    "input": [port("update", 2, 16)],
    "output": [port("output_stream", 1, 8)],
    "parameters": {"num_updates": {"string_value": "3"}, "update_size": {"string_value": "4"}},
}
MODELS = {"windows": WINDOWS, "native": NATIVE, "net": NET, "mean": MEAN}


def signature(config: dict[str, Any], *inputs: dict[str, Any], batch_size: int = 1) -> Any:
    metadata = {"inputs": list(inputs), "outputs": [tensor("y", -1, 1)]}
    return read_stream_signature(metadata, config, lambda name, _: MODELS[name], batch_size)


def streaming(windows: str = "windows", *more: dict[str, Any]) -> dict[str, Any]:
    split = {"net.strain_snapshot": "a", "net.witness_snapshot": "b"}
    first = step(windows, {"snapshot_update": "stream"}, split)
    return ensemble(first, step("net", {"strain": "a", "witness": "b"}, {"y": "y"}), *more)


def test_sizes_that_the_server_leaves_open_are_the_batch_size() -> None:
    (spec,) = signature(NET, tensor("strain", -1, 2, 16), batch_size=4).inputs
    assert (spec.shape, spec.open_batch) == ((4, 2, 16), True)


@pytest.mark.parametrize("windows", ["windows", "native"])
def test_a_snapshotter_input_has_a_part_per_reader(windows: str) -> None:
    found = signature(streaming(windows), tensor("stream", 1, 3, 8))
    (state,) = found.states
    assert [(part.keys, part.channels) for part in state.parts] == [(("net/strain",), 2), (("net/witness",), 1)]
    assert (found.inputs, found.streams, state.windows, found.stateful) == ((), 2, 2, True)


def test_a_window_that_two_models_read_is_one_stream_under_either_name() -> None:
    both = streaming("native", step("other", {"x": "a"}, {"y": "z"}))
    MODELS["other"] = NET
    found = signature(both, tensor("stream", 1, 3, 8))
    assert found.states[0].parts[0].keys == ("net/strain", "other/x")
    assert found.streams == 2


def test_an_input_that_feeds_no_state_is_plain_beside_one_that_does() -> None:
    config = streaming()
    config["ensemble_scheduling"]["step"][1]["input_map"]["more"] = "gain"
    found = signature(config, tensor("stream", 1, 3, 8), tensor("gain", 1, 1))
    assert [spec.name for spec in found.inputs] == ["gain"]
    assert len(found.states) == 1


def test_a_native_model_with_state_needs_no_ensemble() -> None:
    found = signature(NATIVE, tensor("snapshot_update", 1, 3, 8))
    assert [state.tensor.name for state in found.states] == ["snapshot_update"]
    assert found.stateful


def test_an_ensemble_with_a_state_behind_plain_inputs_belongs_to_sequences() -> None:
    config = ensemble(
        step("net", {"strain": "s", "witness": "w"}, {"y": "a"}), step("mean", {"update": "a"}, {"output_stream": "y"})
    )
    found = signature(config, tensor("s", 1, 2, 16), tensor("w", 1, 16))
    assert (len(found.inputs), found.states, found.stateful) == (2, (), True)


def test_a_stream_into_an_ensemble_inside_an_ensemble_is_found() -> None:
    MODELS["inner"] = streaming("native")
    found = signature(ensemble(step("inner", {"stream": "s"}, {"y": "y"})), tensor("s", 1, 3, 8))
    assert [part.keys for part in found.states[0].parts] == [("net/strain",), ("net/witness",)]


def test_memory_counts_the_updates_of_a_window_or_mean() -> None:
    assert memory_of(WINDOWS) == memory_of(NATIVE) == 2
    assert memory_of(MEAN) == 2
    exported = {
        "sequence_batching": {"state": [{"input_name": "input_online_average", "dims": ["16"]}]},
        "output": [port("output_stream", 1, 8)],
    }
    assert memory_of(exported) == 2


def test_the_memory_of_an_ensemble_is_that_of_its_longest_way() -> None:
    config = streaming("native", step("mean", {"update": "y"}, {"output_stream": "out"}))
    assert signature(config, tensor("stream", 1, 3, 8)).memory == 4


def test_the_memory_of_an_unknown_state_is_none() -> None:
    unknown = {"sequence_batching": {"state": [{"input_name": "input_hidden"}]}, "input": [port("x", 1, 4)]}
    unknown["output"] = [port("y", 1, 4)]
    assert signature(unknown, tensor("x", 1, 4)).memory is None
