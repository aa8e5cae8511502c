"""SavedModels and Keras files are served, with the answers that TensorFlow gives in this process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import Client, InferError
from alipes import repository as qv
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.render import config_json
from alipes.worker.frameworks.opened import Opening
from alipes.worker.loading import LoadError
from support.framework_models import executions, parameter, reason
from support.models import add_model, times
from support.server import ServerProcess

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    tensorflow = pytest.importorskip("tensorflow", reason="SavedModels need it: pip install 'alipes[keras]'")
    keras = pytest.importorskip("keras")

pytestmark = [pytest.mark.extra("keras"), pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]

Serve = Callable[..., ServerProcess]
ROWS = np.random.default_rng(0).standard_normal((3, 4)).astype("f4")
WORDS = np.array([b"one", b"\xffno text", b""], dtype=object)
BATCHED = """
max_batch_size: 8
input [{ name: "x" data_type: TYPE_FP32 dims: [4] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [2] }]
dynamic_batching { preferred_batch_size: [4] max_queue_delay_microseconds: 500000 }
"""


def module() -> Any:
    """Two signatures: numbers with a variable, and text with a table that has to be filled first."""
    made = tensorflow.Module()
    made.weights = tensorflow.Variable(np.arange(8, dtype="f4").reshape(4, 2))
    keys, values = tensorflow.constant([b"one", b"two"]), tensorflow.constant([1, 2], tensorflow.int64)
    made.table = tensorflow.lookup.StaticHashTable(
        tensorflow.lookup.KeyValueTensorInitializer(keys, values), default_value=-1
    )
    numbers = tensorflow.TensorSpec([None, 4], tensorflow.float32, name="x")
    texts = tensorflow.TensorSpec([None, 1], tensorflow.string, name="word")

    @tensorflow.function(input_signature=[numbers])
    def serve(x: Any) -> Any:
        tensorflow.debugging.assert_all_finite(x, "x has a number that is none")
        y = tensorflow.matmul(x, made.weights)
        return {"y": y, "total": tensorflow.reduce_sum(y, 1, keepdims=True)}

    @tensorflow.function(input_signature=[texts])
    def look(word: Any) -> Any:
        return {"number": made.table.lookup(word), "loud": tensorflow.strings.upper(word)}

    made.serve, made.look = serve, look
    return made


def save(folder: Path) -> Path:
    made = module()
    tensorflow.saved_model.save(made, str(folder), signatures={"serving_default": made.serve, "look": made.look})
    return folder


def twice(x: Any) -> Any:
    return x * 2


class Twice(keras.layers.Layer):  # type: ignore[misc]
    """A layer whose code is here and in no file."""

    def call(self, x: Any) -> Any:
        return twice(x)


class Whole(keras.Model):  # type: ignore[misc]
    """A model whose code is here and in no file."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.layer = keras.layers.Dense(2)

    def call(self, x: Any) -> Any:
        return self.layer(x)


def network() -> Any:
    keras.utils.set_random_seed(0)
    left, right = keras.Input((4,), name="left"), keras.Input((3,), name="right")
    joined = keras.layers.Dropout(0.5)(keras.layers.Concatenate()([left, right]))
    return keras.Model([left, right], [keras.layers.Dense(2, name="a")(joined), keras.layers.Dense(1, name="b")(left)])


def sequence(*more: Any) -> Any:
    keras.utils.set_random_seed(1)
    return keras.Sequential([keras.Input((4,), name="x"), *more, keras.layers.Dense(2, name="y")])


def keyed() -> Any:
    keras.utils.set_random_seed(2)
    left, right = keras.Input((4,), name="left"), keras.Input((4,), name="right")
    outputs = {"sum": keras.layers.Add()([left, right]), "product": keras.layers.Multiply()([left, right])}
    return keras.Model({"left": left, "right": right}, outputs)


def looked_up() -> Any:
    word = keras.Input((1,), dtype="string", name="word")
    return keras.Model(word, keras.layers.StringLookup(vocabulary=["one", "two"], name="number")(word))


