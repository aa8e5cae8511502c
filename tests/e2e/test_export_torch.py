"""PyTorch models exported by either of torch's exporters, and served: the same numbers, and none of the old traps."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import repository as qv
from alipes.errors import ConfigError, ExportError, NoExporter
from support.endpoints import ENDPOINTS
from support.server import ServerProcess

torch = pytest.importorskip("torch", reason="exports of PyTorch models need PyTorch")

pytestmark = pytest.mark.extra("torch")

IFOS, KERNEL = 2, 256
HAS_DYNAMO = importlib.util.find_spec("onnxscript") is not None
EXPORTERS = [
    pytest.param(False, id="tracing"),
    pytest.param(
        True,
        id="dynamo",
        marks=pytest.mark.skipif(not HAS_DYNAMO, reason="torch's exporter needs the package onnxscript"),
    ),
]


class GlobalAvgPool(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        return x.mean(axis=-1)


def classifier() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv1d(IFOS, 8, kernel_size=7, stride=2),
        torch.nn.ReLU(),
        torch.nn.Conv1d(8, 16, kernel_size=7, stride=2),
        torch.nn.ReLU(),
        GlobalAvgPool(),
        torch.nn.Linear(16, 1),
    )


class Weighted(torch.nn.Module):  # type: ignore[misc]
    """Two arguments whose order matters, and two outputs. Without annotations, which scripts take at their word."""

    def forward(self, left, right):  # type: ignore[no-untyped-def]
        return 2 * left - right, (left > right)


@pytest.fixture
def model(tmp_path: Path) -> qv.Model:
    return qv.ModelRepository(tmp_path / "repo").add("m", qv.Platform.ONNX)


def session(model: qv.Model, version: int) -> Any:
    import onnxruntime

    return onnxruntime.InferenceSession(str(Path(str(model.fs), "m", str(version), "model.onnx")))


@pytest.mark.parametrize("dynamo", EXPORTERS)
def test_a_notebooks_model_is_exported_and_answers_like_the_module(
    tmp_path: Path, serve: Callable[..., ServerProcess], dynamo: bool
) -> None:
    repo = qv.ModelRepository(tmp_path / "model-repo")
    model = repo.add("my-classifier", platform=qv.Platform.ONNX)
    nn = classifier()
    path = model.export_version(nn, input_shapes={"hoft": (-1, IFOS, KERNEL)}, output_names=["prob"], dynamo=dynamo)
    assert path == "my-classifier/1/model.onnx"
    assert str(model.config) == (
        'name: "my-classifier"\nplatform: "onnxruntime_onnx"\n'
        'input {\n  name: "hoft"\n  data_type: TYPE_FP32\n  dims: -1\n  dims: 2\n  dims: 256\n}\n'
        'output {\n  name: "prob"\n  data_type: TYPE_FP32\n  dims: -1\n  dims: 1\n}\n'
    )
    assert model.versions == [1]
    model.config.add_instance_group(count=2)
    assert model.export_version(nn, dynamo=dynamo) == "my-classifier/2/model.onnx"
    ensemble = repo.add("end-to-end", platform=qv.Platform.ENSEMBLE)
    ensemble.add_input(model.inputs["hoft"])
    ensemble.add_output(model.outputs["prob"])
    assert ensemble.export_version(None) == "end-to-end/1/model.empty"

    server = serve(tmp_path / "model-repo")
    rng = np.random.default_rng(1)
    for endpoint in ENDPOINTS.values():
        with endpoint(server) as client:
            for rows in (1, 5):
                hoft = rng.standard_normal((rows, IFOS, KERNEL)).astype(np.float32)
                with torch.no_grad():
                    expected = nn(torch.from_numpy(hoft)).numpy()
                plain = client.ask("my-classifier", {"hoft": hoft})
                assert plain.version == "2"
                np.testing.assert_allclose(plain["prob"], expected, rtol=1e-5, atol=1e-6)
                np.testing.assert_array_equal(client.ask("end-to-end", {"hoft": hoft})["prob"], plain["prob"])


@pytest.mark.parametrize("dynamo", EXPORTERS)
def test_inputs_are_passed_by_name(model: qv.Model, dynamo: bool) -> None:
    model.export_version(Weighted(), input_shapes={"right": (None, 3), "left": (None, 3)}, dynamo=dynamo)
    assert list(model.inputs) == ["right", "left"]
    assert [tensor.datatype for tensor in model.outputs.values()] == ["FP32", "BOOL"]
    left, right = np.full((4, 3), 5, np.float32), np.full((4, 3), 1, np.float32)
    values, flags = session(model, 1).run(["output_0", "output_1"], {"left": left, "right": right})
    assert (values == 9).all() and flags.all()


def test_names_that_are_no_arguments_go_by_their_order(model: qv.Model) -> None:
    model.export_version(Weighted(), input_shapes=[(None, 3), (None, 3)], output_names=["a", "b"], dynamo=False)
    assert list(model.inputs) == ["input_0", "input_1"]
    ones = np.ones((1, 3), np.float32)
    assert (session(model, 1).run(["a"], {"input_0": 5 * ones, "input_1": ones})[0] == 9).all()


@pytest.mark.parametrize("dynamo", EXPORTERS)
def test_a_module_in_training_is_exported_for_inference_and_left_as_it_was(model: qv.Model, dynamo: bool) -> None:
    nn = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5)).train()
    nn[2].eval()
    before = {name: value.clone() for name, value in nn.state_dict().items()}
    model.export_version(nn, input_shapes={"x": (None, 4)}, dynamo=dynamo)
    assert [part.training for part in nn] == [True, True, False]
    assert all(torch.equal(before[name], value) for name, value in nn.state_dict().items())
    assert all(weight.grad is None for weight in nn.parameters())


@pytest.mark.parametrize(
    ("dtype", "datatype"),
    [("float64", "FP64"), ("float16", "FP16"), ("int64", "INT64"), ("int32", "INT32"), ("bool", "BOOL")],
)
def test_datatypes_are_those_of_the_model(model: qv.Model, dtype: str, datatype: str) -> None:
    class Same(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x.reshape(-1, 2, 2)

    model.export_version(Same(), input_shapes={"x": (None, 4)}, input_dtypes={"x": dtype}, dynamo=False)
    assert (model.inputs["x"].datatype, model.outputs["output_0"].datatype) == (datatype, datatype)
    assert model.outputs["output_0"].shape == (None, 2, 2)
    with pytest.raises(ExportError, match=f"declared as {datatype}, the export gives UINT8"):
        model.export_version(Same(), input_shapes={"x": (None, 4)}, input_dtypes=["uint8"], dynamo=False)


def test_weights_say_what_floating_type_the_inputs_have(model: qv.Model) -> None:
    model.export_version(torch.nn.Linear(4, 2).double(), input_shapes={"x": (None, 4)}, dynamo=False)
    assert model.inputs["x"].datatype == "FP64"


class ByBatch(torch.nn.Module):  # type: ignore[misc]
    """Wrong for every batch but the one that it was traced with."""

    def forward(self, x: Any) -> Any:
        return x * float(x.shape[0])


def test_numbers_that_the_file_gives_differently_fail_the_export(model: qv.Model) -> None:
    with pytest.raises(ExportError, match=r"output 'y' differs at .* in the exported file"):
        model.export_version(ByBatch(), input_shapes={"x": (None, 4)}, output_names=["y"], dynamo=False)
    assert (model.versions, model.inputs) == ([], {})
    model.export_version(ByBatch(), input_shapes={"x": (None, 4)}, output_names=["y"], dynamo=False, check=False)
    assert model.versions == [1]


@pytest.mark.parametrize("dynamo", EXPORTERS)
def test_a_variable_axis_beside_the_batch_takes_an_example(model: qv.Model, dynamo: bool) -> None:
    nn = torch.nn.Conv1d(2, 3, 5)
    shapes = {"x": (None, 2, None)}
    with pytest.raises(ExportError, match=r"input 'x' has shape \[None, 2, None\].*examples="):
        model.export_version(nn, input_shapes=shapes, dynamo=dynamo)
    model.export_version(nn, input_shapes=shapes, examples={"x": torch.randn(1, 2, 40)}, dynamo=dynamo)
    assert model.outputs["output_0"].shape == (None, 3, None)
    found = session(model, 1).run(None, {"x": np.zeros((7, 2, 19), np.float32)})[0]
    assert found.shape == (7, 3, 15)


def test_an_example_alone_tells_shape_and_datatype(model: qv.Model) -> None:
    model.export_version(torch.nn.Embedding(9, 3), examples={"input": torch.tensor([[8, 7]])}, dynamo=False)
    assert model.inputs["input"] == qv.ExposedTensor(model, "input", (None, 2), "INT64")
    assert model.outputs["output_0"].shape == (None, 2, 3)
    with pytest.raises(ExportError, match="there is no input 'x', only 'input'"):
        model.export_version(torch.nn.Embedding(9, 3), examples={"x": torch.tensor([[8, 7]])}, dynamo=False)
    with pytest.raises(ExportError, match=r"has shape \[1, 3\], expected \[None, 2\]"):
        model.export_version(torch.nn.Embedding(9, 3), examples=[torch.tensor([[8, 7, 6]])], dynamo=False)


def test_a_model_without_a_batch_is_exported_as_it_is(model: qv.Model) -> None:
    model.export_version(torch.nn.Linear(4, 2), input_shapes={"x": (1, 4)}, dynamo=False)
    assert (model.inputs["x"].shape, model.outputs["output_0"].shape) == ((1, 4), (1, 2))


def test_a_batching_model_keeps_its_batch_axis_out_of_its_dims(model: qv.Model) -> None:
    class Score(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x.sum(dim=1)

    model.config.max_batch_size = 4
    model.export_version(Score(), input_shapes={"x": (None, 4)}, output_names=["s"], dynamo=False)
    assert list(model.config.input[0].dims) == [4]
    assert list(model.config.output[0].dims) == [1]
    model.export_version(Score(), dynamo=False)
    assert model.versions == [1, 2]


@pytest.mark.skipif(not HAS_DYNAMO, reason="torch's exporter needs the package onnxscript")
def test_what_torch_cannot_capture_is_traced_with_a_warning(model: qv.Model, caplog: pytest.LogCaptureFixture) -> None:
    class Branching(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x * 2 if x.abs().sum() >= 0 else x

    with pytest.raises(ExportError, match="model 'm' as ONNX failed"):
        model.export_version(Branching(), input_shapes={"x": (None, 4)}, dynamo=True)
    model.export_version(Branching(), input_shapes={"x": (None, 4)})
    assert model.versions == [1]
    assert model.fs.list("m/1") == ["model.onnx"]
    assert "it is traced instead" in caplog.text


def test_a_script_module_is_exported_by_its_own_names(model: qv.Model) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # scripts are on their way out of torch, not of people's disks
        scripted = torch.jit.script(Weighted())
    model.export_version(scripted, input_shapes={"right": (None, 3), "left": (None, 3)})
    ones = np.ones((2, 3), np.float32)
    assert (session(model, 1).run(["output_0"], {"left": 5 * ones, "right": ones})[0] == 9).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "Must specify input shapes"),
        ({"input_shapes": {"a": (None, 3), "b": (None, 3), "c": (None, 3)}}, "has 3 inputs, .* its forward takes 2"),
        ({"input_shapes": {"right": (None, 3)}}, "takes 'left' before 'right'"),
        ({"input_shapes": [(None, 3)] * 2, "output_names": ["y"]}, "1 output names, 'y', for 2 outputs"),
        ({"input_shapes": [(None, 3), (None, 4)]}, "failed: RuntimeError"),
        ({"input_shapes": {"left": (None, "3"), "right": (None, 3)}}, "size '3'"),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_nothing(
    model: qv.Model, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((ExportError, ConfigError), match=message):
        model.export_version(Weighted(), dynamo=False, **options)
    assert (model.versions, model.inputs, model.outputs) == ([], {}, {})


def test_a_wrong_platform_names_the_right_ones(tmp_path: Path) -> None:
    model = qv.ModelRepository(tmp_path).add("m", qv.Platform.PYTHON)
    with pytest.raises(NoExporter, match=r"as PYTHON .*can be exported as .*ONNX"):
        model.export_version(torch.nn.Linear(1, 1))


def test_a_script_is_written_with_the_names_that_servers_find(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = qv.ModelRepository(tmp_path).add("m", qv.Platform.TORCHSCRIPT)
    assert model.export_version(Weighted(), input_shapes=[(None, 3), (None, 3)]) == "m/1/model.pt"
    assert (list(model.inputs), list(model.outputs)) == (["left", "right"], ["OUTPUT__0", "OUTPUT__1"])
    assert "no name that NVIDIA Triton finds" not in caplog.text
    # Again without shapes, and with a script of the same model.
    assert model.export_version(Weighted()) == "m/2/model.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        scripted = torch.jit.script(Weighted())
        assert model.export_version(scripted) == "m/3/model.pt"
        loaded = torch.jit.load(str(tmp_path / "m" / "3" / "model.pt"))
    ones = torch.ones(5, 3)
    assert (loaded(5 * ones, ones)[0] == 9).all()


def test_names_that_no_server_finds_in_a_script_are_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = qv.ModelRepository(tmp_path).add("m", qv.Platform.TORCHSCRIPT)
    model.export_version(torch.nn.Linear(3, 1), input_shapes={"hoft": (None, 3)}, output_names=["prob"])
    assert "'hoft' is no name that NVIDIA Triton finds" in caplog.text
    assert (list(model.inputs), list(model.outputs)) == (["hoft"], ["prob"])


def test_a_program_is_written_and_gives_the_same_numbers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = qv.ModelRepository(tmp_path).add("m", qv.Platform.TORCHEXPORT)
    nn = classifier()
    assert model.export_version(nn, input_shapes={"x": (None, IFOS, KERNEL)}) == "m/1/model.pt2"
    program = torch.export.load(str(tmp_path / "m" / "1" / "model.pt2")).module()
    sample = torch.randn(7, IFOS, KERNEL)
    with torch.no_grad():
        torch.testing.assert_close(program(sample), nn.eval()(sample))
    assert qv.ModelRepository(tmp_path).models["m"].platform is qv.Platform.TORCHEXPORT
