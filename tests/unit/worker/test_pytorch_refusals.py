"""Files and configurations of PyTorch that are not served: one error each that says what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.render import config_json
from alipes.worker.frameworks.opened import Opening
from alipes.worker.loading import LoadError

torch = pytest.importorskip("torch", reason="models of PyTorch need PyTorch")

from alipes.worker.frameworks.pytorch.program import open_model  # noqa: E402
from support.torch_models import (  # noqa: E402
    FACTORY,
    LINEAR,
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
    SCRIPT,
    X_TO_Y,
    Save,
    opener,
)

pytestmark = [pytest.mark.extra("torch"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., Any]:
    return opener(tmp_path)


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


def test_texts_do_not_go_into_tensors(opened: Any) -> None:
    with pytest.raises(LoadError, match="input 'INPUT__0' is TYPE_STRING, and argument 'input' of the model takes ten"):
        opened(SCRIPT, BATCHED + LINEAR.replace("FP32", "STRING", 1))