def add(repository: Path, name: str, config: str | None = None) -> Path:
    """The folder of a version."""
    folder = repository / name / "1"
    folder.mkdir(parents=True)
    if config is not None:
        (repository / name / "config.pbtxt").write_text(f'backend: "tensorflow"\n{config}')
    return folder


class Totals(tensorflow.Module):  # type: ignore[misc]
    """Signatures that write a variable in a call, read one, draw by chance, and fill a table."""

    def __init__(self) -> None:
        self.total = tensorflow.Variable(np.zeros(1, "f4"))
        self.seed = tensorflow.Variable(np.zeros(1, "u4"), dtype=tensorflow.uint32)

    @tensorflow.function(input_signature=[tensorflow.TensorSpec([1], tensorflow.float32, name="x")])  # type: ignore[untyped-decorator]
    def write(self, x: Any) -> Any:
        return {"y": self.total.assign_add(x) + 0.0}

    @tensorflow.function(input_signature=[tensorflow.TensorSpec([1], tensorflow.float32, name="x")])  # type: ignore[untyped-decorator]
    def read(self, x: Any) -> Any:
        return {"y": self.total + x}

    @tensorflow.function(input_signature=[tensorflow.TensorSpec([1], tensorflow.float32, name="x")])  # type: ignore[untyped-decorator]
    def draw(self, x: Any) -> Any:
        self.seed.assign(self.seed + tensorflow.constant(1, tensorflow.uint32))
        return {"y": x + tensorflow.random.normal([1])}


def stateful() -> Any:
    keras.utils.set_random_seed(3)
    return keras.Sequential([keras.Input((2, 4), batch_size=1), keras.layers.LSTM(2, stateful=True)])


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("saved") / "model")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve, saved: Path) -> ServerProcess:
    """Good models beside bad ones. TensorFlow takes seconds to start, so each model is loaded by itself."""
    repository = tmp_path_factory.mktemp("models")
    shutil.copytree(saved, add(repository, "plain") / "model.savedmodel")
    shutil.copytree(saved, add(repository, "listed", BATCHED + ONE) / "model.savedmodel")
    shutil.copytree(saved, add(repository, "text", ONE + parameter("TF_SIGNATURE_DEF", "look")) / "model.savedmodel")
    shutil.copytree(saved, add(repository, "flat", ONE), dirs_exist_ok=True)
    network().save(add(repository, "network", ONE) / "model.keras")
    for name in ("code", "allowed"):
        sequence(keras.layers.Lambda(lambda x: x * 2)).save(add(repository, name, ONE) / "model.keras")
    qv.ModelRepository(repository).add("exported", qv.Platform.SAVEDMODEL).export_version(network())
    shutil.copytree(saved, add(repository, "truncated") / "model.savedmodel")
    (repository / "truncated" / "1" / "model.savedmodel" / "saved_model.pb").write_bytes(b"\x08\x01\x12\xff")
    (add(repository, "graph") / "model.graphdef").write_bytes(b"\n\x00")
    add_model(repository, "thrice", times(3.0, columns=2))
    (repository / "mixed" / "1").mkdir(parents=True)
    (repository / "mixed" / "config.pbtxt").write_text(ENSEMBLE)
    add(repository, "no_file", "")
    server = serve_module(repository, "--model-control-mode=explicit", "--allow-pickles=allowed")
    with Client(server.http) as client:
        for name in ("truncated", "graph", "no_file", "code"):
            with pytest.raises(InferError):
                client.load(name)
        for name in ("plain", "listed", "text", "flat", "network", "allowed", "exported", "thrice", "mixed"):
            client.load(name)
    return server


ONE = "instance_group [{ kind: KIND_CPU count: 1 }]\n"
ENSEMBLE = """
platform: "ensemble"
max_batch_size: 4
input [{ name: "x" data_type: TYPE_FP32 dims: [4] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [2] }]
ensemble_scheduling {
  step [
    { model_name: "listed" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y" value: "once" } },
    { model_name: "thrice" model_version: -1 input_map { key: "X" value: "once" } output_map { key: "Y" value: "y" } }
  ]
}
"""


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.http) as found:
        yield found


