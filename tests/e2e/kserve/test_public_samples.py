"""KServe's public samples: services with their fields, models of their forms, and requests as their pages send them."""

from __future__ import annotations

import base64
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tritonclient.grpc as grpc_client
from support.kserve_samples import CUSTOM, REFUSED, SAMPLES, arguments_of, service
from support.kserve_script import KServeScript, ask
from support.models import small_model
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(300)]

IRIS = [[6.8, 2.8, 4.8, 1.4], [6.0, 3.4, 4.5, 1.6]]
IRIS_V2 = {"inputs": [{"name": "input-0", "shape": [2, 4], "datatype": "FP32", "data": IRIS}]}
COLUMNS = (
    ("fixed acidity", 7.4),
    ("volatile acidity", 0.7),
    ("citric acid", 0),
    ("residual sugar", 1.9),
    ("chlorides", 0.076),
    ("free sulfur dioxide", 11),
    ("total sulfur dioxide", 34),
    ("density", 0.9978),
    ("pH", 3.51),
    ("sulphates", 0.56),
    ("alcohol", 9.4),
)
CIFAR = """
name: "cifar10"
platform: "pytorch_libtorch"
max_batch_size: 1
input [ { name: "INPUT__0" data_type: TYPE_FP32 dims: [3, 32, 32] } ]
output [ { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [10] } ]
"""


def started(serve: Serve, name: str, store: Path) -> ServerProcess:
    """The server that KServe would start for a sample whose model lies in a folder."""
    return serve(*arguments_of(service(name), store), environment={"TMPDIR": str(store.parent)})


def fitted_iris() -> tuple[Any, np.ndarray, np.ndarray]:
    """A classifier of the samples, and what it was fitted on."""
    iris = import_module("sklearn.datasets").load_iris()
    svm: Any = import_module("sklearn.svm")
    return svm.SVC(gamma="scale").fit(iris.data, iris.target), iris.data, iris.target


