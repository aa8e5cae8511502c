"""What models of sequences get beside their inputs: controls of any kind, and states of any datatype."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.python_models import add_python_model
from support.sequence_callers import Caller

Call = Callable[[], Caller]

DATATYPES = (
    *("BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64"),
    *("FP16", "FP32", "FP64", "STRING"),
)

CONTROLS = """
max_batch_size: 2
sequence_batching {
    control_input [
        { name: "WIDE" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } },
        { name: "SEVERAL" control [
            { kind: CONTROL_SEQUENCE_END fp32_false_true: [ 0, 1 ] },
            { kind: CONTROL_SEQUENCE_START int32_false_true: [ 3, 4 ] }
        ] }
    ]
}
"""
SHOWS_CONTROLS = """
class TritonPythonModel:
    def execute(self, requests):
        names = ("WIDE", "SEVERAL")
        return [answer(SEEN=np.array([[float(given(r, name).flat[0]) for name in names]])) for r in requests]
"""

# Shows the sizes of what it is given, and how much of it is zero or an empty text.
SHOWS_STATES = """
class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            states = {t.name(): t.as_numpy() for t in request.inputs() if t.name().startswith("S_")}
            zeros = {name: int(sum(not one for one in state.flat)) for name, state in states.items()}
            shown = sorted(f"{name} {states[name].shape} {zeros[name]}" for name in states)
            answers.append(answer(SEEN=np.array(shown, object)))
        return answers
"""


def test_a_text_id_is_its_length_and_first_letters_in_a_number(repository: Path, call: Call) -> None:
    add_python_model(repository, "shows", SHOWS_CONTROLS, signature="X: INT32[1] -> SEEN: FP64[2]", config=CONTROLS)
    one = call()
    number = int.from_bytes(b"\x05\0\0\0alph", "little")
    assert one.step("shows", "alpha", {"X": [[1]]}, start=True)["SEEN"] == [[float(number), 0.0]]
    assert one.step("shows", "alpha", {"X": [[1]]}, end=True)["SEEN"] == [[float(number), 1.0]]


@pytest.mark.parametrize("batch", [0, 2])
def test_states_of_every_datatype_and_size_begin_with_zeros(repository: Path, call: Call, batch: int) -> None:
    sizes = [(name, "2, 3", "2, 3") for name in DATATYPES] + [
        ("INT8", "", ""),
        ("INT16", "-1", "0"),
        ("FP32", "0", "0"),
    ]
    states = ", ".join(
        f'{{ input_name: "S_{at:02}" output_name: "T_{at:02}" data_type: TYPE_{name} dims: [ {size} ] '
        f'initial_state {{ zero_data: true dims: [ {initial} ] data_type: TYPE_{name} name: "i" }} }}'
        for at, (name, size, initial) in enumerate(sizes)
    )
    config = f"max_batch_size: {batch} sequence_batching {{ state [ {states} ] }}"
    add_python_model(repository, "shows", SHOWS_STATES, signature="X: INT32[1] -> SEEN: STRING[-1]", config=config)
    value = [[1]] if batch else [1]
    seen = call().step("shows", 7, {"X": value}, start=True)["SEEN"]
    front = [1] if batch else []
    expected = [[*front, 2, 3]] * len(DATATYPES) + [front, [*front, 0], [*front, 0]]
    assert [text.decode() for text in seen] == [
        f"S_{at:02} {tuple(shape)} {6 if at < len(DATATYPES) else 0 if 0 in shape else 1}"
        for at, shape in enumerate(expected)
    ]
