"""Files of scikit-learn, opened as a worker opens them: the answers are those of scikit-learn itself."""

from __future__ import annotations

import io
import os
import pickle
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.signature import Port
from alipes.worker.loading import LoadError
from support.forests import COLUMNS, ROWS, labels, opening, tensor

sklearn: Any = pytest.importorskip("sklearn", reason="it is served: pip install 'alipes[sklearn]'")
threadpoolctl: Any = pytest.importorskip(
    "threadpoolctl", reason="scikit-learn brings it: pip install 'alipes[sklearn]'"
)
skops: Any = pytest.importorskip("skops.io", reason="it reads files of scikit-learn: pip install 'alipes[sklearn]'")
from alipes.worker.frameworks.sklearn import EXPORTED, open_model  # noqa: E402

pytestmark = pytest.mark.extra("sklearn")


def of(module: str, name: str, *arguments: Any, **options: Any) -> Any:
    """An estimator of scikit-learn's."""
    return getattr(import_module(f"sklearn.{module}"), name)(*arguments, **options)


def fitted(kind: str) -> Any:
    """An estimator that was fitted on the rows."""
    two, three, number = (labels(task) for task in ("two", "three", "number"))
    scaled = of("pipeline", "make_pipeline", of("preprocessing", "StandardScaler"), of("linear_model", "Ridge"))
    made = {
        "classifier": (of("linear_model", "LogisticRegression"), two),
        "forest": (of("ensemble", "RandomForestClassifier", 10, random_state=0, n_jobs=-1), three),
        "words": (of("tree", "DecisionTreeClassifier", max_depth=3), np.where(two > 0, "yes", "no")),
        "vectors": (of("svm", "SVC"), two),
        "regressor": (scaled, number),
        "targets": (of("linear_model", "LinearRegression"), np.stack((number, -number), 1)),
        "scaler": (of("preprocessing", "StandardScaler"), None),
        "clusters": (of("cluster", "KMeans", 3, n_init=1, random_state=0), None),
        "gaussians": (of("neighbors", "KernelDensity"), None),
        "encoder": (
            of("preprocessing", "KBinsDiscretizer", 3, encode="onehot", strategy="uniform", subsample=None),
            None,
        ),
    }
    estimator, wanted = made[kind]
    return estimator.fit(ROWS) if wanted is None else estimator.fit(ROWS, wanted)


METHODS = {
    "classifier": ["predict", "predict_proba"],
    "forest": ["predict", "predict_proba"],
    "words": ["predict", "predict_proba"],
    "vectors": ["predict"],
    "regressor": ["predict"],
    "targets": ["predict"],
    "scaler": ["transform"],
    "clusters": ["predict"],
    "gaussians": ["score_samples"],
    "encoder": ["transform"],
}


@pytest.mark.parametrize("kind", METHODS)
def test_answers_are_scikit_learns_own(tmp_path: Path, kind: str) -> None:
    source = fitted(kind)
    model = open_model(opening(tmp_path / "model.skops", skops.dumps(source), allows_pickles=True))
    assert model.signature is not None
    rows = ROWS[:5].astype({"FP32": np.float32, "FP64": np.float64}[model.signature.inputs[0].datatype])
    found = model.run({"input": rows})
    assert list(found) == METHODS[kind]
    for method, answer in found.items():
        expected = getattr(source, method)(rows)
        expected = expected.toarray() if hasattr(expected, "toarray") else expected
        np.testing.assert_array_equal(answer, expected.reshape(5, -1))


def test_the_file_says_what_goes_in_and_out(tmp_path: Path) -> None:
    found = open_model(opening(tmp_path / "model.skops", skops.dumps(fitted("classifier")))).signature
    assert found is not None
    assert found.inputs == (Port("input", "FP64", (-1, COLUMNS)),)
    assert found.outputs == (Port("predict", "INT64", (-1, 1)), Port("predict_proba", "FP64", (-1, 2)))
    words = open_model(opening(tmp_path / "model.skops", skops.dumps(fitted("words")), allows_pickles=True)).signature
    assert words is not None and words.outputs[0] == Port("predict", "BYTES", (-1, 1))