@pytest.mark.parametrize("model", ["plain", "listed", "flat"])
def test_a_saved_model_answers_as_tensorflow_does(client: Client, saved: Path, model: str) -> None:
    signature = tensorflow.saved_model.load(str(saved)).signatures["serving_default"]
    wanted = signature(x=tensorflow.constant(ROWS))
    found = client.infer(model, {"x": ROWS})
    np.testing.assert_allclose(found["y"], wanted["y"].numpy(), rtol=1e-6)
    if model != "listed":
        np.testing.assert_allclose(found["total"], wanted["total"].numpy(), rtol=1e-6)


def test_the_file_completes_its_configuration(client: Client) -> None:
    config = client.config("plain")
    assert (config["platform"], config["backend"], config["max_batch_size"]) == (
        "tensorflow_savedmodel",
        "tensorflow",
        4,
    )
    assert [(one["name"], one["dims"]) for one in (*config["input"], *config["output"])] == [
        ("x", [4]),
        ("total", [1]),
        ("y", [2]),
    ]


def test_another_signature_takes_text_and_its_table(client: Client) -> None:
    found = client.infer("text", {"word": WORDS.reshape(3, 1)})
    assert found["number"].ravel().tolist() == [1, -1, -1]
    assert found["loud"].ravel().tolist() == [b"ONE", b"\xffNO TEXT", b""]


@pytest.mark.parametrize("model", ["network", "exported"])
def test_a_keras_model_answers_as_keras_does(client: Client, model: str) -> None:
    left, right = ROWS, ROWS[:, 1:].copy()
    first, second = network()([left, right], training=False)
    found = client.infer(model, {"left": left, "right": right})
    np.testing.assert_allclose(found["a"], first, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["b"], second, rtol=1e-5, atol=1e-6)


def test_keras_models_have_their_own_names(tmp_path: Path) -> None:
    for model, inputs, outputs in (
        (sequence(), {"x": ROWS}, {"y": sequence()(ROWS)}),
        (keyed(), {"left": ROWS, "right": ROWS}, {"sum": ROWS + ROWS, "product": ROWS * ROWS}),
        (looked_up(), {"word": np.array([[b"two"], [b"no"]], dtype=object)}, {"number": np.array([[2], [0]])}),
    ):
        model.save(tmp_path / "model.keras")
        found = opened(tmp_path / "model.keras").run(inputs)
        assert list(found) == sorted(outputs)
        for name, wanted in outputs.items():
            np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=1e-6)


def test_code_in_a_keras_file_runs_where_it_is_allowed(client: Client) -> None:
    doubled = sequence(keras.layers.Lambda(lambda x: x * 2))(ROWS)
    np.testing.assert_allclose(client.infer("allowed", {"x": ROWS})["y"], doubled, rtol=1e-5, atol=1e-6)


def test_requests_run_together_and_get_their_own_rows(client: Client) -> None:
    single = [ROWS[at : at + 1] for at in (0, 1, 2, 0)]
    before = executions(client, "listed")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda row: client.infer("listed", {"x": row})["y"], single))
    weights = np.arange(8, dtype="f4").reshape(4, 2)
    for row, answer in zip(single, found, strict=True):
        np.testing.assert_allclose(answer, row @ weights, rtol=1e-5)
    assert executions(client, "listed") - before < 4


def test_an_ensemble_mixes_a_saved_model_and_onnx(client: Client) -> None:
    once = client.infer("listed", {"x": ROWS})["y"]
    np.testing.assert_allclose(client.infer("mixed", {"x": ROWS})["y"], once * 3, rtol=1e-6)


def test_a_row_that_fails_fails_alone(client: Client) -> None:
    bad = np.full((1, 4), np.nan, "f4")
    with pytest.raises(InferError, match="x has a number that is none") as failure:
        client.infer("plain", {"x": bad})
    assert "test_tensorflow.py" not in str(failure.value)
    assert client.infer("plain", {"x": ROWS})["y"].shape == (3, 2)


