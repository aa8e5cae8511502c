"""Searches of `alipes model_analyzer profile` with real servers: what they serve, vary and name."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from alipes.config.pbtxt import read_config
from alipes.loadtest import Measuring
from alipes.tune import Outcome, Rejected
from alipes.tune.analyzer.plan import read_plan
from alipes.tune.analyzer.profile import profile
from support.models import add_model, times
from support.python_models import add_python_model

pytestmark = pytest.mark.slow("starts a server for each configuration")

CONFIG = """
max_batch_size: 4
instance_group { count: 1 kind: KIND_CPU }
"""
# Asks another model for what it answers.
CALLER = """
class TritonPythonModel:
    def execute(self, requests):
        return [self.asked(pb_utils.get_input_tensor_by_name(request, "X")) for request in requests]

    def asked(self, rows):
        call = pb_utils.InferenceRequest(model_name="double", requested_output_names=["Y"], inputs=[rows])
        return call.exec()
"""

# Asks the model that a request names; random names are none.
ROUTER = """
class TritonPythonModel:
    def execute(self, requests):
        return [self.routed(request) for request in requests]

    def routed(self, request):
        name = pb_utils.get_input_tensor_by_name(request, "NAME").as_numpy()[0].decode()
        rows = pb_utils.get_input_tensor_by_name(request, "X")
        call = pb_utils.InferenceRequest(model_name=name, requested_output_names=["Y"], inputs=[rows])
        return call.exec()
"""


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    add_model(folder, "double", times())
    (folder / "double" / "config.pbtxt").write_text(CONFIG)
    return folder


class Searched:
    """What a file's options found: outcomes, rejected points, rows of the table by column, files."""

    def __init__(self, models: Path, **options: Any) -> None:
        out = models.parent / "out"
        folders = {"output_model_repository_path": str(out / "models"), "export_path": str(out)}
        plan = read_plan(
            None, {"model_repository": str(models), "checkpoint_directory": str(out), **folders, **options}
        )
        self.seen: list[Outcome | Rejected] = []
        (self.results, *_), self.written = profile(plan, measuring=Measuring(count=20), each=self.seen.append)
        with (out / "results" / "metrics-model-inference.csv").open() as file:
            self.rows = [row for row in csv.DictReader(file) if row["Model"]]

    def values(self, model: str, knob: str) -> list[Any]:
        """What was tried of a knob, in turn; none where a model was left as it is."""
        return [one.point.of_model(model).get(knob) for one in self.seen]


def swept(*counts: int) -> dict[str, Any]:
    return {"model_config_parameters": {"instance_group": [{"kind": "KIND_CPU", "count": list(counts)}]}}


def test_the_models_that_a_python_model_calls_are_served_and_varied(models: Path) -> None:
    add_python_model(models, "caller", CALLER, signature="X: FP32[1, 2] -> Y: FP32[1, 2]")
    found = Searched(
        models,
        profile_models={"caller": {"parameters": {"concurrency": 1}}},
        run_config_search_max_instance_count=1,
        bls_composing_models=[{"double": swept(1, 2)}],
    )
    assert [one.failure for one in found.results.outcomes] == [""] * 3
    assert {*found.values("double", "instances")} == {None, 1, 2}, "as it is, and as the file says"
    assert {row["Model"] for row in found.rows} == {"caller"}
    configs = {path.parent.name for path in found.written if path.name == "config.pbtxt"}
    assert {name.partition("_config_")[0] for name in configs} == {"caller", "double"}


def test_a_python_model_gets_the_data_of_the_flags_of_perf_analyzer(models: Path) -> None:
    add_model(models, "triple", times(3))
    add_python_model(models, "caller", ROUTER, signature="NAME: BYTES[1]; X: FP32[1, 2] -> Y: FP32[1, 2]")
    data = models.parent / "input_data.json"
    steps = [{"NAME": [name], "X": {"content": [1, 2], "shape": [1, 2]}} for name in ("double", "triple")]
    data.write_text(json.dumps({"data": steps}))
    options: dict[str, Any] = {
        "profile_models": "caller",
        "bls_composing_models": "double,triple",
        "run_config_search_disable": True,
        "override_output_model_repository": True,
    }
    found = Searched(models, **options, perf_analyzer_flags={"input-data": str(data)})
    assert [one.failure for one in found.results.outcomes] == [""]
    data.write_text(json.dumps({"data": [{"X": [1, 2]}]}))
    refused = Searched(models, **options, perf_analyzer_flags={"input-data": str(data)})
    assert "missing tensor NAME" in refused.results.outcomes[-1].failure, "another file is another workload"


def test_the_default_configuration_is_the_own_one_under_every_load(models: Path) -> None:
    sizes = {"model_config_parameters": {"max_batch_size": [2]}, "parameters": {"concurrency": [1, 2]}}
    found = Searched(models, profile_models={"double": sizes}, num_configs_per_model=2)
    rows = sorted((row["Model Config Path"], row["Concurrency"]) for row in found.rows)
    names = ("double_config_0", "double_config_default")
    assert rows == [(name, callers) for name in names for callers in ("1", "2")]
    written, varied = (read_config(models.parent / "out" / "models" / name) for name in reversed(names))
    assert written is not None and varied is not None
    assert varied.HasField("dynamic_batching"), "a batch size that is tried brings batching with it"
    own = read_config(models / "double")
    assert own is not None
    own.name = "double_config_default"
    assert written == own
