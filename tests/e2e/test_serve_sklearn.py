"""Models of scikit-learn behind a server, from files of skops and from pickles that the operator allows by name."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from alipes import Client, InferError
from support.endpoints import ENDPOINTS
from support.forests import ROWS, add_model, labels, reason
from support.server import ServerProcess

skops: Any = pytest.importorskip("skops.io", reason="it reads files of scikit-learn: pip install 'alipes[sklearn]'")

pytestmark = [pytest.mark.extra("sklearn"), pytest.mark.timeout(300)]

DOUBLES = ROWS.astype(np.float64)
ALLOWED = "allowed", "older", "oldest"


def regression_tree() -> Any:
    """A regressor that is one tree."""
    from sklearn.tree import DecisionTreeRegressor

    return DecisionTreeRegressor(max_depth=3).fit(DOUBLES, labels("number"))


@pytest.fixture(scope="module")
def classifier() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression().fit(DOUBLES, np.where(labels("two") > 0, "yes", "no"))


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess], classifier: Any
) -> Iterator[ServerProcess]:

    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "classifier", "model.skops", skops.dumps(classifier))
    tree = regression_tree()
    add_model(repository, "tree", "model.skops", skops.dumps(tree))
    add_model(repository, "allowed", "model.pkl", pickle.dumps(tree))
    add_model(repository, "refused", "model.pkl", pickle.dumps(tree))
    here = str(import_module("sklearn").__version__).encode()
    older = pickle.dumps(classifier, protocol=0)
    add_model(repository, "older", "model.pkl", older.replace(here, b"1.0.2"))
    add_model(repository, "oldest", "model.pkl", older.replace(b"sklearn.linear_model._logistic", b"sklearn.logistic"))
    yield serve_module(repository, "--exit-on-error=false", *(f"--allow-pickles={name}" for name in ALLOWED))


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.http) as found:
        yield found


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_answers_are_scikit_learns_own(server: ServerProcess, classifier: Any, endpoint: str) -> None:
    with ENDPOINTS[endpoint](server) as peer:
        found = peer.ask("classifier", {"input": DOUBLES[:3]})
    np.testing.assert_array_equal(found["predict_proba"], classifier.predict_proba(DOUBLES[:3]))
    words = [word.decode() if isinstance(word, bytes) else word for word in found["predict"].ravel()]
    assert words == list(classifier.predict(DOUBLES[:3]))


def test_the_file_completes_its_configuration(client: Client) -> None:
    config = client.config("classifier")
    assert (config["backend"], config["default_model_filename"]) == ("sklearn", "model.skops")
    assert [(one["name"], one["data_type"]) for one in (*config["input"], *config["output"])] == [
        ("input", "TYPE_FP64"),
        ("predict", "TYPE_STRING"),
        ("predict_proba", "TYPE_FP64"),
    ]


def test_a_pickle_of_an_older_release_is_served_with_a_warning(
    server: ServerProcess, client: Client, classifier: Any
) -> None:
    found = client.infer("older", {"input": DOUBLES[:3]})
    np.testing.assert_array_equal(found["predict_proba"], classifier.predict_proba(DOUBLES[:3]))
    assert "model 'older' was written by scikit-learn 1.0.2 and is read by " in server.output


def test_a_pickle_is_served_where_it_is_allowed(client: Client) -> None:
    assert client.infer("allowed", {"input": DOUBLES[:2]})["predict"].shape == (2, 1)


def test_a_row_that_it_cannot_take_fails_alone(client: Client, classifier: Any) -> None:
    bad = np.full((1, DOUBLES.shape[1]), np.nan)
    with pytest.raises(InferError, match="NaN"):
        client.infer("classifier", {"input": bad})
    found = client.infer("classifier", {"input": DOUBLES[:1]})["predict_proba"]
    np.testing.assert_array_equal(found, classifier.predict_proba(DOUBLES[:1]))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("refused", "it holds a pickle, which can run any code while it is read"),
        ("refused", "--allow-pickles=refused"),
        ("oldest", "another release of scikit-learn wrote it, with a module 'sklearn.logistic' that the installed "),
    ],
)
def test_a_file_that_is_not_served_says_why(server: ServerProcess, model: str, words: str) -> None:
    assert words in reason(server, model)


def test_a_file_of_types_that_skops_does_not_trust_is_not_served(server: ServerProcess) -> None:
    tree = skops.dumps(regression_tree())
    if not skops.get_untrusted_types(data=tree):
        pytest.skip("this release of skops trusts trees by itself")
    assert "types that skops does not trust by itself (sklearn.tree._tree.Tree)" in reason(server, "tree")


def test_a_model_that_exports_to_onnx_says_so(server: ServerProcess) -> None:
    server.wait_for_output("model 'classifier' can be exported to ONNX, which mostly answers sooner")
