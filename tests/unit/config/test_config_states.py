"""The tensors that the server keeps for sequences: what is refused, and what the data plane is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.sequences import control_names, hidden_state_outputs, sequence_scheduling, state_input_names
from alipes.config.validate.sequences import check_sequences
from alipes.config.validate.states import check_states
from alipes.errors import ConfigError

INITIAL = 'initial_state { name: "i" data_type: TYPE_FP32 dims: [ 2 ] zero_data: true }'
STATE = f'state {{ input_name: "OLD" output_name: "NEW" data_type: TYPE_FP32 dims: [ 2 ] {INITIAL} }}'


def parsed(sequences: str) -> Any:
    text = 'name: "m" backend: "onnxruntime" max_batch_size: 2 input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]'
    return parse_pbtxt(f"{text} sequence_batching {{ {sequences} }}", Path("config.pbtxt"))


def test_a_state_that_fits_passes(tmp_path: Path) -> None:
    check_states(parsed(STATE), tmp_path)


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        (
            INITIAL,
            INITIAL + INITIAL,
            "initial_state field for state input 'OLD' must contain exactly one or zero element. Found '2' elements.",
        ),
        (
            INITIAL,
            INITIAL.replace("FP32", "INT32"),
            "The data type used for 'initial_state' field of state 'OLD' does not match the state data type.",
        ),
        (
            INITIAL,
            INITIAL.replace('name: "i"', ""),
            "Field 'name' must be set when using initial_state for state input 'OLD'.",
        ),
        (
            INITIAL,
            INITIAL.replace("[ 2 ]", "[ 2, 1 ]"),
            "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input "
            "'OLD'. 2 != 1",
        ),
        (
            INITIAL,
            INITIAL.replace("[ 2 ]", "[ -1 ]"),
            "'initial_state' field for state input name 'OLD' contains variable dimensions.",
        ),
        (
            INITIAL,
            INITIAL.replace("[ 2 ]", "[ 3 ]"),
            "'initial_state' dim for input name 'OLD' doesn't match 'state' dim description. 3 != 2",
        ),
        (
            INITIAL,
            INITIAL.replace("zero_data: true", ""),
            "initial_state setting expects state'OLD' to have state_data set",
        ),
        (
            INITIAL,
            INITIAL.replace("zero_data: true", 'data_file: "short"'),
            "initial_state setting expects 8 bytes, but the data provided from shortonly has 4 bytes.",
        ),
        (
            INITIAL,
            INITIAL.replace("zero_data: true", 'data_file: "../short"'),
            "'sequence_batching.state.initial_state.data_file' must name a file inside the model's folder, "
            "got '../short'",
        ),
        (STATE, STATE + STATE, "State input name 'OLD' specified more than once."),
        ('"OLD"', '"X"', "sequence batching state input 'X' is an input of requests as well for m"),
        ('input_name: "OLD"', "", "sequence batching state must specify 'input_name' for m"),
        (
            f"dims: [ 2 ] {INITIAL}",
            "dims: [ -2 ]",
            "sequence batching state 'OLD' dimension must be integer >= 0, or -1 to indicate a variable-size dimension "
            "for m",
        ),
    ],
)
def test_what_is_wrong_is_refused_in_tritons_words(was: str, now: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "initial_state").mkdir()
    (tmp_path / "initial_state" / "short").write_bytes(b"1234")
    with pytest.raises(ConfigError) as caught:
        check_states(parsed(STATE.replace(was, now, 1)), tmp_path)
    assert str(caught.value).startswith(message)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    state = STATE.replace("zero_data: true", 'data_file: "none"')
    with pytest.raises(ConfigError, match=r"failed to open text file for read .*initial_state/none"):
        check_states(parsed(state), tmp_path)


def test_the_specification_has_slots_controls_and_states(tmp_path: Path) -> None:
    controls = (
        'control_input { name: "S" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ -1, 2 ] } } '
        'control_input { name: "C" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } } '
    )
    made = parsed(controls + STATE.replace("dims: [ 2 ]", "dims: [ -1 ]", 1) + " max_sequence_idle_microseconds: 9")
    assert sequence_scheduling(made, tmp_path) == {
        "kind": "sequence",
        "strategy": {"kind": "direct", "max_queue_delay_us": 0, "minimum_slot_utilization": 0.0},
        "max_idle_us": 9,
        "controls": [
            {"name": "S", "kind": "start", "datatype": "FP32", "false_true": [-1.0, 2.0]},
            {"name": "C", "kind": "corrid", "datatype": "BYTES", "false_true": None},
        ],
        "states": [
            {
                "input": "OLD",
                "output": "NEW",
                "datatype": "FP32",
                "dims": [-1],
                "initial_dims": [2],
                "initial_file": None,
            }
        ],
        "iterative": False,
    }


@pytest.mark.parametrize("dims", ["", "dims: [ 0 ]", "dims: [ 3, 0, 2 ]"], ids=["scalar", "empty", "empty inside"])
def test_a_state_of_any_size_passes(dims: str, tmp_path: Path) -> None:
    check_states(parsed(STATE.replace("dims: [ 2 ]", dims)), tmp_path)
    with pytest.raises(ConfigError, match="dimension must be integer >= 0, or -1 to indicate"):
        check_states(parsed(STATE.replace(INITIAL, "").replace("dims: [ 2 ]", "dims: [ -2 ]")), tmp_path)


def test_of_several_kinds_in_a_tensor_the_last_one_stays(tmp_path: Path) -> None:
    kinds = [
        "{ kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ] }",
        "{ kind: CONTROL_SEQUENCE_START int32_false_true: [ 3, 4 ] }",
        "{ kind: CONTROL_SEQUENCE_END fp32_false_true: [ 5, 6 ] }",
    ]
    made = parsed(f'control_input {{ name: "C" control [ {", ".join(kinds)} ] }}')
    check_sequences(made)
    (control,) = sequence_scheduling(made, tmp_path)["controls"]
    assert control == {"name": "C", "kind": "ready", "datatype": "BOOL", "false_true": [0.0, 1.0]}


def test_what_has_no_initial_state_begins_with_the_smallest_size(tmp_path: Path) -> None:
    made = parsed(STATE.replace(INITIAL, "").replace("dims: [ 2 ]", "dims: [ -1, 3 ]"))
    (state,) = sequence_scheduling(made, tmp_path)["states"]
    assert state["initial_dims"] == [1, 3]


def test_a_tensor_with_several_controls_says_the_last_kind(tmp_path: Path) -> None:
    several = (
        'control_input { name: "S" control [ '
        "{ kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] }, "
        "{ kind: CONTROL_SEQUENCE_START int32_false_true: [ 2, 3 ] }, { kind: 9 } ] }"
    )
    (control,) = sequence_scheduling(parsed(several), tmp_path)["controls"]
    assert control == {"name": "S", "kind": "ready", "datatype": "FP32", "false_true": [0.0, 1.0]}


def test_a_tensor_without_a_known_control_is_no_control(tmp_path: Path) -> None:
    made = parsed('control_input [ { name: "S" control { kind: 9 } }, { name: "T" } ]')
    assert sequence_scheduling(made, tmp_path)["controls"] == []
    assert control_names(made) == []


def test_the_first_of_states_that_share_an_input_or_an_output_counts(tmp_path: Path) -> None:
    first = STATE.replace("[ 2 ]", "[ 5 ]")
    other = STATE.replace('"OLD"', '"OTHER"'), STATE.replace('"NEW"', '"OTHER"')
    made = parsed(first + STATE + "".join(other))
    states = sequence_scheduling(made, tmp_path)["states"]
    assert [(state["input"], state["output"], state["dims"]) for state in states] == [("OLD", "NEW", [5])]
    assert state_input_names(made) == ["OLD"]
    assert [state.dims for state in hidden_state_outputs(made)] == [[5]]
