"""Traces that differ from their model: found whatever the sample was, told with their cause, warned of for hermes."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alipes import repository as qv
from alipes.errors import ExportError

torch = pytest.importorskip("torch", reason="exports of PyTorch models need PyTorch")

pytestmark = [
    pytest.mark.extra("torch"),
    # Tracing is on its way out of torch, not out of people's scripts.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

COLUMNS = 6


class Module(torch.nn.Module):  # type: ignore[misc]
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, x: Any) -> Any:
        return self._function(x)


class Pair(torch.nn.Module):  # type: ignore[misc]
    """Branches on which of its inputs is the larger one."""

    def forward(self, left: Any, right: Any) -> Any:
        return left if left.abs().sum() > right.abs().sum() else right


# Each is right for the sample that it is traced with, and wrong for others.
DEPENDENT: dict[str, Callable[[Any], Any]] = {
    "sign of a sum": lambda x: 2 * x if x.sum() > 0 else -x,
    "sign of one number": lambda x: 2 * x if float(x[0, 0]) > 0 else x,
    "all are positive": lambda x: 2 * x if (x > 0).all() else x,
    "any is large": lambda x: x / x.abs().max() if x.abs().max() > 1000 else x,
    "all are small": lambda x: x * 1e6 if x.abs().max() < 0.01 else x,
    "nothing but zeros": lambda x: x if x.any() else x + 1,
    "a number that was read out": lambda x: x / (1 + float(x.std())),
    "rows compared": lambda x: x if x[0].mean() > x[-1].mean() else 3 * x,
}


def traced(folder: Path, platform: qv.Platform) -> tuple[qv.Model, dict[str, Any]]:
    """A model to export to, and the options that trace."""
    model = qv.ModelRepository(folder).add("m", platform)
    return model, {"dynamo": False} if platform is qv.Platform.ONNX else {}


def refusal(model: qv.Model, module: Any, **options: Any) -> str:
    """Why an export is refused, of which nothing is left."""
    options = {"input_shapes": {"x": (None, COLUMNS)}, **options}
    with pytest.raises(ExportError) as caught:
        model.export_version(module, **options)
    assert (model.versions, model.inputs) == ([], {})
    return str(caught.value)


@pytest.mark.parametrize("platform", [qv.Platform.ONNX, qv.Platform.TORCHSCRIPT], ids=lambda one: one.name)
@pytest.mark.parametrize("depends", DEPENDENT)
def test_a_trace_that_depends_on_its_sample_is_refused(tmp_path: Path, platform: qv.Platform, depends: str) -> None:
    model, options = traced(tmp_path, platform)
    text = refusal(model, Module(DEPENDENT[depends]), **options)
    assert "export of model 'm': the trace depends on its input" in text
    assert "torch.where" in text


def test_dependence_on_the_sample_is_found_in_20_of_20_runs(tmp_path: Path) -> None:
    repository = qv.ModelRepository(tmp_path)
    refused = 0
    for seed in range(20):
        torch.manual_seed(seed)
        weights, threshold = torch.randn(COLUMNS), float(torch.randn(()))

        def either(x: Any, weights: Any = weights, threshold: float = threshold) -> Any:
            return torch.tanh(x) if (x @ weights).sum() > threshold else torch.sigmoid(x)

        model = repository.add(f"m{seed}", qv.Platform.TORCHSCRIPT)
        try:
            model.export_version(Module(either), input_shapes={"x": (None, COLUMNS)})
        except ExportError as error:
            refused += "the trace depends on its input" in str(error)
    assert refused == 20


@pytest.mark.parametrize(
    ("platform", "told"),
    [
        (qv.Platform.ONNX, "has no input '(left|right)', since forward does not use it, or not for the sample"),
        (qv.Platform.TORCHSCRIPT, "the trace depends on its input"),
    ],
)
def test_a_branch_between_inputs_is_found(tmp_path: Path, platform: qv.Platform, told: str) -> None:
    model, options = traced(tmp_path, platform)
    shapes = {"left": (None, 3), "right": (None, 3)}
    assert re.search(told, refusal(model, Pair(), input_shapes=shapes, **options))


class Lookup(torch.nn.Module):  # type: ignore[misc]
    """Takes numbers below nine."""

    def __init__(self, branches: bool) -> None:
        super().__init__()
        self._table = torch.nn.Embedding(9, 3)
        self._branches = branches

    def forward(self, x: Any) -> Any:
        return -self._table(x) if self._branches and int(x[0, 0]) > 5 else self._table(x)


def test_indices_of_an_example_are_exchanged_among_themselves(tmp_path: Path) -> None:
    model, _ = traced(tmp_path, qv.Platform.TORCHSCRIPT)
    how = {"examples": {"x": torch.tensor([[8, 0]])}, "input_shapes": None}
    assert "the trace depends on its input" in refusal(model, Lookup(branches=True), **how)
    model.export_version(Lookup(branches=False), **how)
    assert model.versions == [1]


class Table(torch.nn.Module):  # type: ignore[misc]
    """Knows a few numbers, and tells which it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[int] = set()

    def forward(self, ids: Any, scale: Any) -> Any:
        if not torch.jit.is_tracing():
            self.asked |= set(ids.flatten().tolist())
        return ids.to(torch.float32) * scale


