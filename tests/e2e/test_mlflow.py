"""Folders of MLflow are served by the framework that they name, with the answers that MLflow gives in this process."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import Client
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.render import config_json
from alipes.row_proof import RowProof
from alipes.worker.frameworks.description import describe_file
from alipes.worker.frameworks.opened import Opening
from alipes.worker.loading import LoadError
from support.framework_models import parameter, reason
from support.models import times
from support.server import ServerProcess

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    mlflow = pytest.importorskip("mlflow", reason="folders of MLflow need it: pip install 'alipes[mlflow]'")
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("mlflow.pyfunc")

pytestmark = [pytest.mark.extra("mlflow"), pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]

Serve = Callable[..., ServerProcess]
ROWS = np.random.default_rng(0).standard_normal((4, 4))
SINGLE = ROWS.astype("f4")
TABLE = pandas.DataFrame({"a": ROWS[:, 0], "count": np.arange(4), "word": ["one", "two", "", "ü"]})
ONE = "instance_group [{ kind: KIND_CPU count: 1 }]\n"
COLUMNS = {
    "a": TABLE["a"].to_numpy().reshape(4, 1),
    "count": TABLE["count"].to_numpy().reshape(4, 1),
    "word": np.array([[word.encode()] for word in TABLE["word"]], dtype=object),
}


# The worker has no such module: its classes travel as they are.
pytest.importorskip("cloudpickle").register_pickle_by_value(sys.modules[__name__])


class Table(mlflow.pyfunc.PythonModel):
    """Takes columns and gives columns."""

    def predict(self, context, model_input, params=None):
        return pandas.DataFrame(
            {"sum": model_input["a"] + model_input["count"], "loud": [word.upper() for word in model_input["word"]]}
        )


class Tensors(mlflow.pyfunc.PythonModel):
    """Takes one array and gives a number for each row."""

    def predict(self, context, model_input, params=None):
        if np.isnan(model_input).any():
            raise ValueError("there is a number that is none")
        return np.asarray(model_input).sum(axis=1)


def signature(given: Any, made: Any) -> Any:
    from mlflow.models import infer_signature

    return infer_signature(given, made)


def save_function(folder: Path, model: Any, *samples: Any) -> Path:
    """A folder of a Python function, with the signature of two samples where they are given."""
    mlflow.pyfunc.save_model(
        folder, python_model=model, signature=signature(*samples) if samples else None, pip_requirements=[]
    )
    return folder


def save_table(folder: Path) -> Path:
    return save_function(folder, Table(), TABLE, Table().predict(None, TABLE))


def save_tensors(folder: Path) -> Path:
    return save_function(folder, Tensors(), ROWS, ROWS.sum(axis=1))


def save_onnx(folder: Path) -> Path:
    pytest.importorskip("mlflow.onnx").save_model(times(3.0, columns=4), folder, pip_requirements=[])
    return folder


def network() -> Any:
    keras = pytest.importorskip("keras")
    keras.utils.set_random_seed(0)
    return keras.Sequential([keras.Input((4,), name="x"), keras.layers.Dense(2, name="y")])


def save_keras(folder: Path) -> Path:
    made = signature(SINGLE, np.zeros((4, 2), "f4"))
    pytest.importorskip("mlflow.tensorflow").save_model(network(), folder, signature=made, pip_requirements=[])
    return folder


def save_module(folder: Path) -> Path:
    tensorflow = pytest.importorskip("tensorflow")

    class Doubling(tensorflow.Module):
        @tensorflow.function(input_signature=[tensorflow.TensorSpec([None, 4], tensorflow.float32, name="x")])
        def __call__(self, x: Any) -> Any:
            return {"y": x * 2}

    made = signature(SINGLE, SINGLE)
    pytest.importorskip("mlflow.tensorflow").save_model(Doubling(), folder, signature=made, pip_requirements=[])
    return folder


def add(repository: Path, name: str, config: str = ONE) -> Path:
    """The folder of a version, with a configuration that needs no more than a file would complete."""
    folder = repository / name / "1"
    folder.mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text(f'backend: "mlflow"\n{config}')
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    """Good folders beside bad ones; each is loaded by itself, for frameworks take seconds to start."""
    repository = tmp_path_factory.mktemp("models")
    save_table(add(repository, "table") / "model.mlflow")
    save_tensors(repository / "tensors" / "1")
    save_onnx(add(repository, "onnx") / "model.mlflow")
    save_keras(add(repository, "keras") / "model.mlflow")
    save_table(add(repository, "forbidden") / "model.mlflow")
    server = serve_module(
        repository, "--model-control-mode=explicit", "--allow-pickles=table", "--allow-pickles=tensors"
    )
    with Client(server.http) as client:
        with pytest.raises(Exception, match="allow-pickles=forbidden"):
            client.load("forbidden")
        for name in ("table", "tensors", "onnx", "keras"):
            client.load(name)
    return server


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.http) as found:
        yield found


def test_a_function_takes_and_gives_columns(client: Client) -> None:
    found = client.infer("table", COLUMNS)
    wanted = Table().predict(None, TABLE)
    np.testing.assert_array_equal(found["sum"].ravel(), wanted["sum"])
    assert [one.decode() for one in found["loud"].ravel()] == list(wanted["loud"])


def test_the_signature_completes_the_configuration(client: Client) -> None:
    config = client.config("table")
    assert [(one["name"], one["data_type"], one["dims"]) for one in (*config["input"], *config["output"])] == [
        ("a", "TYPE_FP64", [1]),
        ("count", "TYPE_INT64", [1]),
        ("word", "TYPE_STRING", [1]),
        ("sum", "TYPE_FP64", [1]),
        ("loud", "TYPE_STRING", [1]),
    ]
    assert config["max_batch_size"] == 4


def test_a_version_can_be_the_folder_itself(client: Client) -> None:
    np.testing.assert_allclose(client.infer("tensors", {"input": ROWS})["output"].ravel(), ROWS.sum(axis=1))
    bad = np.full((1, 4), np.nan)
    with pytest.raises(Exception, match="there is a number that is none"):
        client.infer("tensors", {"input": bad})


def test_frameworks_run_their_own_files(client: Client) -> None:
    np.testing.assert_array_equal(client.infer("onnx", {"X": SINGLE})["Y"], SINGLE * np.float32(3))
    found = client.infer("keras", {"x": SINGLE})["y"]
    np.testing.assert_allclose(found, network()(SINGLE), rtol=1e-5, atol=1e-6)


def test_a_function_needs_permission(server: ServerProcess) -> None:
    assert "it holds a Python function" in reason(server, "forbidden")
    assert "start the server with --allow-pickles=forbidden" in reason(server, "forbidden")


def opened(folder: Path, config: str = "", *, allows_pickles: bool = False) -> Any:
    """A model as a worker opens it."""
    from alipes.worker.frameworks.mlflow.program import open_model

    document = json.loads(config_json(parse_pbtxt(config, folder)))
    return open_model(Opening("m", folder, document, allows_pickles=allows_pickles))


def refusal(folder: Path, config: str = "", *, allows_pickles: bool = False) -> str:
    """Why a worker does not open a model."""
    with pytest.raises(LoadError) as failure:
        opened(folder, config, allows_pickles=allows_pickles)
    return str(failure.value)


def test_a_saved_module_of_tensorflow_runs(tmp_path: Path) -> None:
    found = opened(save_module(tmp_path / "m")).run({"x": SINGLE})
    np.testing.assert_array_equal(found["y"], SINGLE * 2)


def test_the_function_of_any_flavor_can_be_chosen(tmp_path: Path) -> None:
    folder, chosen = save_onnx(tmp_path / "m"), parameter("MLFLOW_FLAVOR", "python_function")
    assert "it holds a Python function" in refusal(folder, chosen)
    listed = 'output [{ name: "Y" data_type: TYPE_FP32 dims: [4] }]\n'
    found = opened(folder, chosen + listed, allows_pickles=True)
    assert found.signature is None
    np.testing.assert_array_equal(found.run({"X": SINGLE})["Y"], SINGLE * np.float32(3))


def test_what_a_folder_lacks_is_named(tmp_path: Path) -> None:
    folder = save_onnx(tmp_path / "m")
    file = folder / "MLmodel"
    content = file.read_text()
    words = "it has no flavor 'sklearn', its flavors are: onnx, python_function"
    assert words in refusal(folder, parameter("MLFLOW_FLAVOR", "sklearn"))
    file.write_text(content.replace("model.onnx", "../other.onnx"))
    assert "its MLmodel names '../other.onnx', which is not in the folder" in refusal(folder)
    file.write_text("flavors: [")
    assert "the framework cannot read it (ParserError" in refusal(folder)
    file.write_text("flavors: 3")
    assert "its MLmodel lists no flavors" in refusal(folder)
    file.write_text("flavors:\n  spacy: {}\n")
    assert "none of its flavors is served: spacy; there are onnx, tensorflow" in refusal(folder)
    file.write_text(content)
    (folder / "model.onnx").write_bytes(b"no graph")
    assert "cannot be loaded from 'model.onnx': the framework cannot read it" in refusal(folder)
    file.unlink()
    assert "it is no folder of MLflow, which holds a file MLmodel" in refusal(folder)


def test_a_pickle_that_is_damaged_is_refused(tmp_path: Path) -> None:
    folder = save_tensors(tmp_path / "m")
    (folder / "python_model.pkl").write_bytes(b"\x80\x05")
    assert "the framework cannot read it" in refusal(folder, allows_pickles=True)


def test_a_package_that_the_function_needs_is_named(tmp_path: Path) -> None:
    folder = save_tensors(tmp_path / "m")
    (folder / "python_model.pkl").write_bytes(b"cpackage_of_tomorrow\nModel\n.")
    words = (
        "what it holds is of the package 'package_of_tomorrow', which is not installed: install what the requirements"
    )
    assert words in refusal(folder, allows_pickles=True)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"cpandas.gone\nTable\n.", "another release of pandas wrote it, with a module 'pandas.gone' that the"),
        (b"cpandas\nGone\n.", f"the installed pandas {pandas.__version__} does not read what another release wrote"),
        (b"\x80\x04\x8c\x06pandas\x8c\x04Gone\x93.", "does not read what another release wrote (AttributeError: "),
    ],
)
def test_a_function_of_another_release_is_named_as_such(tmp_path: Path, document: bytes, words: str) -> None:
    folder = save_tensors(tmp_path / "m")
    (folder / "python_model.pkl").write_bytes(document)
    assert words in refusal(folder, allows_pickles=True)


class Running(mlflow.pyfunc.PythonModel):
    """Adds what it was called with before."""

    def __init__(self) -> None:
        self.total = 0.0

    def predict(self, context, model_input, params=None):
        self.total += float(np.asarray(model_input).sum())
        return np.asarray(model_input).sum(axis=1) + self.total


def test_a_function_that_remembers_calls_is_not_run_jointly(tmp_path: Path) -> None:
    # What it keeps is its author's business, as in any model in Python; rows of clients do not meet in a call.
    folder = save_function(tmp_path / "m", Running(), ROWS, ROWS.sum(axis=1))
    framework = {"program": "alipes.worker.frameworks.mlflow.program", "extra": "alipes[mlflow]"}
    _, rows = describe_file(framework, Opening("m", folder, {}, allows_pickles=True), prove=True)
    assert rows == RowProof("refuted", "output 'output' is another one each time that it is computed for the same row")
    save_tensors(tmp_path / "n")
    _, rows = describe_file(framework, Opening("n", tmp_path / "n", {}, allows_pickles=True), prove=True)
    assert rows == RowProof("proved")


def test_a_framework_that_is_missing_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As where it is not installed; some environments of tests have it.
    monkeypatch.setitem(sys.modules, "catboost", None)
    monkeypatch.delitem(sys.modules, "alipes.worker.frameworks.catboost", raising=False)
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "model.cbm").write_bytes(b"")
    (folder / "MLmodel").write_text("flavors:\n  catboost: {data: model.cbm, save_format: cbm}\n")
    assert "install it with: pip install 'alipes[catboost]'" in refusal(folder)


def test_scikit_learn_takes_the_columns_of_the_signature(tmp_path: Path) -> None:
    pytest.importorskip("alipes.worker.frameworks.sklearn")
    linear = pytest.importorskip("sklearn.linear_model")
    table = pandas.DataFrame(ROWS, columns=list("abcd"))
    model = linear.LogisticRegression().fit(table, ROWS.sum(axis=1) > 0)
    made = signature(table, model.predict(table))
    pytest.importorskip("mlflow.sklearn").save_model(
        model, tmp_path / "m", signature=made, pip_requirements=[], serialization_format="cloudpickle"
    )
    assert "it holds a pickle" in refusal(tmp_path / "m")
    found = opened(tmp_path / "m", allows_pickles=True)
    assert [port.name for port in found.signature.inputs] == list("abcd")
    answers = found.run({name: ROWS[:, at : at + 1] for at, name in enumerate("abcd")})
    np.testing.assert_array_equal(answers["predict"].ravel(), model.predict(table))


@pytest.mark.parametrize("kind", ["pickle", "pt2"])
def test_pytorch_runs_its_own_files(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("alipes.worker.frameworks.pytorch.program")
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(4, 2)
    wanted = layer(torch.from_numpy(SINGLE)).detach().numpy()
    pytest.importorskip("mlflow.pytorch").save_model(
        torch.jit.script(layer) if kind == "pickle" else layer,
        tmp_path / "m",
        signature=signature(SINGLE, wanted),
        serialization_format=kind,
        input_example=None if kind == "pickle" else SINGLE,
        pip_requirements=[],
    )
    described = opened(tmp_path / "m").signature
    listed = "".join(
        f'{side} [{{ name: "{port.name}" data_type: TYPE_FP32 dims: [{", ".join(map(str, port.shape))}] }}]\n'
        for side in ("input", "output")
        for port in described.side(side)
    )
    found = opened(tmp_path / "m", listed)
    [answer] = found.run({described.inputs[0].name: SINGLE}).values()
    np.testing.assert_allclose(answer, wanted, rtol=1e-5)


def test_xgboost_runs_its_own_file(tmp_path: Path) -> None:
    pytest.importorskip("alipes.worker.frameworks.xgboost")
    xgboost = pytest.importorskip("xgboost")
    booster = xgboost.train({}, xgboost.DMatrix(SINGLE, label=SINGLE.sum(axis=1)), 5)
    pytest.importorskip("mlflow.xgboost").save_model(booster, tmp_path / "m", pip_requirements=[])
    found = opened(tmp_path / "m")
    [answer] = found.run({found.signature.inputs[0].name: SINGLE}).values()
    np.testing.assert_allclose(answer.ravel(), booster.predict(xgboost.DMatrix(SINGLE)), rtol=1e-6)