def test_the_configuration_chooses_methods_and_datatype(tmp_path: Path) -> None:
    source = fitted("classifier")
    listed = {"input": [tensor("rows", COLUMNS)], "output": [tensor("decision_function", 1, kind="FP64")]}
    model = open_model(opening(tmp_path / "model.skops", skops.dumps(source), **listed))
    assert model.signature is not None and model.signature.inputs == (Port("rows", "FP32", (-1, COLUMNS)),)
    found = model.run({"rows": ROWS[:5]})
    np.testing.assert_array_equal(found["decision_function"][:, 0], source.decision_function(ROWS[:5]))


def test_sentences_go_into_a_pipeline_of_texts(tmp_path: Path) -> None:
    texts = ["good film", "bad film", "good book", "bad böok"]
    steps = (of("feature_extraction.text", "TfidfVectorizer"), of("linear_model", "LogisticRegression"))
    source = of("pipeline", "make_pipeline", *steps).fit(texts, [1, 0, 1, 0])
    document = skops.dumps(source)
    assert open_model(opening(tmp_path / "model.skops", document, allows_pickles=True)).signature is None
    listed = {"input": [tensor("text", 1, kind="STRING")]}
    model = open_model(opening(tmp_path / "model.skops", document, allows_pickles=True, **listed))
    assert model.signature is not None and model.signature.outputs[1] == Port("predict_proba", "FP64", (-1, 2))
    sent = np.array([text.encode() for text in texts], object).reshape(-1, 1)
    np.testing.assert_array_equal(model.run({"text": sent})["predict_proba"], source.predict_proba(texts))
    with pytest.raises(UnicodeDecodeError):
        model.run({"text": np.array([[b"\xff"]], object)})


def test_named_columns_are_inputs_of_their_own(tmp_path: Path) -> None:
    pandas: Any = pytest.importorskip("pandas")
    table = pandas.DataFrame({"age": ROWS[:, 0], "town": np.where(ROWS[:, 1] > 0, "Rome", "Oslo")})
    columns = of(
        "compose", "ColumnTransformer", [("t", of("preprocessing", "OneHotEncoder"), ["town"])], remainder="passthrough"
    )
    source = of("pipeline", "make_pipeline", columns, of("linear_model", "LogisticRegression")).fit(
        table, labels("two")
    )
    outputs = [tensor("predict", 1, kind="INT64"), tensor("predict_proba", 2, kind="FP64")]
    listed = {"input": [tensor("age", 1), tensor("town", 1, kind="STRING")], "output": outputs}
    file = io.BytesIO()
    pickle.dump(source, file)
    model = open_model(opening(tmp_path / "model.pkl", file.getvalue(), allows_pickles=True, **listed))
    towns = np.array([town.encode() for town in table["town"]], object).reshape(-1, 1)
    found = model.run({"age": ROWS[:, :1], "town": towns})
    np.testing.assert_array_equal(found["predict_proba"], source.predict_proba(table))
    other = {"input": [tensor("age", 1), tensor("city", 1, kind="STRING")], "output": outputs}
    with pytest.raises(
        LoadError, match=r"one matrix, or columns under the names that it was fitted with \(age, town\)"
    ):
        open_model(opening(tmp_path / "model.pkl", file.getvalue(), allows_pickles=True, **other))


def refusal(file: Path, document: bytes, **more: Any) -> str:
    with pytest.raises(LoadError) as caught:
        open_model(opening(file, document, **more))
    return str(caught.value)


@pytest.mark.parametrize("name", ["model.pkl", "model.joblib"])
def test_a_pickle_needs_permission(tmp_path: Path, name: str) -> None:
    source = fitted("classifier")
    joblib: Any = import_module("joblib")
    joblib.dump(source, tmp_path / "saved")
    document = pickle.dumps(source) if name == "model.pkl" else (tmp_path / "saved").read_bytes()
    refused = refusal(tmp_path / name, document)
    assert "it holds a pickle, which can run any code while it is read" in refused and "--allow-pickles=m" in refused
    model = open_model(opening(tmp_path / name, document, allows_pickles=True))
    np.testing.assert_array_equal(model.run({"input": ROWS})["predict"][:, 0], source.predict(ROWS))