def test_whole_numbers_only_change_places(tmp_path: Path) -> None:
    model, _ = traced(tmp_path, qv.Platform.TORCHSCRIPT)
    table = Table()
    examples = {"ids": torch.tensor([[101, 205, 307]]), "scale": torch.tensor([[0.5, -1.5, 2.5]])}
    model.export_version(table, examples=examples)
    assert table.asked == {101, 205, 307}


@pytest.mark.parametrize("rows", [1, 3])
def test_dependence_on_the_batch_is_no_dependence_on_numbers(tmp_path: Path, rows: int) -> None:
    model, options = traced(tmp_path, qv.Platform.ONNX)
    text = refusal(model, Module(lambda x: x * 2 if len(x) == rows else x), **options)
    assert "the trace depends on the size of its input" in text
    assert f"an input of shape [{rows}, {COLUMNS}]" in text


def test_a_trace_that_differs_from_eager_names_the_difference(tmp_path: Path) -> None:
    def whiten(x: Any) -> Any:
        spectrum = torch.fft.rfft(x - x.mean(-1, keepdim=True))
        white = torch.fft.irfft(spectrum / spectrum.abs().clamp(min=1e-3), n=x.shape[-1])
        return white + (0.125 if torch.jit.is_tracing() else 0.0)

    model, _ = traced(tmp_path, qv.Platform.TORCHSCRIPT)
    text = refusal(model, Module(whiten), output_names=["white"])
    assert "the trace differs from eager by 0.125 at output 'white', on the sample that it was made with" in text
    assert "random" not in text


@pytest.mark.parametrize("how", [torch.rand_like, torch.nn.functional.dropout], ids=["noise", "dropout"])
def test_a_random_model_is_named_as_the_cause(tmp_path: Path, how: Callable[[Any], Any]) -> None:
    model, _ = traced(tmp_path, qv.Platform.TORCHSCRIPT)
    text = refusal(model, Module(how), output_names=["y"])
    assert "the model itself is random: two calls on the same input differ by " in text
    assert "at output 'y'" in text


