"""Which tensors a framework's model is called with, and answers."""

from __future__ import annotations

from typing import Any

from alipes.signature import Port, Signature
from alipes.worker.frameworks.check import check_ports
from alipes.worker.frameworks.ports import input_names, output_types

CONFIG: dict[str, Any] = {
    "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [3]}],
    "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [3]}],
    "sequence_batching": {
        "control_input": [{"name": "START"}],
        "state": [
            {"input_name": "before", "output_name": "after", "data_type": "TYPE_INT64"},
            {"input_name": "again", "output_name": "y", "data_type": "TYPE_FP32"},
        ],
    },
}


def test_controls_and_states_are_inputs_too() -> None:
    assert input_names(CONFIG) == ["x", "START", "before", "again"]


def test_a_state_that_callers_do_not_see_is_an_output_too() -> None:
    assert output_types(CONFIG) == {"y": "TYPE_FP32", "after": "TYPE_INT64"}


def test_a_configuration_that_is_yet_to_be_completed_names_nothing() -> None:
    assert (input_names({}), output_types({})) == ([], {})


def test_a_file_may_have_what_the_server_fills_in() -> None:
    ports = (Port("x", "FP32", (3,)), Port("START", "FP32", (1,)), Port("before", "INT64", (1,)))
    check_ports("m", CONFIG, Signature(ports, (Port("y", "FP32", (3,)),)))