@pytest.mark.extra("sklearn")
def test_sklearn_iris_answers_v1(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    import_module("joblib").dump(fitted_iris()[0], tmp_path / "store" / "model.joblib")
    server = started(serve, "sklearn-iris", tmp_path / "store")
    answer = ask(f"http://{server.http}/v1/models/sklearn-iris:predict", {"instances": IRIS})
    assert (answer.status, answer.document) == (200, {"predictions": [1, 1]})


@pytest.mark.extra("sklearn")
def test_sklearn_iris_answers_v2_over_http_and_grpc(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    import_module("joblib").dump(fitted_iris()[0], tmp_path / "store" / "model.joblib")
    server = started(serve, "sklearn-v2-iris", tmp_path / "store")
    answer = ask(f"http://{server.http}/v2/models/sklearn-v2-iris/infer", IRIS_V2)
    (output,) = answer.document["outputs"]
    assert (answer.status, output["name"], output["datatype"], output["data"]) == (200, "predict", "INT64", [1, 1])
    tensor = grpc_client.InferInput("input-0", [2, 4], "FP32")
    tensor.set_data_from_numpy(np.array(IRIS, np.float32))
    with grpc_client.InferenceServerClient(server.grpc) as client:
        assert client.infer("sklearn-v2-iris", [tensor]).as_numpy("predict").ravel().tolist() == [1, 1]


@pytest.mark.extra("trees")
def test_xgboost_iris_answers_v2(serve: Serve, tmp_path: Path) -> None:
    xgboost: Any = pytest.importorskip("xgboost")
    rows, classes = iris_rows()
    settings = {"max_depth": 6, "eta": 0.1, "nthread": 1, "num_class": 10, "objective": "multi:softmax"}
    booster = xgboost.train(settings, xgboost.DMatrix(rows, label=classes), num_boost_round=5)
    (tmp_path / "store").mkdir()
    booster.save_model(tmp_path / "store" / "model.ubj")
    (tmp_path / "store" / "model.ubj").rename(tmp_path / "store" / "model.bst")
    server = started(serve, "xgboost-iris", tmp_path / "store")
    answer = ask(f"http://{server.http}/v2/models/xgboost-iris/infer", IRIS_V2)
    assert (answer.status, answer.document["outputs"][0]["data"]) == (200, [1.0, 1.0])


@pytest.mark.extra("trees")
def test_lightgbm_iris_answers_v1_by_rows_and_refuses_names(serve: Serve, tmp_path: Path) -> None:
    lightgbm: Any = pytest.importorskip("lightgbm")
    rows, classes = iris_rows()
    settings = {"objective": "multiclass", "num_class": 3, "num_threads": 1, "verbose": -1}
    booster = lightgbm.train(settings, lightgbm.Dataset(rows, label=classes), num_boost_round=5)
    (tmp_path / "store").mkdir()
    booster.save_model(tmp_path / "store" / "model.bst")
    server = started(serve, "lightgbm-iris", tmp_path / "store")
    path = f"http://{server.http}/v1/models/lightgbm-iris:predict"
    answer = ask(path, {"instances": [[5.1, 3.5, 1.4, 0.2]]})
    np.testing.assert_allclose(answer.document["predictions"], booster.predict([[5.1, 3.5, 1.4, 0.2]]), rtol=1e-6)
    # The sample's request names columns, which a matrix does not have.
    names = ("sepal_length_(cm)", "sepal_width_(cm)", "petal_length_(cm)", "petal_width_(cm)")
    refused = ask(path, {"instances": [dict(zip(names, ([5.1], [3.5], [1.4], [0.2]), strict=True))]})
    assert refused.status == 400
    assert "sepal_length_(cm)" in refused.document["error"]


def test_the_onnx_sample_answers_v1_by_the_name_of_its_input(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "model.onnx").write_bytes(styled().SerializeToString())
    server = started(serve, "style-sample", tmp_path / "store")
    picture = np.arange(3 * 4 * 4, dtype=np.float32).reshape(1, 3, 4, 4)
    path = f"http://{server.http}/v1/models/style-sample:predict"
    for body, key in (
        ({"inputs": {"input1": picture.tolist()}}, "outputs"),
        ({"instances": [picture.tolist()]}, "predictions"),
    ):
        answer = ask(path, body)
        assert answer.status == 200, answer.document
        np.testing.assert_array_equal(np.array(answer.document[key]).reshape(picture.shape), 2 * picture)


@pytest.mark.proof
@pytest.mark.extra("torch")
def test_torchscript_in_tritons_layout_answers_v2_and_behind_a_transformer(serve: Serve, tmp_path: Path) -> None:
    torch: Any = import_module("torch")
    version = tmp_path / "store" / "cifar10" / "1"
    version.mkdir(parents=True)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 10))
    torch.jit.script(net).save(str(version / "model.pt"))
    (version.parent / "config.pbtxt").write_text(CIFAR)
    server = started(serve, "torchscript-cifar", tmp_path / "store")
    pixels = np.random.default_rng(1).integers(0, 256, (3, 32, 32), np.uint8)
    picture = (pixels / 127.5 - 1).astype(np.float32)
    expected = net(torch.from_numpy(picture[None])).detach().numpy()
    tensor = {"name": "INPUT__0", "shape": [1, 3, 32, 32], "datatype": "FP32", "data": picture.tolist()}
    answer = ask(f"http://{server.http}/v2/models/cifar10/infer", {"inputs": [tensor]})
    np.testing.assert_allclose(answer.document["outputs"][0]["data"], expected[0], rtol=1e-3, atol=1e-4)
    words = (f"--predictor_host={server.grpc}", "--protocol=grpc-v2", "--model_name=cifar10")
    with KServeScript("image_transformer", tmp_path, *words, last="cifar10") as transformer:
        image = {"image_bytes": {"b64": base64.b64encode(pixels.tobytes()).decode()}}
        answer = ask(f"{transformer.http}/v1/models/cifar10:predict", {"instances": [image]})
        np.testing.assert_allclose(answer.document["predictions"], expected, rtol=1e-3, atol=1e-4)
        transformer.stop()


@pytest.mark.proof
@pytest.mark.extra("keras")
def test_the_flowers_of_tensorflow_answer_v1(serve: Serve, tmp_path: Path) -> None:
    tensorflow: Any = import_module("tensorflow")
    module = tensorflow.Module()
    texts = [tensorflow.TensorSpec([None], tensorflow.string, name=name) for name in ("image_bytes", "key")]

    def classify(image_bytes: Any, key: Any) -> Any:
        sizes = tensorflow.cast(tensorflow.strings.length(image_bytes), tensorflow.float32)
        scores = tensorflow.nn.softmax(sizes[:, None] * tensorflow.constant([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]))
        return {"scores": scores, "prediction": tensorflow.argmax(scores, axis=1), "key": key}

    signatures = {"serving_default": tensorflow.function(classify, input_signature=texts)}
    tensorflow.saved_model.save(module, str(tmp_path / "store" / "0001"), signatures=signatures)
    server = started(serve, "flower-sample", tmp_path / "store")
    image = {"image_bytes": {"b64": base64.b64encode(b"twelve bytes").decode()}, "key": "   1"}
    answer = ask(f"http://{server.http}/v1/models/flower-sample:predict", {"instances": [image]})
    assert answer.status == 200, answer.document
    (prediction,) = answer.document["predictions"]
    assert (prediction["prediction"], prediction["key"], len(prediction["scores"])) == (0, "   1", 6)
    assert prediction["scores"][0] > 0.99