class _Trap:
    """Unpickled, it leaves a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


def test_a_pickle_that_is_not_allowed_runs_nothing(tmp_path: Path) -> None:
    refusal(tmp_path / "model.pkl", pickle.dumps(_Trap(tmp_path / "mark")))
    assert not (tmp_path / "mark").exists()


def test_untrusted_types_are_listed_and_can_be_allowed(tmp_path: Path) -> None:
    estimator = of("preprocessing", "FunctionTransformer", np.fft.fftfreq)
    document = skops.dumps(of("pipeline", "make_pipeline", estimator, of("linear_model", "Ridge")))
    [untrusted] = skops.get_untrusted_types(data=document)
    refused = refusal(tmp_path / "model.skops", document)
    assert f"types that skops does not trust by itself ({untrusted})" in refused and "--allow-pickles=m" in refused


@pytest.mark.parametrize("document", [b"", b"a note", b"PK\x03\x04 half an archive"])
def test_a_damaged_file_is_refused(tmp_path: Path, document: bytes) -> None:
    for name in ("model.skops", "model.pkl"):
        refused = refusal(tmp_path / name, document, allows_pickles=True)
        assert f"cannot be loaded from '{name}': the framework cannot read it" in refused


def test_what_is_no_estimator_is_refused(tmp_path: Path) -> None:
    refused = refusal(tmp_path / "model.skops", skops.dumps({"a": 1}))
    assert "what it holds has none of the methods predict, predict_proba, transform" in refused


def test_an_estimator_that_was_not_fitted_is_refused(tmp_path: Path) -> None:
    refused = refusal(tmp_path / "model.skops", skops.dumps(of("linear_model", "Ridge")))
    assert refused.endswith("Ridge was not fitted before it was written: call fit first")


def test_a_file_that_answers_nothing_for_zeros_needs_a_configuration(tmp_path: Path) -> None:
    words = np.array([[b"red"], [b"blue"]], object)
    document = skops.dumps(of("preprocessing", "OneHotEncoder").fit([["red"], ["blue"]]))
    listed = {"input": [tensor("input", 1, kind="STRING")]}
    refused = refusal(tmp_path / "model.skops", document, **listed)
    assert "it fails on a row of zeros (ValueError: Found unknown categories" in refused
    assert "list inputs and outputs in config.pbtxt" in refused
    listed["output"] = [tensor("transform", 2, kind="FP64")]
    found = open_model(opening(tmp_path / "model.skops", document, **listed)).run({"input": words})
    np.testing.assert_array_equal(found["transform"], [[0, 1], [1, 0]])


def test_a_package_that_a_pickle_needs_is_named(tmp_path: Path) -> None:
    refused = refusal(tmp_path / "model.pkl", b"calipes_of_tomorrow\nModel\n.", allows_pickles=True)
    assert "what it holds is of the package 'alipes_of_tomorrow', which is not installed" in refused
    # A module that releases of scikit-learn before 0.22 had.
    refused = refusal(
        tmp_path / "model.pkl", b"csklearn.ensemble.forest\nRandomForestRegressor\n.", allows_pickles=True
    )
    assert "another release of scikit-learn wrote it, with a module 'sklearn.ensemble.forest'" in refused
    refused = refusal(tmp_path / "model.pkl", b"cnumpy._coming\nscalar\n.", allows_pickles=True)
    assert (
        f"another release of numpy wrote it, with a module 'numpy._coming' that the installed {np.__version__}"
        in refused
    )


class _TreeOfOldRelease:
    """Pickled, it is the tree of an estimator as releases before 1.3 wrote it: its nodes lack a field."""

    def __init__(self, tree: Any) -> None:
        self._tree = tree

    def __reduce__(self) -> Any:
        kind, arguments, state = self._tree.__reduce__()
        nodes = state["nodes"]
        older = [field for field in nodes.dtype.descr if field[0] and field[0] != "missing_go_to_left"]
        return kind, arguments, {**state, "nodes": np.zeros(len(nodes), older)}


def test_parts_that_the_installed_release_does_not_read_are_of_another(tmp_path: Path) -> None:
    words = fitted("words")
    words.tree_ = _TreeOfOldRelease(words.tree_)
    refused = refusal(tmp_path / "model.pkl", pickle.dumps(words), allows_pickles=True)
    does_not_read = f"the installed scikit-learn {sklearn.__version__} does not read what another release wrote "
    assert f"{does_not_read}(ValueError: node array from the pickle has an incompatible dtype" in refused
    assert refused.endswith(
        "): install the release that wrote it, or save it again with that one, as model.skops or as ONNX"
    )
    refused = refusal(tmp_path / "model.pkl", b"csklearn.linear_model\nGone\n.", allows_pickles=True)
    assert f"{does_not_read}(AttributeError: " in refused
    # Newer pickles look names up in another way.
    document = b"\x80\x04\x8c\x14sklearn.linear_model\x8c\x04Gone\x93."
    assert f"{does_not_read}(AttributeError: " in refusal(tmp_path / "model.pkl", document, allows_pickles=True)
    # What is damaged is of no release.
    assert does_not_read not in refusal(tmp_path / "model.pkl", pickle.dumps(fitted("words"))[:-9], allows_pickles=True)


def written_by(version: str) -> bytes:
    """A pickle that says which release wrote it."""
    document = pickle.dumps(fitted("classifier"), protocol=0)
    here = str(sklearn.__version__).encode()
    assert here in document
    return document.replace(here, version.encode())


def test_a_file_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    refused = refusal(tmp_path / "model.pkl", written_by("99.1.0"), allows_pickles=True)
    assert f"scikit-learn 99.1.0 wrote it, and {sklearn.__version__} is installed" in refused
    assert "pip install --upgrade 'scikit-learn>=99.1.0'" in refused


def test_a_file_of_an_older_release_is_served(tmp_path: Path) -> None:
    model = open_model(opening(tmp_path / "model.pkl", written_by("1.0.2"), allows_pickles=True))
    assert len(model.run({"input": ROWS})["predict"]) == len(ROWS)


def test_threads_are_the_instances(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    model = open_model(opening(tmp_path / "model.skops", skops.dumps(fitted("forest")), allows_pickles=True))
    assert model._found.n_jobs == 1


def test_an_estimator_with_threads_takes_as_many_as_an_execution_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    forest = fitted("forest").set_params(n_jobs=-1)
    model = open_model(opening(tmp_path / "model.skops", skops.dumps(forest), allows_pickles=True))
    assert (model.adapts_threads, model._found.n_jobs) == (True, 3)
    try:
        model.set_threads(1)
        assert model._found.n_jobs == 1
        assert {library["num_threads"] for library in threadpoolctl.threadpool_info()} == {1}
    finally:
        model.set_threads(os.cpu_count() or 1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(EXPORTED))
def test_what_is_known_to_export_answers_the_same(name: str) -> None:
    skl2onnx: Any = pytest.importorskip("skl2onnx")
    onnxruntime: Any = import_module("onnxruntime")
    [kind] = {kind for _, kind in sklearn.utils.all_estimators() if kind.__name__ == name}
    small = {"n_estimators": 10, "n_clusters": 3, "max_iter": 300, "random_state": 0}
    estimator = kind()
    estimator.set_params(**{key: value for key, value in small.items() if key in estimator.get_params()})
    estimator.fit(ROWS, labels("number" if sklearn.base.is_regressor(estimator) else "two"))
    made = skl2onnx.to_onnx(estimator, ROWS[:1], options={"zipmap": False} if hasattr(estimator, "classes_") else None)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: ROWS})[0].reshape(len(ROWS))
    expected = estimator.predict(ROWS)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    else:
        assert (found == expected).mean() > 0.99


def test_what_exports_is_known_to_skl2onnx() -> None:
    known: Any = import_module("skl2onnx._supported_operators").sklearn_operator_name_map
    assert {kind.__name__ for kind in known} >= EXPORTED
