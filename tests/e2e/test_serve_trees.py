"""Models of trees behind a server: the file is all it takes, and rows of many requests run together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from alipes import Client, InferError
from support.endpoints import ENDPOINTS
from support.forests import COLUMNS, ROWS, add_model, labels, reason, train_lightgbm, train_xgboost
from support.server import ServerProcess

xgboost: Any = pytest.importorskip("xgboost", reason="it is served: pip install 'alipes[xgboost]'")
catboost: Any = pytest.importorskip("catboost", reason="it is served: pip install 'alipes[catboost]'")

pytestmark = [pytest.mark.extra("trees"), pytest.mark.timeout(300)]

FIL = f"""backend: "fil"
max_batch_size: 32768
input {{ name: "input__0" data_type: TYPE_FP32 dims: [{COLUMNS}] }}
output {{ name: "output__0" data_type: TYPE_FP32 dims: [1] }}
instance_group {{ kind: KIND_AUTO }}
dynamic_batching {{ }}
"""


@pytest.fixture(scope="module")
def booster() -> Any:
    return train_xgboost("binary:logistic", "two")


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess], booster: Any
) -> Iterator[ServerProcess]:
    repository = tmp_path_factory.mktemp("models")
    document = bytes(booster.save_raw("ubj"))
    add_model(repository, "xgboost", "model.ubj", document)
    add_model(repository, "lightgbm", "model.txt", train_lightgbm("binary", "two").model_to_string().encode())
    add_model(repository, "catboost", "model.cbm", b"")
    trained = catboost.CatBoostClassifier(iterations=20, verbose=False, allow_writing_files=False, thread_count=1)
    trained.fit(ROWS, labels("two")).save_model(str(repository / "catboost" / "1" / "model.cbm"))
    add_model(
        repository, "fil", "xgboost.json", bytes(booster.save_raw("json")), FIL,
        {"model_type": "xgboost_json", "output_class": "true", "threshold": "0.6"},
    )  # fmt: skip
    add_model(repository, "treelite", "checkpoint.tl", b"", FIL, {"model_type": "treelite_checkpoint"})
    add_model(repository, "truncated", "model.ubj", document[:5000])
    add_model(
        repository,
        "other_columns",
        "xgboost.ubj",
        document,
        FIL.replace(f"[{COLUMNS}]", "[7]"),
        {"model_type": "xgboost_ubj"},
    )
    yield serve_module(repository, "--exit-on-error=false")


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.http) as found:
        yield found


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_predictions_are_xgboosts_own(server: ServerProcess, booster: Any, endpoint: str) -> None:
    with ENDPOINTS[endpoint](server) as peer:
        found = peer.ask("xgboost", {"input": ROWS[:3]})["predict"]
    np.testing.assert_array_equal(found[:, 0], booster.predict(xgboost.DMatrix(ROWS[:3])))


def test_predictions_are_lightgbms_own(client: Client) -> None:
    expected = train_lightgbm("binary", "two").predict(ROWS[:3])
    np.testing.assert_array_equal(client.infer("lightgbm", {"input": ROWS[:3]})["predict"][:, 0], expected)


def test_predictions_are_catboosts_own(client: Client) -> None:
    trained = catboost.CatBoostClassifier(iterations=20, verbose=False, allow_writing_files=False, thread_count=1)
    trained.fit(ROWS, labels("two"))
    found = client.infer("catboost", {"input": ROWS[:3]})
    np.testing.assert_allclose(found["predict_proba"], trained.predict_proba(ROWS[:3]), rtol=1e-12)
    np.testing.assert_array_equal(found["predict"][:, 0], trained.predict(ROWS[:3]))


def test_tritons_layout_is_served_as_it_is(client: Client, booster: Any) -> None:
    expected = booster.predict(xgboost.DMatrix(ROWS[:3])) > 0.6
    np.testing.assert_array_equal(client.infer("fil", {"input__0": ROWS[:3]})["output__0"][:, 0], expected)


def test_the_file_completes_its_configuration(client: Client) -> None:
    config = client.config("xgboost")
    assert (config["backend"], config["default_model_filename"]) == ("xgboost", "model.ubj")
    assert [(one["name"], one["data_type"], one["dims"]) for one in (*config["input"], *config["output"])] == [
        ("input", "TYPE_FP32", [COLUMNS]),
        ("predict", "TYPE_FP32", [1]),
    ]
    assert "dynamic_batching" in config


def test_concurrent_rows_get_their_own_answers(client: Client, booster: Any) -> None:
    expected = booster.predict(xgboost.DMatrix(ROWS[:64]))
    with ThreadPoolExecutor(16) as pool:
        found = list(
            pool.map(lambda at: client.infer("xgboost", {"input": ROWS[at : at + 1]})["predict"][0, 0], range(64))
        )
    np.testing.assert_array_equal(found, expected)


def test_a_row_of_another_width_fails_alone(client: Client) -> None:
    with pytest.raises(InferError, match="input"):
        client.infer("xgboost", {"input": ROWS[:1, :4]})
    assert client.infer("xgboost", {"input": ROWS[:1]})["predict"].shape == (1, 1)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("treelite", "files of Treelite are not served"),
        ("truncated", "cannot be loaded from 'model.ubj': it ends in the middle: copy the whole file"),
        ("other_columns", "input 'input__0': the configuration has shape [-1, 7], the file [-1, 6]"),
    ],
)
def test_what_cannot_be_served_says_why(server: ServerProcess, model: str, words: str) -> None:
    assert words in reason(server, model)
