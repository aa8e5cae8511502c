"""What the program for PyTorch makes of files: the module's own numbers, or one error that says what to do."""

from __future__ import annotations

import json
import shutil
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

from alipes.worker.frameworks.pytorch.program import open_model  # noqa: E402
from support.torch_models import (  # noqa: E402
    FACTORY,
    LINEAR,
    Counted,
    Entries,
    Nested,
    Replaced,
    Stepped,
    Texts,
    Total,
    Two,
    add,
    linear,
    ports,
    save_exported,
    save_script,
    to_file,
    weights,
)

pytestmark = [pytest.mark.extra("torch"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]

ROWS = np.array([[1, 2, 3], [-1, 0.5, 4]], "f4")
BATCHED = "max_batch_size: 8\n"
PROGRAM = "alipes.worker.frameworks.pytorch.program"
X_TO_Y = ports({"input": "FP32 3"}, {"y": "FP32 2"})
CLASS = (
    "import torch\nclass Net(torch.nn.Sequential):\n"
    "    def __init__(self):\n        super().__init__(torch.nn.Linear(3, 2), torch.nn.ReLU())\n"
)
Save = Callable[[Path], object]


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., Any]:
    """Opens a model: ``opened(save, config)``."""

    def open_it(save: Save, config: str = "", *, allows_pickles: bool = False, named: str = "") -> Any:
        folder = tmp_path / "m" / "1"
        if not folder.exists():  # a test may open twice what it wrote once
            add(tmp_path, "m", save)
        file = folder / named if named else next(one for one in sorted(folder.iterdir(), reverse=True))
        made = json.loads(config_json(parse_pbtxt(config, tmp_path)))
        return open_model(Opening("m", file, made, allows_pickles=allows_pickles))

    return open_it


def expected(rows: np.ndarray = ROWS) -> Any:
    with torch.no_grad():
        return linear()(torch.from_numpy(rows)).numpy()


SCRIPT, TRACED = save_script(linear()), save_script(linear(), torch.zeros(2, 3))
EXPORTED = save_exported(linear(), torch.zeros(2, 3))


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


@pytest.mark.parametrize(
    "key",
    [
        "INFERENCE_MODE",
        "DISABLE_OPTIMIZED_EXECUTION",
        "ENABLE_TENSOR_FUSER",
        "ENABLE_JIT_PROFILING",
        "ENABLE_WEIGHT_SHARING",
    ],
)
@pytest.mark.parametrize("value", ["true", "false"])
def test_parameters_leave_the_numbers_as_they_are(opened: Any, key: str, value: str) -> None:
    model = opened(SCRIPT, BATCHED + LINEAR + parameter(key, value))
    for _ in range(3):
        assert np.array_equal(model.run({"INPUT__0": ROWS})["OUTPUT__0"], expected())


def test_threads_are_the_parameters_then_the_instances_share(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    try:
        opened(SCRIPT, BATCHED + LINEAR)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("more", "adapts"),
    [
        ("", True),
        ("INTRA_OP_THREAD_COUNT", False),
        ("NUM_THREADS", False),
    ],
)
def test_executions_differ_in_threads_where_no_parameter_says_how_many(opened: Any, more: str, adapts: bool) -> None:
    before = torch.get_num_threads()
    try:
        model = opened(SCRIPT, BATCHED + LINEAR + (parameter(more, "2") if more else ""))
        assert model.adapts_threads == adapts
        model.set_threads(1)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def parameter(key: str, value: str) -> str:
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'


def cut(save: Save, by: int = 200) -> Save:
    def write(folder: Path) -> None:
        save(folder)
        for file in folder.glob("model.*"):
            file.write_bytes(file.read_bytes()[:-by])

    return write


def newer(folder: Path) -> None:
    """TorchScript of a format that is yet to come."""
    import zipfile

    SCRIPT(folder)
    with zipfile.ZipFile(folder / "model.pt") as old:
        records = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(folder / "model.pt", "w") as made:
        for name, content in records.items():
            made.writestr(name, b"999\n" if name.endswith("/version") else content)


class Opens:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


PICKLED = to_file("model.pt", lambda path: torch.save(linear(), path))
LONELY = to_file("model.pt", lambda path: torch.save(linear().state_dict(), path))


