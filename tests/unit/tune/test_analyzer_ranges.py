"""What is varied in a search of Model Analyzer's YAML: of models that get requests, and of those behind them."""

from __future__ import annotations

from typing import Any

import pytest
from alipes import ConfigError
from alipes.config.pbtxt import parse_pbtxt
from alipes.tune.analyzer.plan import read_plan
from alipes.tune.analyzer.profile import check_cpu_only, ranges_of

BATCHED = parse_pbtxt("max_batch_size: 8")
SINGLE = parse_pbtxt("")
ENSEMBLE = parse_pbtxt('platform: "ensemble" max_batch_size: 8')
SWEPT = {"model_config_parameters": {"max_batch_size": [2, 4]}}
BATCHES = [1 << power for power in range(8)]


def ranges(completed: dict[str, Any], **options: Any) -> dict[str, Any]:
    few = {"run_config_search_max_instance_count": 1, "concurrency": 2}
    plan = read_plan(None, {"model_repository": "models", "profile_models": ["m"], **few, **options})
    return ranges_of(plan, plan.models, completed)


def test_a_called_model_has_the_values_that_the_file_names() -> None:
    found = ranges({"m": BATCHED, "called": BATCHED}, bls_composing_models=[{"called": SWEPT}])
    assert found["called"] == {"max_batch_size": [2, 4]}
    assert found["m"] == {"instances": [1], "max_batch_size": BATCHES, "callers": [2]}


def test_models_behind_that_no_file_names_have_the_usual_values() -> None:
    completed = {"m": ENSEMBLE, "a": BATCHED, "b": BATCHED}
    usual = {"instances": [1], "max_batch_size": BATCHES}
    assert ranges(completed, ensemble_composing_models=[{"b": SWEPT}]) == {
        "m": {"callers": [2]},
        "a": usual,
        "b": {"max_batch_size": [2, 4]},
    }
    assert ranges(completed, run_config_search_disable=True) == {"m": {"callers": [2]}, "a": {}, "b": {}}


def test_values_of_a_model_stay_where_it_is_also_named_as_one_for_the_cpu() -> None:
    options = {"bls_composing_models": [{"called": SWEPT}], "cpu_only_composing_models": ["called"]}
    assert ranges({"m": BATCHED, "called": BATCHED}, **options)["called"] == {"max_batch_size": [2, 4]}


def test_a_model_without_batches_is_searched_without_batch_sizes() -> None:
    assert ranges({"m": SINGLE})["m"] == {"instances": [1], "callers": [2]}
    assert ranges({"m": SINGLE}, profile_models={"m": SWEPT})["m"] == {"max_batch_size": [2, 4], "callers": [2]}


def test_a_model_that_gets_requests_and_is_called_keeps_its_load() -> None:
    found = ranges({"m": BATCHED}, bls_composing_models=[{"m": SWEPT}])
    assert found["m"]["callers"] == [2]
    assert found["m"]["max_batch_size"] == [2, 4]


def test_a_model_of_another_ensemble_is_left_alone() -> None:
    assert ranges({"m": BATCHED}, ensemble_composing_models=[{"stranger": SWEPT}]).keys() == {"m"}


def test_a_model_for_the_cpu_has_no_instances_on_gpus() -> None:
    own = {"m": parse_pbtxt("instance_group { kind: KIND_GPU }"), "a": parse_pbtxt("instance_group { kind: KIND_CPU }")}
    check_cpu_only({"a", "elsewhere"}, own)
    with pytest.raises(ConfigError, match="'m' is to run on the CPU"):
        check_cpu_only({"a", "m"}, own)
