"""Which tensors a framework's model is called with, and answers."""

from __future__ import annotations

from typing import Any

import pytest
from alipes.signature import Port, Signature
from alipes.worker.frameworks.check import check_ports
from alipes.worker.frameworks.ports import input_names, output_types
from alipes.worker.loading import LoadError

CONFIG: dict[str, Any] = {
    "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [3]}],
    "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [3]}],
    "sequence_batching": {
        "control_input": [{"name": "START", "control": [{"fp32_false_true": [0, 1]}]}],
        "state": [
            {"input_name": "before", "output_name": "after", "data_type": "TYPE_INT64", "dims": [1]},
            {"input_name": "again", "output_name": "y", "data_type": "TYPE_FP32", "dims": [3]},
        ],
    },
}


def test_controls_and_states_are_inputs_too() -> None:
    assert input_names(CONFIG) == ["x", "START", "before", "again"]


def test_a_state_that_callers_do_not_see_is_an_output_too() -> None:
    assert output_types(CONFIG) == {"y": "TYPE_FP32", "after": "TYPE_INT64"}


def test_a_configuration_that_is_yet_to_be_completed_names_nothing() -> None:
    assert (input_names({}), output_types({})) == ([], {})


INPUTS = {"x": ("FP32", (3,)), "START": ("FP32", (1,)), "before": ("INT64", (1,)), "again": ("FP32", (3,))}
OUTPUTS = {"y": ("FP32", (3,)), "after": ("INT64", (1,))}


def check(inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
    check_ports(
        "m", CONFIG, Signature(*(tuple(Port(name, *one) for name, one in side.items()) for side in (inputs, outputs)))
    )


def test_a_file_may_have_what_the_server_fills_in() -> None:
    check(INPUTS, OUTPUTS)


@pytest.mark.parametrize(
    ("inputs", "outputs", "words"),
    [
        (
            INPUTS | {"START": ("INT32", (1,))},
            OUTPUTS,
            "input 'START': the configuration has datatype FP32, the file INT32",
        ),
        (
            INPUTS | {"before": ("BYTES", (1,))},
            OUTPUTS,
            "input 'before': the configuration has datatype INT64, the file BYTES",
        ),
        (
            INPUTS | {"before": ("INT64", (2,))},
            OUTPUTS,
            r"input 'before': the configuration has shape \[1\], the file \[2\]",
        ),
        (INPUTS, {"y": OUTPUTS["y"]}, "the configuration has output 'after', the file's outputs are: y"),
        (INPUTS, OUTPUTS | {"after": ("INT32", (1,))}, "output 'after': the configuration has datatype INT64"),
    ],
)
def test_controls_and_states_that_the_file_has_otherwise_are_refused(
    inputs: dict[str, Any], outputs: dict[str, Any], words: str
) -> None:
    with pytest.raises(LoadError, match=words):
        check(inputs, outputs)