SOURCES = {
    "def make():\n    raise ValueError('no such size')\n": "model.py cannot make the module: ValueError: no such size",
    "def make():\n    return 7\n": "make() of model.py gave a int, expected a torch.nn.Module",
    "import torch\n": "has no function make(), and no class derived from torch.nn.Module",
    f"{CLASS}class Other(Net):\n    pass\n": "has no function make(), and 2 classes (Net, Other)",
    "import nowhere_to_be_found\n": "No module named 'nowhere_to_be_found'",
    FACTORY.replace("(3, 2)", "(4, 2)"): "model.safetensors does not fit the module that model.py makes",
}


@pytest.mark.parametrize(("source", "words"), SOURCES.items())
def test_a_factory_that_makes_no_such_module_says_why(opened: Any, source: str, words: str) -> None:
    with pytest.raises(LoadError) as caught:
        opened(weights(source), BATCHED + LINEAR)
    assert words in str(caught.value)


NONE = to_file("model.pt", lambda path: Path(path).write_text("none"))
FOLDER = to_file("model.pt", lambda path: Path(path).mkdir())
FIXED = save_exported(linear(), torch.zeros(2, 3), dynamic=False)
FILES = {
    "pickled": (PICKLED, "start the server with --allow-pickles=m"),
    "cut-script": (cut(SCRIPT), "it is no whole file of PyTorch"),
    "cut-export": (cut(EXPORTED), "the framework cannot read it (RuntimeError: PytorchStreamReader failed"),
    "cut-safetensors": (cut(weights(), 10), "the framework cannot read it (SafetensorError"),
    "newer": (newer, "999"),
    "text": (NONE, "it is no whole file of PyTorch"),
    "folder": (FOLDER, "it is a folder, expected a file"),
    "lonely": (LONELY, "it holds weights alone: put a model.py beside it"),
    "fixed": (FIXED, "axis 0 of 'INPUT__0' has the fixed size 2"),
}


@pytest.mark.parametrize(("save", "words"), FILES.values(), ids=FILES)
def test_a_file_that_cannot_be_opened_says_why(opened: Any, save: Save, words: str) -> None:
    with pytest.raises(LoadError) as caught:
        opened(save, BATCHED + LINEAR)
    assert words in str(caught.value)


CONFIGS = {
    "": "each with name, data_type and dims: the arguments of its forward are input",
    ports({"input": "FP32 -1,3"}, {}): "lists inputs and no outputs: list these, too",
    BATCHED + ports({"input": "FP32 4"}, {}): "on zeros the model raises RuntimeError",
    LINEAR + ports({"INPUT__1": "FP32 3"}, {}): "has 2 inputs (INPUT__0, INPUT__1), the model's forward takes 1: input",
    LINEAR.replace("OUTPUT__0", "OUTPUT__1"): "has output 'OUTPUT__1', the model's forward gives 1 result",
    LINEAR.replace("FP32", "BF16"): "is BF16, which requests cannot carry here",
}


@pytest.mark.parametrize(("config", "words"), CONFIGS.items())
def test_a_configuration_that_does_not_fit_says_why(opened: Any, config: str, words: str) -> None:
    with pytest.raises(LoadError) as caught:
        opened(SCRIPT, config)
    assert words in str(caught.value)


def test_an_argument_without_an_input_is_named(opened: Any) -> None:
    with pytest.raises(LoadError, match="the model's forward needs 'input2'"):
        opened(save_script(torch.nn.Bilinear(3, 3, 2)), BATCHED + LINEAR)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("INFERENCE_MODE", "maybe", "INFERENCE_MODE of model 'm' must be true or false, got 'maybe'"),
        ("INTRA_OP_THREAD_COUNT", "none", "INTRA_OP_THREAD_COUNT of model 'm' must be a number"),
        ("TORCH_COMPILE_OPTIONAL_PARAMETERS", "[]", "must be a JSON object with what torch.compile takes"),
    ],
)
def test_a_parameter_that_cannot_be_read_is_named(opened: Any, key: str, value: str, words: str) -> None:
    with pytest.raises(LoadError, match=words):
        opened(SCRIPT, BATCHED + LINEAR + parameter(key, value))


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"ctorch.gone\nNet\n.", "another release of torch wrote it, with a module 'torch.gone' that the installed"),
        (b"ctorch.nn\nGone\n.", f"the installed torch {torch.__version__} does not read what another release wrote"),
        (b"cpackage_of_tomorrow\nNet\n.", "is of the package 'package_of_tomorrow', which is not installed"),
    ],
)
def test_a_pickle_of_another_release_is_named_as_such(opened: Any, document: bytes, words: str) -> None:
    save = to_file("model.pt", lambda path: Path(path).write_bytes(b"\x80\x02" + document))
    with pytest.raises(LoadError) as refused:
        opened(save, BATCHED + X_TO_Y, allows_pickles=True)
    assert words in str(refused.value)
    assert "as TorchScript or as ONNX" in str(refused.value) or "package_of_tomorrow" in words