@pytest.mark.proof
@pytest.mark.extra("mlflow")
def test_the_wine_classifier_of_mlflow_answers_v2_by_columns(serve: Serve, tmp_path: Path) -> None:
    mlflow: Any = import_module("mlflow.sklearn")
    pandas: Any = import_module("pandas")
    linear: Any = import_module("sklearn.linear_model")
    names = [name for name, _ in COLUMNS]
    rng = np.random.default_rng(40)
    table = pandas.DataFrame(rng.random((50, len(names))) * [2 * value + 1 for _, value in COLUMNS], columns=names)
    quality = pandas.DataFrame({"quality": rng.integers(3, 9, 50)})
    model = linear.ElasticNet(alpha=0.5, l1_ratio=0.5, random_state=42).fit(table, quality)
    signature = import_module("mlflow.models").infer_signature(table, quality)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlflow.save_model(model, str(tmp_path / "store"), signature=signature, pip_requirements=[])
    server = started(serve, "mlflow-v2-wine-classifier", tmp_path / "store")
    inputs = [{"name": name, "shape": [1], "datatype": "FP32", "data": [value]} for name, value in COLUMNS]
    body = {"parameters": {"content_type": "pd"}, "inputs": inputs}
    answer = ask(f"http://{server.http}/v2/models/mlflow-v2-wine-classifier/infer", body)
    assert answer.status == 200, answer.document
    expected = model.predict(pandas.DataFrame([dict(COLUMNS)]))
    np.testing.assert_allclose(np.ravel(answer.document["outputs"][0]["data"]), np.ravel(expected), rtol=1e-5)


def test_a_custom_predictor_answers_a_picture_with_a_header(tmp_path: Path) -> None:
    with KServeScript("top_five", tmp_path, f"--model_name={CUSTOM}", last=CUSTOM) as script:
        picture = base64.b64encode(b"aaaabbbccd").decode()
        answer = ask(f"{script.http}/v1/models/{CUSTOM}:predict", {"instances": [{"image": {"b64": picture}}]})
        assert (answer.status, answer.document) == (200, {"predictions": [4, 3, 2, 1, 0]})
        assert float(answer.headers["prediction-time-latency"]) > 0
        script.stop()


@pytest.mark.parametrize(
    ("name", "files", "text"),
    [
        ("pmml-demo", ["DecisionTreeIris.pmml"], "it is a model in PMML"),
        ("paddle-resnet50", ["model.pdmodel", "model.pdiparams"], "it is a model of PaddlePaddle"),
    ],
)
def test_a_format_that_nothing_reads_is_refused_by_name(tmp_path: Path, name: str, files: list[str], text: str) -> None:
    model_format = REFUSED[name][0]
    with pytest.raises(LookupError, match=f"no runtime reads models of the format '{model_format}'"):
        arguments_of(service(name), tmp_path)
    (tmp_path / "store").mkdir()
    for file in files:
        (tmp_path / "store" / file).write_bytes(b"<PMML/>")
    with ServerProcess(f"--model-store={tmp_path / 'store'}", f"--model-name={name}") as server:
        assert server.wait() == 1
    assert text in server.output.replace("\n  ", " ")
    assert "model.onnx" in server.output


def test_every_sample_has_a_runtime_of_its_format(tmp_path: Path) -> None:
    for name in SAMPLES:
        words = arguments_of(service(name), tmp_path)
        assert words[:2] == [f"--model-name={name}", f"--model-store={tmp_path}"]


def iris_rows() -> tuple[np.ndarray, np.ndarray]:
    """Rows with classes that a tree tells apart as those of iris, without scikit-learn: the petals decide."""
    rng = np.random.default_rng(3)
    centers = np.array([[5.0, 3.4, 1.4, 0.2], [6.2, 2.9, 4.5, 1.4], [6.6, 3.0, 5.8, 2.1]])
    classes = np.repeat([0, 1, 2], 50)
    return centers[classes] + rng.normal(0, 0.1, (150, 4)), classes


def styled() -> Any:
    """``output1 = 2 * input1`` of pictures."""
    ports = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 3, "height", "width"])
        for name in ("input1", "output1")
    ]
    two = onnx.numpy_helper.from_array(np.array(2.0, np.float32), "two")
    return small_model([onnx.helper.make_node("Mul", ["input1", "two"], ["output1"])], ports[:1], ports[1:], [two])
