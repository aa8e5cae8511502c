"""Modules of PyTorch that are compiled, at the load or before."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.worker.loading import LoadError

torch = pytest.importorskip("torch", reason="models of PyTorch need PyTorch")

from support.torch_models import (  # noqa: E402
    LINEAR,
    Stepped,
    Total,
    linear,
    ports,
    weights,
)
from support.torch_programs import (  # noqa: E402
    BATCHED,
    BY_NUMBER,
    BY_PATH,
    EXPORTED,
    ROWS,
    SCRIPT,
    X_TO_Y,
    Save,
    check_steps,
    expected,
    opener,
    parameter,
)

pytestmark = [pytest.mark.extra("torch"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., Any]:
    return opener(tmp_path)


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