def test_no_file_runs_code_that_is_not_allowed(opened: Any, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with pytest.raises(LoadError, match="allow-pickles=m"):
        opened(to_file("model.pt", lambda path: torch.save({"w": Opens(mark)}, path)), BATCHED + LINEAR)
    assert not mark.exists()


def test_a_gpu_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    folder = add(tmp_path, "m", SCRIPT)
    config = json.loads(config_json(parse_pbtxt(BATCHED + LINEAR, tmp_path)))
    with pytest.raises(LoadError, match=r"it is to run on cuda:0, and PyTorch .* finds no GPU here"):
        open_model(Opening("m", folder / "model.pt", config, device="cuda:0"))


COMPILES = shutil.which("g++") is not None


@pytest.fixture
def one_distutils(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps setuptools, which the compiler imports, from replacing a module that other tests have imported."""
    monkeypatch.setenv("SETUPTOOLS_USE_DISTUTILS", "stdlib")


@pytest.mark.proof
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")  # PyTorch's compiler calls what it advises others not to
@pytest.mark.usefixtures("one_distutils")
@pytest.mark.skipif(not COMPILES, reason="torch.compile needs a C++ compiler")
@pytest.mark.parametrize("save", [weights(), EXPORTED], ids=["factory", "exported"])
def test_a_compiled_model_gives_the_modules_numbers(opened: Any, save: Save) -> None:
    model = opened(save, BATCHED + X_TO_Y + parameter("TORCH_COMPILE_OPTIONAL_PARAMETERS", "{}"))
    for rows in (ROWS, ROWS[:1], np.tile(ROWS, (3, 1))):
        np.testing.assert_allclose(model.run({"input": rows})["y"], expected(rows), rtol=1e-6, atol=1e-6)


ONE = ports({"x": "FP32 1"}, {"y": "FP32 1"})
TOTAL_FACTORY = """
import torch

class Total(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.total = torch.zeros(1, 1)

    def forward(self, x):
        self.total += x
        return self.total
"""


@pytest.mark.parametrize(
    "save",
    [
        save_script(Total()),
        save_script(Total(), torch.ones(1, 1)),
        save_script(Replaced()),
        save_exported(Total(), torch.ones(1, 1), dynamic=False),
        lambda folder: (folder / "model.py").write_text(TOTAL_FACTORY),
    ],
    ids=["scripted", "traced", "replaced", "exported", "factory"],
)
def test_a_module_that_keeps_a_state_has_one_for_each_sequence(opened: Any, save: Save) -> None:
    model = opened(save, ONE)
    assert model.hidden == "the model writes to total"
    states: dict[int, Any] = {}
    answers = []
    for sequence, value in [(1, 4), (2, 4), (1, 1), (2, 2), (1, 3)]:
        found, states[sequence] = model.step({"x": np.full((1, 1), value, "f4")}, states.get(sequence))
        answers.append(found["y"])
    begins = answers[0].item() - 4  # what the tracer has added up before the file was written
    assert [answer.item() - begins for answer in answers] == [4, 4, 5, 6, 8]


@pytest.mark.parametrize(
    "save",
    [
        save_script(Counted()),
        save_script(Counted(), torch.ones(1, 1)),
        save_script(torch.nn.BatchNorm1d(1)),
        save_script(torch.nn.Dropout()),
    ],
    ids=["scripted", "traced", "statistics", "chance"],
)
def test_a_module_that_answers_by_its_inputs_alone_has_no_state(opened: Any, save: Save) -> None:
    assert opened(save, BATCHED + ONE).hidden == ""


START = 'control_input [{ name: "%s" control [{ kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] }] }]'
STATE = 'state [{ input_name: "%s" output_name: "%s" data_type: TYPE_%s dims: [1] }]'


def stepped(start: str, before: str, after: str, x: str, total: str, kind: str = "INT32") -> str:
    """A configuration of `Stepped` under these names."""
    states = f"sequence_batching {{ {START % start} {STATE % (before, after, kind)} }}\n"
    return BATCHED + ports({x: "FP32 1"}, {total: "FP32 1"}) + states


WRITTEN = save_exported(
    Stepped(), *(torch.ones(2, 1, dtype=kind) for kind in (torch.int32, torch.int32, torch.float32))
)
BY_NUMBER = stepped("START__0", "TOTAL__1", "TOTAL__1", "INPUT__2", "OUTPUT__0")
BY_NAME = stepped("start", "total", "RESULT[pair][0]", "x", "RESULT[sum]")
BY_PATH = stepped("ARGS[0]", "ARGS[1]", "RESULT[pair][0]", "ARGS[2]", "RESULT[sum]")


@pytest.mark.parametrize(
    ("save", "config"),
    [(WRITTEN, BY_NUMBER), (WRITTEN, BY_NAME), (WRITTEN, BY_PATH), (WRITTEN, BY_PATH.replace("ARGS[2]", "KWARGSx"))],
    ids=["exported-number", "exported-name", "exported-path", "exported-keyword"],
)
def test_controls_and_states_go_where_their_names_say(opened: Any, save: Save, config: str) -> None:
    check_steps(opened(save, config), config)


def check_steps(model: Any, config: str) -> None:
    """One step that begins a sequence, and one that goes on."""
    made = json.loads(config_json(parse_pbtxt(config, Path())))
    [control], [state] = made["sequence_batching"]["control_input"], made["sequence_batching"]["state"]
    x, total = made["input"][0]["name"], made["output"][0]["name"]
    for begins, expected_total in ((1, 2), (0, 5)):
        values = {x: np.full((1, 1), 2, "f4"), control["name"]: np.full((1, 1), begins, "i4")}
        values[state["input_name"]] = np.full((1, 1), 3, "i4")
        found = model.run(values)
        assert (found[state["output_name"]].tolist(), found[total].tolist()) == (
            [[expected_total]],
            [[100 + expected_total]],
        )


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (stepped("START", "TOTAL__1", "TOTAL__1", "INPUT__2", "OUTPUT__0"), "which argument 'START' is cannot be told"),
        (stepped("START__0", "OLD", "NEW__1", "INPUT__2", "OUTPUT__0"), "which argument 'OLD' is cannot be told"),
        (stepped("start", "total", "RESULT[pair][0]", "x", "RESULT[sum]", "STRING"), "input 'total' is TYPE_STRING"),
    ],
)
def test_controls_and_states_that_cannot_be_passed_are_refused(opened: Any, config: str, words: str) -> None:
    with pytest.raises(LoadError) as failure:
        opened(WRITTEN, config)
    assert words in str(failure.value)


def test_names_that_contradict_their_order_are_refused(opened: Any) -> None:
    with pytest.raises(LoadError, match="which argument 'b' is cannot be told"):
        opened(save_script(Two()), BATCHED + ports({"INPUT__1": "FP32 3", "b": "FP32 3"}, {"y": "FP32 3"}))


def test_texts_do_not_go_into_tensors(opened: Any) -> None:
    with pytest.raises(LoadError, match="input 'INPUT__0' is TYPE_STRING, and argument 'input' of the model takes ten"):
        opened(SCRIPT, BATCHED + LINEAR.replace("FP32", "STRING", 1))


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


def test_torchscript_is_not_compiled(opened: Any) -> None:
    with pytest.raises(LoadError, match=r"it is TorchScript, which torch.compile does not take"):
        opened(SCRIPT, BATCHED + LINEAR + parameter("TORCH_COMPILE_OPTIONAL_PARAMETERS", "{}"))


def test_compilation_is_turned_off_by_its_own_parameter(opened: Any) -> None:
    off = parameter("TORCH_COMPILE_OPTIONAL_PARAMETERS", '{\\"disable\\": true, \\"mode\\": \\"no such mode\\"}')
    assert np.array_equal(opened(weights(), BATCHED + X_TO_Y + off).run({"input": ROWS})["y"], expected())


@pytest.mark.proof
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")  # PyTorch's compiler calls what it advises others not to
@pytest.mark.usefixtures("one_distutils")
@pytest.mark.skipif(not COMPILES, reason="AOTInductor needs a C++ compiler")
def test_machine_code_is_run_where_it_is_allowed(opened: Any) -> None:
    def save(folder: Path) -> None:
        shapes = ({0: torch.export.Dim("rows", min=1, max=64)},)
        program = torch.export.export(linear(), (torch.zeros(2, 3),), dynamic_shapes=shapes)
        torch._inductor.aoti_compile_and_package(program, package_path=str(folder / "model.pt2"))

    with pytest.raises(LoadError, match=r"it holds compiled code, .*--allow-pickles=m"):
        opened(save, BATCHED + LINEAR)
    model = opened(save, BATCHED + LINEAR, allows_pickles=True)
    np.testing.assert_allclose(model.run({"INPUT__0": ROWS})["OUTPUT__0"], expected(), rtol=1e-6, atol=1e-6)


@pytest.mark.proof
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")  # PyTorch's compiler calls what it advises others not to
@pytest.mark.usefixtures("one_distutils")
@pytest.mark.skipif(not COMPILES, reason="AOTInductor needs a C++ compiler")
def test_machine_code_gets_what_the_names_say_in_its_datatypes(opened: Any) -> None:
    def save(folder: Path) -> None:
        kinds, rows = (torch.int32, torch.int32, torch.float32), torch.export.Dim("rows", min=1, max=64)
        start, total, x = (torch.ones(2, 1, dtype=kind) for kind in kinds)
        shapes = {name: {0: rows} for name in ("start", "total", "x")}
        program = torch.export.export(Stepped(), (start, total), kwargs={"x": x}, dynamic_shapes=shapes)
        torch._inductor.aoti_compile_and_package(program, package_path=str(folder / "model.pt2"))

    for config in (BY_NUMBER, BY_PATH.replace("ARGS[2]", "KWARGSx"), BY_PATH.replace("ARGS[2]", "x")):
        check_steps(opened(save, config, allows_pickles=True), config)
    with pytest.raises(LoadError, match="which argument 'START' is cannot be told"):
        opened(save, BY_NUMBER.replace("START__0", "START"), allows_pickles=True)
    floats = ports({"INPUT__2": "FP32 1", "A__0": "INT32 1", "B__1": "FP32 1"}, {"OUTPUT__0": "FP32 1"})
    with pytest.raises(LoadError, match=r"input 'B__1' is FP32 in the configuration, and INT32 in the code"):
        opened(save, BATCHED + floats, allows_pickles=True)
    wide = BY_NUMBER.replace('"INPUT__2" data_type: TYPE_FP32 dims: [1]', '"INPUT__2" data_type: TYPE_FP32 dims: [2]')
    with pytest.raises(
        LoadError, match=r"input 'INPUT__2' has shape \[-1, 2\] in .*, and size 1 on axis 1 in the code"
    ):
        opened(save, wide, allows_pickles=True)
    with pytest.raises(LoadError, match=r"the model's forward needs 'x'"):
        opened(save, BATCHED + ports({"A__0": "INT32 1", "B__1": "INT32 1"}, {"y": "FP32 1"}), allows_pickles=True)


@pytest.mark.proof
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("one_distutils")
@pytest.mark.skipif(not COMPILES, reason="AOTInductor needs a C++ compiler")
def test_machine_code_that_keeps_a_state_is_refused(opened: Any) -> None:
    def save(folder: Path) -> None:
        program = torch.export.export(Total(), (torch.ones(1, 1),))
        torch._inductor.aoti_compile_and_package(program, package_path=str(folder / "model.pt2"))

    with pytest.raises(LoadError, match="it keeps a state from one call to the next"):
        opened(save, ports({"INPUT__0": "FP32 1,1"}, {"OUTPUT__0": "FP32 1,1"}), allows_pickles=True)
