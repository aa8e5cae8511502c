"""Which file each backend of trees opens, with which program, and what it refuses before any process starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from alipes.backends.base import Draft
from alipes.backends.prepare import prepare_version
from alipes.backends.registry import backend_of
from alipes.config.load import parse_flags
from alipes.config.poll import poll_model
from alipes.errors import ConfigError

LISTED = """
input { name: "i" data_type: TYPE_FP32 dims: [2] }
output { name: "o" data_type: TYPE_FP32 dims: [1] }
"""


def setup(folder: Path, file: str, config: str = LISTED, *flags: str) -> dict[str, Any]:
    """What a worker of model `m` is told, whose version 1 holds one file."""
    (folder / "m" / "1").mkdir(parents=True)
    (folder / "m" / "1" / file).write_text("")
    (folder / "m" / "config.pbtxt").write_text(config)
    options = parse_flags(["models", *flags], {})
    draft = Draft(poll_model(folder / "m", "m", options), folder / "m", 1, options)
    return dict(prepare_version(draft, backend_of=backend_of).spec["engine"]["setup"])


def parameter(value: str) -> str:
    return f'{LISTED} backend: "fil" parameters {{ key: "model_type" value {{ string_value: "{value}" }} }}'


@pytest.mark.parametrize(
    ("file", "backend"),
    [
        ("model.ubj", "xgboost"),
        ("model.json", "xgboost"),
        ("model.txt", "lightgbm"),
        ("model.cbm", "catboost"),
        ("model.skops", "sklearn"),
        ("model.joblib", "sklearn"),
        ("model.pkl", "sklearn"),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_the_file_says_which_backend_it_is_for(tmp_path: Path, file: str, backend: str, named: bool) -> None:
    found = setup(tmp_path, file, LISTED + (f'backend: "{backend}"' if named else ""))
    assert found["model_file"] == str(tmp_path / "m" / "1" / file)
    assert found["framework"] == {
        "program": f"alipes.worker.frameworks.{backend}",
        "extra": f"alipes[{backend}]",
        "allows_pickles": False,
        "adapts_threads": True,
    }


def test_a_file_may_have_another_name(tmp_path: Path) -> None:
    found = setup(tmp_path, "churn.bin", f'{LISTED} backend: "xgboost" default_model_filename: "churn.bin"')
    assert found["model_file"] == str(tmp_path / "m" / "1" / "churn.bin")


def test_a_pickle_is_allowed_by_the_models_name(tmp_path: Path) -> None:
    assert setup(tmp_path / "a", "model.pkl", LISTED, "--allow-pickles=m")["framework"]["allows_pickles"] is True
    assert setup(tmp_path / "b", "model.pkl", LISTED, "--allow-pickles=n")["framework"]["allows_pickles"] is False


@pytest.mark.parametrize(
    ("kind", "file"),
    [
        ("xgboost", "xgboost.model"),
        ("xgboost_json", "xgboost.json"),
        ("xgboost_ubj", "xgboost.ubj"),
        ("lightgbm", "model.txt"),
    ],
)
def test_fils_types_have_files_of_their_own(tmp_path: Path, kind: str, file: str) -> None:
    found = setup(tmp_path, file, parameter(kind))
    assert found["model_file"] == str(tmp_path / "m" / "1" / file)
    assert found["framework"]["program"] == "alipes.worker.frameworks.fil"


def test_fils_type_is_xgboost_where_none_is_named(tmp_path: Path) -> None:
    found = setup(tmp_path, "xgboost.model", f'{LISTED} backend: "fil"')
    assert found["model_file"].endswith("xgboost.model")


def test_fils_file_may_have_another_name(tmp_path: Path) -> None:
    found = setup(tmp_path, "model.json", f'{parameter("xgboost_json")} default_model_filename: "model.json"')
    assert found["model_file"].endswith("model.json")


def test_treelites_files_are_refused_with_the_way_forward(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="files of Treelite are not served; save the model in the format of the lib"):
        setup(tmp_path, "checkpoint.tl", parameter("treelite_checkpoint"))


def test_an_unknown_type_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must be one of xgboost, xgboost_json, xgboost_ubj, lightgbm, got 'cuml'"):
        setup(tmp_path, "model.txt", parameter("cuml"))


def test_a_file_of_another_type_is_missed_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no xgboost\.json"):
        setup(tmp_path, "model.txt", parameter("xgboost_json"))