def opened(file: Path, config: str = "") -> Any:
    """A model as a worker opens it."""
    from alipes.worker.frameworks.tensorflow import open_model

    return open_model(Opening("m", file, json.loads(config_json(parse_pbtxt(config, file)))))


def refusal(file: Path, config: str = "") -> str:
    """Why a worker does not open a model."""
    with pytest.raises(LoadError) as failure:
        opened(file, config)
    return str(failure.value)


def test_a_damaged_saved_model_is_refused(saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model.savedmodel"
    shutil.copytree(saved, folder)
    content = (folder / "saved_model.pb").read_bytes()
    (folder / "saved_model.pb").write_bytes(content[: len(content) // 2])
    assert "cannot be loaded from 'model.savedmodel': the framework cannot read it" in refusal(folder)
    (folder / "saved_model.pb").write_bytes(b"")
    assert "it has no graph tagged 'serve', its tags are: none" in refusal(folder)
    (folder / "saved_model.pb").write_bytes(_of_a_newer_release(content))
    assert "tensorflow 99.0.0 wrote it, and" in refusal(folder)
    (folder / "saved_model.pb").write_bytes(content)
    shutil.rmtree(folder / "variables")
    assert "cannot be loaded from 'model.savedmodel': the framework cannot read it" in refusal(folder)
    (folder / "saved_model.pb").unlink()
    assert "it is no SavedModel, whose folder holds saved_model.pb" in refusal(folder)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (parameter("TF_SIGNATURE_DEF", "no"), "it has no signature 'no', its signatures are: look, serving_default"),
        (parameter("TF_GRAPH_TAG", "gpu"), "it has no graph tagged 'gpu', its tags are: serve"),
        (parameter("TF_NUM_INTRA_THREADS", "many"), "TF_NUM_INTRA_THREADS of model 'm' must be a number from 0 on"),
        (BATCHED.replace('"y"', '"z"'), "the configuration has output 'z', the file's outputs are: total, y"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(saved: Path, config: str, words: str) -> None:
    assert words in refusal(saved, config)


def test_operations_run_one_after_another_unless_a_parameter_says_so(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    session, seen = tensorflow.compat.v1.Session, list[tuple[int, int]]()

    def noted(**options: Any) -> Any:
        config = options["config"]
        seen.append((config.intra_op_parallelism_threads, config.inter_op_parallelism_threads))
        return session(**options)

    monkeypatch.setattr(tensorflow.compat.v1, "Session", noted)
    for config in ("", parameter("TF_NUM_INTER_THREADS", "3"), parameter("TF_NUM_INTRA_THREADS", "2")):
        opened(saved, config).close()
    assert seen == [(4, 1), (4, 3), (2, 1)]


def test_a_damaged_keras_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.keras"
    file.write_bytes(b"PK\x03\x04")
    assert "cannot be loaded from 'model.keras': the framework cannot read it (BadZipFile" in refusal(file)
    sequence().save(file)
    _change(file, "metadata.json", b'{"keras_version": "99.0.0"}')
    _change(file, "config.json", b'"Dense"', b'"LayerOfTomorrow"')
    assert "keras 99.0.0 wrote it, and" in refusal(file)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", b" " * (65 << 20))
    assert "its config.json has more than 67108864 bytes" in refusal(file)


def test_own_layers_that_a_keras_file_only_names_are_the_cause(tmp_path: Path) -> None:
    network = sequence(Twice())
    network.save(tmp_path / "model.keras")
    found = refusal(tmp_path / "model.keras")
    assert "it names class 'Twice', whose code is not Keras' and not in the file: write the model" in found
    # What it says to do.
    network.export(tmp_path / "model.savedmodel", verbose=False)
    (answer,) = opened(tmp_path / "model.savedmodel").run({"x": ROWS}).values()
    np.testing.assert_allclose(answer, network(ROWS), rtol=1e-5)


def test_own_models_and_functions_are_named_as_well(tmp_path: Path) -> None:
    whole = Whole()
    whole(ROWS)
    whole.save(tmp_path / "model.keras")
    assert "it names class 'Whole', whose code" in refusal(tmp_path / "model.keras")
    sequence(keras.layers.Dense(4, activation=twice)).save(tmp_path / "model.keras")
    assert "it names function 'twice', whose code" in refusal(tmp_path / "model.keras")


def test_own_layers_that_are_at_hand_are_no_reason_to_refuse(tmp_path: Path) -> None:
    network = sequence(Twice())
    network.save(tmp_path / "model.keras")
    with keras.saving.custom_object_scope({"Twice": Twice}):
        (answer,) = opened(tmp_path / "model.keras").run({"x": ROWS}).values()
    np.testing.assert_allclose(answer, network(ROWS), rtol=1e-5)


def test_an_old_keras_is_not_trusted_with_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sequence().save(tmp_path / "model.keras")
    monkeypatch.setattr(keras, "__version__", "3.11.0")
    assert "does not keep such a file from running code: update it to 3.12" in refusal(tmp_path / "model.keras")


def test_only_the_listed_outputs_are_computed(saved: Path) -> None:
    total = 'output [{ name: "total" data_type: TYPE_FP32 dims: [1] }]'
    assert list(opened(saved, total).run({"x": ROWS})) == ["total"]


def test_a_signature_is_read_without_tensorflow(saved: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from alipes.worker.frameworks.opened import Opening\n"
        "from alipes.worker.frameworks.tensorflow import read_signature\n"
        f"found = read_signature(Opening('m', Path({str(saved)!r}), {{}}))\n"
        "print([port.name for port in found.inputs], 'tensorflow' in sys.modules)\n"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "['x'] False\n"


def _of_a_newer_release(content: bytes) -> bytes:
    from tensorflow.core.protobuf import saved_model_pb2

    found = saved_model_pb2.SavedModel.FromString(content)
    graph = found.meta_graphs[0]
    graph.meta_info_def.tensorflow_version = "99.0.0"
    graph.graph_def.node[0].op = "OpOfTomorrow"
    return bytes(found.SerializeToString())


def _change(file: Path, name: str, old: bytes, new: bytes | None = None) -> None:
    """Changes a part of an archive: all of it, or what it has in one place."""
    with zipfile.ZipFile(file) as archive:
        parts = {one: archive.read(one) for one in archive.namelist()}
    parts[name] = old if new is None else parts[name].replace(old, new)
    with zipfile.ZipFile(file, "w") as archive:
        for one, part in parts.items():
            archive.writestr(one, part)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("truncated", "cannot be loaded from 'model.savedmodel': the framework cannot read it"),
        ("code", "start the server with --allow-pickles=code"),
        ("graph", "is a GraphDef, which is not served"),
        ("no_file", "holds no model.savedmodel or model.keras"),
    ],
)
def test_a_server_says_why_a_model_is_not_served(server: ServerProcess, model: str, words: str) -> None:
    assert words in reason(server, model)


def test_a_graph_that_writes_its_variables_is_refused(tmp_path: Path) -> None:
    made = Totals()
    signatures = {"serving_default": made.write, "read": made.read, "draw": made.draw}
    tensorflow.saved_model.save(made, str(tmp_path / "model.savedmodel"), signatures=signatures)
    from alipes.worker.frameworks.runner import start_runner

    framework = {"program": "alipes.worker.frameworks.tensorflow", "extra": "alipes[keras]"}

    def opening(signature: str, file: Path = tmp_path / "model.savedmodel") -> Opening:
        text = parameter("TF_SIGNATURE_DEF", signature) + 'output [{ name: "y" data_type: TYPE_FP32 dims: [1] }]'
        text += 'input [{ name: "x" data_type: TYPE_FP32 dims: [1] }]'
        return Opening("m", file, json.loads(config_json(parse_pbtxt(text, file))))

    with pytest.raises(LoadError, match=r"it keeps a state from one call to the next \(AssignAddVariableOp"):
        start_runner(framework, opening("serving_default"))
    for signature in ("read", "draw"):
        start_runner(framework, opening(signature)).finalize()
    stateful().save(tmp_path / "model.keras")
    with pytest.raises(LoadError, match="it keeps a state from one call to the next"):
        start_runner(framework, Opening("m", tmp_path / "model.keras", {}))