def test_what_a_model_makes_of_rounding_is_no_difference(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Engines add in orders of their own; what follows from the last digit of a sum is nobody's fault."""

    def steep(x: Any) -> Any:
        return torch.sin(1e6 * x.sum(-1))

    model, options = traced(tmp_path, qv.Platform.ONNX)
    with caplog.at_level("INFO"):
        model.export_version(Module(steep), input_shapes={"x": (None, 4096)}, **options)
    assert model.versions == [1]
    assert "no more than the effect of rounding on the model" in caplog.text


def test_inputs_that_the_model_itself_refuses_are_left_out(tmp_path: Path) -> None:
    def strict(x: Any) -> Any:
        if not torch.jit.is_tracing() and (x.abs().max() > 100 or not x.any() or len(x) == 1):
            raise ValueError("out of range")
        return x.log()

    model, options = traced(tmp_path, qv.Platform.ONNX)
    model.export_version(Module(strict), input_shapes={"x": (None, COLUMNS)}, **options)
    assert model.versions == [1]


def test_a_batch_of_one_may_lose_its_axis(tmp_path: Path) -> None:
    """A model that squeezes gives a number for one row; the file gives a row of one number."""
    model, options = traced(tmp_path, qv.Platform.ONNX)
    module = torch.nn.Sequential(torch.nn.Linear(COLUMNS, 1), Module(lambda x: x.squeeze()))
    model.export_version(module, input_shapes={"x": (None, COLUMNS)}, **options)
    assert model.versions == [1]


def test_complex_numbers_are_refused_with_what_to_do(tmp_path: Path) -> None:
    for platform in (qv.Platform.ONNX, qv.Platform.TORCHSCRIPT):
        model, options = traced(tmp_path / platform.name, platform)
        text = refusal(model, Module(torch.fft.rfft), output_names=["spectrum"], **options)
        assert "output 'spectrum': complex64 has no datatype in the protocol" in text
        assert "return real and imaginary parts" in text
        model.export_version(
            Module(lambda x: torch.view_as_real(torch.fft.rfft(x)) if platform is qv.Platform.TORCHSCRIPT else x),  # noqa: B023
            input_shapes={"x": (None, COLUMNS)},
            **options,
        )
    model, _ = traced(tmp_path / "input", qv.Platform.TORCHSCRIPT)
    with pytest.raises(ValueError, match="complex128 has no datatype in the protocol"):
        model.export_version(torch.nn.Identity(), examples={"input": torch.zeros(2, 4, dtype=torch.complex128)})


def test_complex_weights_are_named_where_they_cannot_be_written(tmp_path: Path) -> None:
    class Turned(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.phase = torch.nn.Parameter(torch.ones(COLUMNS, dtype=torch.complex64))

        def forward(self, x: Any) -> Any:
            return torch.view_as_real(x * self.phase)[..., 0]

    model, options = traced(tmp_path, qv.Platform.ONNX)
    text = refusal(model, Turned(), **options)
    assert "its 'phase' is torch.complex64, which the tracing exporter cannot write" in text
    assert "real and imaginary parts" in text


def test_samples_leave_the_generator_of_the_user_alone(tmp_path: Path) -> None:
    model, options = traced(tmp_path, qv.Platform.ONNX)
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    model.export_version(torch.nn.Identity(), input_shapes={"x": (None, COLUMNS)}, **options)
    assert torch.equal(torch.rand(4), expected)


def test_a_difference_is_published_with_a_warning_on_request(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model, options = traced(tmp_path, qv.Platform.ONNX)
    module = Module(DEPENDENT["sign of a sum"])
    path = model.export_version(module, input_shapes={"x": (None, COLUMNS)}, check="warn", **options)
    assert path == "m/1/model.onnx"
    assert "the trace depends on its input" in caplog.text
    assert "published anyway" in caplog.text
    with pytest.raises(ExportError, match="check is 'wrn'; expected True, False or 'warn'"):
        model.export_version(module, check="wrn", **options)


@pytest.mark.slow("a process of its own imports torch")
def test_scripts_of_hermes_are_warned_and_not_refused(tmp_path: Path) -> None:
    script = tmp_path / "export.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys, torch
            from hermes import quiver as qv

            class Gate(torch.nn.Module):
                def forward(self, x):
                    return 2 * x if x.sum() > 0 else -x

            model = qv.ModelRepository("repo").add("m", platform=qv.Platform.TORCHSCRIPT)
            print(model.export_version(Gate(), input_shapes={"x": (None, 4)}))
            try:
                model.export_version(Gate(), check=True)
            except ValueError as error:
                print("refused:", "the trace depends on its input" in str(error))
            """
        )
    )
    done = subprocess.run(
        [sys.executable, "-m", "alipes.compat", "hermes", str(script)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, "m/1/model.pt\nrefused: True\n"), done.stderr
    assert "the trace depends on its input" in done.stderr
    assert "published anyway" in done.stderr


@pytest.mark.parametrize("platform", [qv.Platform.ONNX, qv.Platform.TORCHSCRIPT], ids=str)
def test_rows_that_depend_on_each_other_are_not_published_for_batches(tmp_path: Path, platform: qv.Platform) -> None:
    model, options = traced(tmp_path, platform)
    text = refusal(model, Module(lambda x: x - x.mean(0)), **options, max_batch_size=8)
    assert "requests of several clients are run together, but output" in text
    assert text.endswith("depends on the rows beside it; leave max_batch_size out")
    model.export_version(Module(lambda x: x - x.mean(0)), input_shapes={"x": (None, COLUMNS)}, **options)


def test_time_in_front_is_no_batch(tmp_path: Path) -> None:
    """PyTorch's default layout of an LSTM, whose axis 0 is the time."""

    class Recurrent(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.LSTM(COLUMNS, 2)

        def forward(self, x: Any) -> Any:
            return self.layer(x)[0]

    model, options = traced(tmp_path, qv.Platform.TORCHSCRIPT)
    text = refusal(model, Recurrent(), **options, input_shapes={"x": (None, 3, COLUMNS)}, max_batch_size=8)
    assert "requests of several clients are run together, but output" in text
