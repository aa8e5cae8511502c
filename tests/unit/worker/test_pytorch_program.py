"""What the program for PyTorch makes of files: the module's own numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.render import config_json
from alipes.signature import Port
from alipes.worker.frameworks.opened import Opening
from alipes.worker.frameworks.runner import start_runner
from alipes.worker.loading import LoadError

torch = pytest.importorskip("torch", reason="models of PyTorch need PyTorch")

from support.torch_models import (  # noqa: E402
    FACTORY,
    LINEAR,
    Entries,
    Nested,
    Texts,
    Two,
    add,
    linear,
    ports,
    save_exported,
    save_script,
    to_file,
    weights,
)
from support.torch_programs import (  # noqa: E402
    BATCHED,
    CLASS,
    EXPORTED,
    ROWS,
    SCRIPT,
    TRACED,
    WRITTEN,
    X_TO_Y,
    Save,
    expected,
    opener,
)

pytestmark = [pytest.mark.extra("torch"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., Any]:
    return opener(tmp_path)


PROGRAM = "alipes.worker.frameworks.pytorch.program"


@pytest.mark.parametrize(
    ("save", "config", "x", "y"),
    [
        (SCRIPT, BATCHED + LINEAR, "INPUT__0", "OUTPUT__0"),
        (SCRIPT, ports({"input": "FP32 -1,3"}, {"y": "FP32 -1,2"}), "input", "y"),
        (EXPORTED, BATCHED + X_TO_Y, "input", "y"),
        (EXPORTED, BATCHED + ports({"X": "FP32 3"}, {"Y": "FP32 2"}), "X", "Y"),
        (weights(), BATCHED + X_TO_Y, "input", "y"),
        (weights(name="model.pt"), BATCHED + X_TO_Y, "input", "y"),
        (weights(CLASS), BATCHED + X_TO_Y, "input", "y"),
    ],
    ids=["script", "script-single", "exported", "exported-renamed", "safetensors", "state-dict", "class"],
)
def test_answers_are_the_modules_bits(opened: Any, save: Save, config: str, x: str, y: str) -> None:
    model = opened(save, config)
    for _ in range(3):  # the first batch is run on copies, and the executor of TorchScript profiles two
        assert np.array_equal(model.run({x: ROWS})[y], expected())


def test_a_script_that_does_not_fit_its_configuration_is_not_ready(tmp_path: Path) -> None:
    """A script does not say its shapes: only a run shows that they differ."""
    add(tmp_path, "m", SCRIPT)
    file = next(tmp_path.glob("m/1/*"))

    def start(columns: int, more: str = "") -> object:
        listed = BATCHED + ports({"INPUT__0": f"FP32 {columns}"}, {"OUTPUT__0": "FP32 2"}) + more
        config = json.loads(config_json(parse_pbtxt(listed, tmp_path)))
        return start_runner({"program": PROGRAM, "extra": "alipes[torch]"}, Opening("m", file, config))

    with pytest.raises(LoadError, match=r"it was opened, and answers no request of zeros: .*mat1 and mat2"):
        start(4)
    assert start(4, 'parameters { key: "TRIAL_REQUEST" value: { string_value: "false" } }') is not None
    assert start(3) is not None


@pytest.mark.parametrize("name", ["model.safetensors", "model.pt"])
def test_code_that_is_named_finds_the_weights_beside_it(opened: Any, name: str) -> None:
    model = opened(weights(name=name), BATCHED + X_TO_Y, named="model.py")
    assert np.array_equal(model.run({"input": ROWS})["y"], expected())


def test_weights_of_a_trainers_checkpoint_are_found(opened: Any) -> None:
    def save(folder: Path) -> None:
        (folder / "model.py").write_text(FACTORY)
        torch.save({"epoch": 3, "state_dict": linear().state_dict()}, folder / "model.pt")

    assert np.array_equal(opened(save, BATCHED + X_TO_Y, named="model.pt").run({"input": ROWS})["y"], expected())


def test_a_factory_may_need_no_weights(opened: Any) -> None:
    source = FACTORY.replace("    return", "    torch.manual_seed(0)\n    return")
    model = opened(weights(source, ""), BATCHED + X_TO_Y)
    assert np.array_equal(model.run({"input": ROWS})["y"], expected())


def test_a_pickled_module_is_served_where_it_is_allowed(opened: Any) -> None:
    save = to_file("model.pt", lambda path: torch.save(linear(), path))
    model = opened(save, BATCHED + LINEAR, allows_pickles=True)
    assert np.array_equal(model.run({"INPUT__0": ROWS})["OUTPUT__0"], expected())


@pytest.mark.parametrize(
    ("save", "config", "inputs", "outputs"),
    [
        (TRACED, "", [Port("input", "FP32", (-1, 3))], [Port("OUTPUT__0", "FP32", (-1, 2))]),
        (EXPORTED, "", [Port("input", "FP32", (-1, 3))], [Port("output_0", "FP32", (-1, 2))]),
        (
            save_exported(linear(), torch.zeros(2, 3), dynamic=False),
            "",
            [Port("input", "FP32", (2, 3))],
            [Port("output_0", "FP32", (2, 2))],
        ),
        (
            SCRIPT,
            BATCHED + ports({"input": "FP32 3"}, {}),
            [Port("input", "FP32", (-1, 3))],
            [Port("OUTPUT__0", "FP32", (-1, 2))],
        ),
        (
            save_script(torch.nn.Flatten(0), torch.zeros(2, 3)),
            "",
            [Port("input", "FP32", (2, 3))],
            [Port("OUTPUT__0", "FP32", (6,))],
        ),
        (
            save_script(Two(), torch.zeros(2, 3), torch.ones(2, 3)),
            "",
            [Port("left", "FP32", (-1, 3)), Port("right", "FP32", (-1, 3))],
            [Port("OUTPUT__0", "FP32", (-1, 3)), Port("OUTPUT__1", "INT64", (-1, 1))],
        ),
        (
            save_script(torch.nn.Embedding(5, 4), torch.ones(2, 7, dtype=torch.int64)),
            "",
            [Port("input", "INT64", (-1, 7))],
            [Port("OUTPUT__0", "FP32", (-1, 7, 4))],
        ),
        (
            save_script(torch.nn.Conv1d(2, 1, 5)),
            BATCHED + ports({"input": "FP32 2,-1"}, {}),
            [Port("input", "FP32", (-1, 2, -1))],
            [Port("OUTPUT__0", "FP32", (-1, 1, -1))],
        ),
    ],
    ids=["traced", "exported", "fixed", "half", "no-batch", "several", "whole-numbers", "open-axis"],
)
def test_files_say_what_they_know_of_tensors(
    opened: Any, save: Save, config: str, inputs: list[Port], outputs: list[Port]
) -> None:
    signature = opened(save, config).signature
    assert (list(signature.inputs), list(signature.outputs)) == (inputs, outputs)


@pytest.mark.parametrize("save", [save_script(Two()), save_exported(Two(), torch.zeros(2, 3), torch.zeros(2, 3))])
@pytest.mark.parametrize(("left", "right"), [("left", "right"), ("I__0", "I__1"), ("a", "b")])
def test_inputs_are_arguments_by_name_number_or_order(opened: Any, save: Save, left: str, right: str) -> None:
    names = (left, right) if left == "a" else (right, left)
    tensors = ports(dict.fromkeys(names, "FP32 3"), {"y": "FP32 3", "more": "INT64 1"})
    answer = opened(save, BATCHED + tensors).run({right: ROWS[:, ::-1].copy(), left: ROWS})
    assert np.array_equal(answer["y"], 2 * ROWS - ROWS[:, ::-1])
    assert np.array_equal(answer["more"], (ROWS[:, ::-1] < ROWS).sum(1, keepdims=True))


def test_shapes_that_a_program_does_not_take_are_refused_each_time(opened: Any) -> None:
    model = opened(EXPORTED, BATCHED + X_TO_Y)
    for rows in (ROWS, ROWS[:1], ROWS[:1], ROWS):
        assert np.array_equal(model.run({"input": rows})["y"], expected(rows))
        with pytest.raises(Exception, match="shape"):
            model.run({"input": np.zeros((2, 4), "f4")})


def test_the_tensors_of_a_program_may_nest(opened: Any) -> None:
    one = torch.zeros(2, 3)
    program = torch.export.export(Nested(), ((one, one + 1), 3), {"entries": {"a": one + 2}})
    model = opened(lambda folder: torch.export.save(program, str(folder / "model.pt2")))
    names = [port.name for port in model.signature.inputs]
    assert [port.name for port in model.signature.outputs] == ["sum", "rest"]
    answer = model._module(*(torch.from_numpy(ROWS + at) for at in range(len(names))))
    assert np.array_equal(answer["sum"], 3 * ROWS + (ROWS + 1))
    assert np.array_equal(answer["rest"], np.full((2, 3), 2, "f4"))


def test_an_optional_input_leaves_the_default_of_its_argument(opened: Any) -> None:
    tensors = ports({"right": "FP32 3 optional: true", "left": "FP32 3"}, {"y": "FP32 3"})
    model = opened(save_script(Two()), BATCHED + tensors)
    assert np.array_equal(model.run({"left": ROWS})["y"], 2 * ROWS)


def test_an_output_is_found_by_its_number(opened: Any) -> None:
    model = opened(save_script(Two()), BATCHED + ports({"left": "FP32 3"}, {"OUTPUT__1": "INT64 1"}))
    assert np.array_equal(model.run({"left": ROWS})["OUTPUT__1"], (ROWS > 0).sum(1, keepdims=True))


def test_texts_go_in_and_out(opened: Any) -> None:
    model = opened(save_script(Texts()), ports({"words": "STRING -1"}, {"n": "INT64 -1", "t": "STRING -1"}))
    words = np.array([b"one", "zw\u00f6lf".encode(), b""], object)
    answer = model.run({"words": words})
    assert answer["n"].tolist() == [3, 6, 0]
    assert answer["t"].tolist() == words.tolist()


def test_a_dictionary_goes_in_and_out(opened: Any) -> None:
    tensors = ports({"a": "FP32 3", "b": "FP32 3"}, {"difference": "FP32 3", "sum": "FP32 3"})
    answer = opened(save_script(Entries()), BATCHED + tensors).run({"a": ROWS, "b": ROWS[::-1].copy()})
    assert np.array_equal(answer["sum"], ROWS + ROWS[::-1])
    assert np.array_equal(answer["difference"], ROWS - ROWS[::-1])


def test_a_module_that_works_in_place_leaves_requests_alone(opened: Any) -> None:
    inplace = save_script(torch.nn.ReLU(inplace=True))
    model = opened(inplace, BATCHED + ports({"input": "FP32 3"}, {"y": "FP32 3"}))
    for _ in range(3):
        rows = ROWS.copy()
        assert np.array_equal(model.run({"input": rows})["y"], np.maximum(ROWS, 0))
        assert np.array_equal(rows, ROWS)


def test_views_of_requests_go_in_after_the_first_batch(opened: Any) -> None:
    tensors = ports({"input": "FP32 3"}, {"y": "FP32 3"})
    model = opened(save_script(torch.nn.Identity()), BATCHED + tensors)
    first, second = (model.run({"input": ROWS})["y"] for _ in range(2))
    assert not np.shares_memory(first, ROWS)
    assert np.shares_memory(second, ROWS)


def test_a_result_of_another_datatype_is_an_error(opened: Any) -> None:
    double = LINEAR.replace('"OUTPUT__0" data_type: TYPE_FP32', '"OUTPUT__0" data_type: TYPE_FP64')
    model = opened(SCRIPT, BATCHED + double)
    with pytest.raises(ValueError, match="output 'OUTPUT__0' of the model is FP32, its configuration says FP64"):
        model.run({"INPUT__0": ROWS})


class Within(torch.nn.Module):  # type: ignore[misc]
    """Results within results."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        return x, (2 * x, 3 * x)


@pytest.mark.parametrize("names", [("a", "b", "c"), ("OUTPUT__0", "OUTPUT__1", "OUTPUT__2")])
@pytest.mark.parametrize("exports", [False, True], ids=["script", "exported"])
def test_results_within_results_are_outputs(opened: Any, exports: bool, names: tuple[str, str, str]) -> None:
    save = save_exported(Within(), torch.ones(2, 1)) if exports else save_script(Within())
    config = ports({"x": "FP32 1"}, dict.fromkeys(names, "FP32 1"))
    found = opened(save, BATCHED + config).run({"x": np.ones((1, 1), "f4")})
    assert [found[name].item() for name in names] == [1, 2, 3]


def test_a_file_names_results_within_results_by_their_paths(opened: Any) -> None:
    signature = opened(WRITTEN).signature
    assert [port.name for port in signature.inputs] == ["start", "total", "x"]
    assert [port.name for port in signature.outputs] == ["RESULT[sum]", "RESULT[pair][0]", "RESULT[pair][1]"]
