"""Model Analyzer's YAML beside the real Model Analyzer: the same options, values, combinations and columns."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from alipes import ConfigError
from alipes.config.override import from_document
from alipes.config.pbtxt import to_pbtxt
from alipes.tune.analyzer import tables
from alipes.tune.analyzer.options import FIGURE_OF_METRIC, OPTIONS, OPTIONS_OF_REPORT
from alipes.tune.analyzer.plan import ModelPlan, Plan, read_plan
from alipes.tune.variant import changed
from support.checkout import ROOT
from support.switched import environment_of

FOLDER = environment_of("model-analyzer")
PROGRAM = ROOT / "tests" / "support" / "analyzer_real.py"

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(FOLDER is None, reason="Model Analyzer is not there: `make clients` brings it"),
]

SWEPT = {
    "max_batch_size": [4, 8],
    "dynamic_batching": {"max_queue_delay_microseconds": [0, 200], "preferred_batch_size": [[4], [4, 8]]},
    "instance_group": [{"kind": "KIND_CPU", "count": [1, 2]}],
}
GROUPS = {
    "instance_group": [[{"kind": "KIND_CPU", "count": 1}], [{"kind": "KIND_CPU", "count": 2}]],
    "dynamic_batching": {},
}
MODELS: Mapping[str, Any] = {
    "names": "a,b",
    "a list": ["a", "b"],
    "loads": {"a": {"parameters": {"concurrency": "1,2,4", "batch_sizes": {"start": 2, "stop": 8, "step": 3}}}},
    "one load": {"a": {"parameters": {"concurrency": 3}}},
    "rates of a model": {"a": {"parameters": {"request_rate": [16, 32]}}},
    "a sweep": {"a": {"model_config_parameters": SWEPT}},
    "groups": {"a": {"model_config_parameters": GROUPS}},
    "parameters": {"a": {"model_config_parameters": {"optimization": {"graph": {"level": [0, 1]}}}}},
    "goals": {
        "a": {"objectives": ["perf_throughput", "perf_latency_p99"], "constraints": {"perf_throughput": {"min": 3}}},
    },
    "weighted goals": {"a": {"objectives": {"perf_throughput": 3, "cpu_used_ram": 1}, "weighting": 3}, "b": {}},
}
OPTIONS_OF_ALL: Mapping[str, Any] = {
    "nothing": {},
    "budgets": {"latency_budget": 30, "min_throughput": 100},
    "a budget besides": {"constraints": {"perf_latency_p90": {"max": 20}}, "latency_budget": 30},
    "ends": {"run_config_search_max_concurrency": 16, "run_config_search_min_instance_count": 2},
    "rates": {"request_rate_search_enable": True, "run_config_search_max_request_rate": 64},
    "an end of rates": {"run_config_search_max_request_rate": 64},
    "loads": {"concurrency": [1, 8], "batch_sizes": [1, 16]},
    "no search": {"run_config_search_disable": True},
    "quick": {"run_config_search_mode": "quick"},
    "columns": {"inference_output_fields": ["model_name", "perf_latency_avg", "cpu_used_ram"]},
}
# Values that are texts the real one looks at later, when it uses them.
WRONG: Mapping[str, Any] = {
    "no such option": {"run_config_search_mod": "quick"},
    "a weight of all": {"weighting": 3},
    "no such option of a model": {"profile_models": {"a": {"parametres": {}}}},
    "no models": {"profile_models": None},
    "a text for a number": {"run_config_search_max_instance_count": "many"},
    "a constraint without an end": {"constraints": {"perf_throughput": 3}},
    "languages": {"genai_perf_flags": {"a": 1}},
}


def real(path: Path) -> dict[str, Any] | None:
    """What the real one makes of a file; none where it refuses it."""
    assert FOLDER is not None
    command = [str(FOLDER / "bin" / "python"), str(PROGRAM), str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False, cwd=path.parent)
    return dict(json.loads(ran.stdout)) if ran.returncode == 0 else None


@pytest.fixture
def both(tmp_path: Path) -> Any:
    """Has both read a file with these options."""

    def read(options: Mapping[str, Any]) -> tuple[Plan | None, dict[str, Any] | None]:
        (tmp_path / "models").mkdir()
        base = {"model_repository": str(tmp_path / "models"), "profile_models": ["a"]}
        path = tmp_path / "options.yaml"
        path.write_text(json.dumps({**base, **options}))  # each JSON document is one of YAML
        try:
            ours: Plan | None = read_plan(None, {**base, **options})
        except ConfigError:
            ours = None
        return ours, real(path)

    return read


@pytest.mark.parametrize("name", [*MODELS, *OPTIONS_OF_ALL])
def test_a_file_is_read_alike(both: Any, name: str) -> None:
    options = {"profile_models": MODELS[name]} if name in MODELS else OPTIONS_OF_ALL[name]
    ours, theirs = both(options)
    assert ours is not None and theirs is not None
    values = theirs["values"]
    assert (ours.search, ours.protocol, ours.configs) == (
        values["run_config_search_mode"],
        values["client_protocol"],
        values["num_configs_per_model"],
    )
    assert (ours.filename, ours.filename_gpu, ours.filename_server) == tuple(
        values[f"filename_{table}"] for table in ("model_inference", "model_gpu", "server_only")
    )
    assert list(ours.fields) == values["inference_output_fields"]
    assert [model.name for model in ours.models] == list(theirs["models"])
    for model in ours.models:
        assert_alike(model, theirs["models"][model.name], values, searches="run_config_search_disable" not in options)


def assert_alike(model: ModelPlan, theirs: Mapping[str, Any], values: Mapping[str, Any], *, searches: bool) -> None:
    """The same loads, configurations, objectives, constraints and weight."""
    parameters = theirs["parameters"]
    if parameters["request_rate"] or "request_rate" in model.ranges:
        assert model.ranges["request_rate"] == (parameters["request_rate"] or doubled(values, "request_rate"))
    else:
        swept = doubled(values, "concurrency") if searches else [1]
        assert model.ranges["callers"] == (parameters["concurrency"] or swept)
    assert model.ranges.get("rows", [1]) == parameters["batch_sizes"]
    if theirs["combinations"]:
        assert configurations(model) == {to_pbtxt(from_document(one)) for one in theirs["combinations"]}
    elif searches:
        least, most = (values[f"run_config_search_{end}_instance_count"] for end in ("min", "max"))
        assert model.ranges["instances"] == list(range(least, most + 1))
        assert model.ranges["max_batch_size"] == doubled(values, "model_batch_size")
    assert [(one.metric, one.weight) for one in model.goal.objectives] == [
        (FIGURE_OF_METRIC[name], weight) for name, weight in theirs["objectives"].items()
    ]
    assert {(one.metric, one.kind, one.bound) for one in model.goal.limits} == {
        (FIGURE_OF_METRIC[name], "at least" if end == "min" else "at most", bound)
        for name, ends in theirs["constraints"].items()
        for end, bound in ends.items()
    }
    assert model.weight == theirs["weighting"]


def doubled(values: Mapping[str, Any], what: str) -> list[int]:
    """From the least that is searched on, twice as much each time."""
    least, most = (values[f"run_config_search_{end}_{what}"] for end in ("min", "max"))
    return list(itertools.takewhile(lambda value: value <= most, (least << power for power in itertools.count())))


def configurations(model: ModelPlan) -> set[str]:
    """Every configuration that the values of the knobs make."""
    knobs = [knob for knob in model.ranges if knob not in Plan.load_knobs]
    rows = itertools.product(*(model.ranges[knob] for knob in knobs))
    return {to_pbtxt(changed(from_document({}), dict(zip(knobs, row, strict=True)))) for row in rows}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_refused_by_both(both: Any, name: str) -> None:
    assert both(WRONG[name]) == (None, None)


def test_options_and_columns_are_those_of_the_real_one(both: Any) -> None:
    _, theirs = both({})
    assert theirs is not None
    assert set(theirs["options"]) == {*OPTIONS, "model_type", "triton_launch_mode", "config_file"}
    assert set(theirs["options_of_report"]) - set(theirs["options"]) == set(OPTIONS_OF_REPORT)
    assert set(FIGURE_OF_METRIC) <= set(theirs["metrics"])
    assert {field: theirs["headers"].get(field) for field in tables.HEADERS} == tables.HEADERS
    assert set(tables.GPU_FIELDS) <= set(theirs["values"]["gpu_output_fields"])
    assert set(tables.SERVER_FIELDS) <= set(theirs["values"]["server_output_fields"])
