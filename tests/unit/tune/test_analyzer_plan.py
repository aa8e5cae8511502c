"""Model Analyzer's YAML, read as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from alipes import ConfigError, Unsupported
from alipes.compat.perf_analyzer.settings import SentData
from alipes.tune import Limit, Objective
from alipes.tune.analyzer.config_values import config_values
from alipes.tune.analyzer.options import MODEL_OPTIONS, OPTIONS, OPTIONS_BEHIND, OPTIONS_OF_REPORT
from alipes.tune.analyzer.plan import read_plan

BASE: dict[str, Any] = {"model_repository": "models", "profile_models": ["m"]}


def ranges(**options: Any) -> dict[str, Any]:
    plan = read_plan(None, {**BASE, **options})
    return dict(plan.models[0].ranges)


def test_without_lists_it_searches_the_original_ranges() -> None:
    assert ranges() == {
        "instances": [1, 2, 3, 4, 5],
        "max_batch_size": [1, 2, 4, 8, 16, 32, 64, 128],
        "callers": [1 << power for power in range(11)],
    }
    assert ranges(run_config_search_max_instance_count=2, run_config_search_min_model_batch_size=4)["instances"] == [
        1,
        2,
    ]
    assert ranges(run_config_search_disable=True) == {"callers": [1]}
    assert ranges(request_rate_search_enable=True)["request_rate"] == [1 << power for power in range(4, 14)]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (3, [3]),
        ("1,2", [1, 2]),
        ([1, 8], [1, 8]),
        ({"start": 2, "stop": 8, "step": 3}, [2, 5, 8]),
        ({"stop": 2}, [0, 1, 2]),
    ],
)
def test_numbers_have_four_forms(text: Any, numbers: list[int]) -> None:
    assert ranges(concurrency=text, run_config_search_disable=True) == {"callers": numbers}


@pytest.mark.parametrize(
    ("models", "names"),
    [
        ("a,b", ["a", "b"]),
        (["a", {"b": {"parameters": {"concurrency": 4}}}], ["a", "b"]),
        ({"a": {"weighting": 2}, "b": None}, ["a", "b"]),
    ],
)
def test_models_have_three_forms(models: Any, names: list[str]) -> None:
    plan = read_plan(None, {**BASE, "profile_models": models})
    assert [one.name for one in plan.models] == names


def test_goals_of_a_model_go_before_those_of_all() -> None:
    model = {"objectives": ["perf_latency_p99"], "constraints": {"cpu_used_ram": {"max": 500}}}
    options = {"profile_models": ["a", {"b": model}], "objectives": {"perf_throughput": 5, "perf_latency_avg": 1}}
    first, second = read_plan(None, {**BASE, **options, "constraints": {"perf_latency": {"max": 9}}}).models
    assert first.goal.objectives == (Objective("rate", 5), Objective("mean_ms", 1))
    assert first.goal.limits == (Limit.parse("p99_ms<=9"),)
    assert second.goal.objectives == (Objective("p99_ms", 10),)
    assert second.goal.limits == (Limit.parse("memory_mb<=500"),)
    short = read_plan(None, {**BASE, "latency_budget": 20, "min_throughput": 100}).models[0].goal
    assert short.limits == (Limit.parse("p99_ms<=20"), Limit.parse("rate>=100"))
    assert read_plan(None, BASE).models[0].goal.objectives == (Objective("rate", 10),)


def test_a_list_of_constraints_has_alternatives() -> None:
    choices = [{"perf_latency_p99": {"max": 9}}, {"perf_latency_p99": {"max": 30}, "perf_throughput": {"min": 500}}]
    goal = read_plan(None, {**BASE, "constraints": choices}).models[0].goal
    assert goal.limits == ()
    assert goal.alternatives == (
        (Limit.parse("p99_ms<=9"),),
        (Limit.parse("p99_ms<=30"), Limit.parse("rate>=500")),
    )
    with_budget = read_plan(None, {**BASE, "constraints": choices, "latency_budget": 20}).models[0].goal
    assert with_budget.alternatives == (
        (Limit.parse("p99_ms<=20"),),
        (Limit.parse("p99_ms<=20"), Limit.parse("rate>=500")),
    )
    alone = read_plan(None, {**BASE, "constraints": choices[:1]}).models[0].goal
    assert (alone.limits, alone.alternatives) == ((Limit.parse("p99_ms<=9"),), ())


def test_models_have_weights() -> None:
    models = {"a": {"weighting": 3}, "b": None, "c": {"weighting": 0}}
    assert [one.weight for one in read_plan(None, {**BASE, "profile_models": models}).models] == [3, 1, 1]


@pytest.mark.parametrize(
    ("parameters", "values"),
    [
        ({"max_batch_size": [1, 2]}, {"max_batch_size": [1, 2]}),
        ({"instance_group": [{"kind": "KIND_CPU", "count": [1, 2]}]}, {"instances": [1, 2]}),
        (
            {"dynamic_batching": {"max_queue_delay_microseconds": [0, 100], "preferred_batch_size": [[4], [4, 8]]}},
            {"queue_delay_us": [0, 100], "preferred": [(4,), (4, 8)]},
        ),
        ({"dynamic_batching": {"preferred_batch_size": [4, 8]}}, {"preferred": [(4, 8)]}),
        ({"dynamic_batching": {}}, {"config": ['{"dynamic_batching": {}}']}),
        (
            {"dynamic_batching": {"preserve_ordering": [True, False]}, "max_batch_size": 4},
            {
                "max_batch_size": [4],
                "config": [
                    '{"dynamic_batching": {"preserve_ordering": true}}',
                    '{"dynamic_batching": {"preserve_ordering": false}}',
                ],
            },
        ),
        (
            {"instance_group": [{"kind": ["KIND_CPU", "KIND_GPU"], "count": [1, 2]}]},
            {
                "config": [
                    '{"instance_group": [{"count": 1, "kind": "KIND_CPU"}]}',
                    '{"instance_group": [{"count": 2, "kind": "KIND_CPU"}]}',
                    '{"instance_group": [{"count": 1, "kind": "KIND_GPU"}]}',
                    '{"instance_group": [{"count": 2, "kind": "KIND_GPU"}]}',
                ]
            },
        ),
        (
            {"parameters": {"threads": {"string_value": ["1", "2"]}}},
            {
                "config": [
                    '{"parameters": {"threads": {"string_value": "1"}}}',
                    '{"parameters": {"threads": {"string_value": "2"}}}',
                ]
            },
        ),
    ],
)
def test_a_list_in_a_configuration_is_several(parameters: Any, values: Any) -> None:
    assert config_values(parameters, None, "m") == values


def test_what_does_nothing_here_is_named() -> None:
    options = {"gpus": "all", "profile_models": {"m": {"triton_docker_args": {"gpus": 1}}}}
    notices = read_plan(None, {**BASE, **options}).notices
    assert notices == [
        "option 'gpus' is ignored: there is no GPU to watch",
        "option 'triton_docker_args' of 'm' is ignored: servers are alipes' own, without Docker",
    ]


def test_no_option_is_ignored_without_a_reason() -> None:
    for known in (OPTIONS, OPTIONS_OF_REPORT, MODEL_OPTIONS, OPTIONS_BEHIND):
        assert [name for name, (status, reason) in known.items() if status != "works" and not reason] == []


def test_a_file_for_both_commands_is_read_as_that_for_one() -> None:
    options = {"report_model_configs": {"m_config_default": {"plots": {}}}, "output_formats": ["pdf"]}
    plan = read_plan(None, {**BASE, **options})
    assert [notice.partition(": ")[2] for notice in plan.notices] == [
        "it belongs to the command `report`, which there is not"
    ] * 2


def test_flags_of_servers_of_a_model_take_the_place_of_those_of_all() -> None:
    models = {"a": {"triton_server_flags": {"log-verbose": 1}}, "b": None}
    first, second = read_plan(
        None, {**BASE, "profile_models": models, "triton_server_flags": {"cache-config": "local,size=9"}}
    ).models
    assert first.flags == {"log_verbose": "1"}
    assert second.flags == {"cache_config": "local,size=9"}


def test_models_for_the_cpu_are_known() -> None:
    behind = {"bls_composing_models": [{"b": {"cpu_only": True}}], "cpu_only_composing_models": ["c"]}
    plan = read_plan(None, {**BASE, "profile_models": {"a": {"cpu_only": True}, "m": {"cpu_only": False}}, **behind})
    assert plan.cpu_only == {"a", "b", "c"}


def test_options_of_a_model_that_others_call_are_ignored_by_name() -> None:
    spec: dict[str, Any] = {"parameters": {"concurrency": 3}}
    plan = read_plan(None, {**BASE, "bls_composing_models": [{"b": spec}]})
    assert [notice.partition(":")[0] for notice in plan.notices] == ["option 'parameters' of 'b' is ignored"]
    with pytest.raises(ConfigError, match="option 'b' has parameters, objectives"):
        read_plan(None, {**BASE, "bls_composing_models": [{"b": {"parametres": {}}}]})


@pytest.mark.parametrize("of_model", [False, True])
@pytest.mark.parametrize(
    "flags",
    [
        {"percentile": 95},
        {"input_tensor_format": "json"},
        {"request-parameter": "a:1:int"},
        {"latency-threshold": 0},
    ],
)
def test_flags_of_perf_analyzer_that_the_figures_depend_on_are_refused(flags: dict[str, Any], of_model: bool) -> None:
    given: dict[str, Any] = {"perf_analyzer_flags": flags}
    options = {"profile_models": {"m": given}} if of_model else given
    name = next(iter(flags)).replace("_", "-")
    with pytest.raises(ConfigError, match=f"perf_analyzer_flags' has '{name}'") as refused:
        read_plan(None, {**BASE, **options})
    assert refused.value.key == "perf_analyzer_flags"


@pytest.mark.parametrize("of_model", [False, True])
def test_flags_of_perf_analyzer_say_what_is_sent(tmp_path: Path, of_model: bool) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file in files:
        file.write_text("{}")
    flags = {"input-data": [*map(str, files)], "shape": ["X:3,2", "Y:4"], "string_data": "a", "string-length": 3}
    given: dict[str, Any] = {"perf_analyzer_flags": flags}
    plan = read_plan(None, {**BASE, **({"profile_models": {"m": given}} if of_model else given)})
    shapes = {"X": (3, 2), "Y": (4,)}
    assert plan.models[0].sent == SentData(source=files, shapes=shapes, text="a", text_length=3)
    assert not plan.notices


def test_flags_of_perf_analyzer_of_a_model_replace_those_of_all() -> None:
    given: dict[str, Any] = {"profile_models": {"m": {"perf_analyzer_flags": {"input-data": "zero"}}, "n": {}}}
    plan = read_plan(None, {**BASE, **given, "perf_analyzer_flags": {"shape": "X:3"}})
    assert [one.sent for one in plan.models] == [SentData(source="zero"), SentData(shapes={"X": (3,)})]
    assert read_plan(None, {**BASE, "perf_analyzer_flags": {"max-trials": 3}}).models[0].sent is None


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ({"input-data": "nowhere.json"}, "Unsupported type provided: 'nowhere.json'"),
        ({"shape": "X"}, "There must be a colon after input name"),
        ({"string-length": 0}, "string-length"),
    ],
)
def test_flags_of_perf_analyzer_that_cannot_be_read_are_refused(flags: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text) as refused:
        read_plan(None, {**BASE, "perf_analyzer_flags": flags})
    assert refused.value.key == "perf_analyzer_flags"


@pytest.mark.parametrize("of_model", [False, True])
def test_flags_of_perf_analyzer_that_change_no_figure_are_ignored_by_name(of_model: bool) -> None:
    given: dict[str, Any] = {"perf_analyzer_flags": {"max-trials": 20, "streaming": False}}
    options = {"profile_models": {"m": given}} if of_model else given
    (notice,) = read_plan(None, {**BASE, **options}).notices
    assert notice.startswith("option 'perf_analyzer_flags'")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"profile_model": "m"}, "there is no option 'profile_model'"),
        ({"profile_models": []}, "names at least one model"),
        ({"profile_models": [3]}, "names of models"),
        ({"profile_models": {"m": {"concurrency": 3}}}, "option 'm' has parameters, objectives"),
        ({"model_repository": None}, "option 'model_repository' is not given"),
        ({"model_type": "LLM"}, "is generic"),
        ({"genai_perf_flags": {}}, "not offered"),
        ({"triton_server_environment": {"A": "1"}}, "set these variables for this command"),
        ({"profile_models": {"m": {"triton_server_environment": {"A": "1"}}}}, "of 'm' is not offered"),
        ({"profile_models": {"m": {"genai_perf_flags": {"a": 1}}}}, "of 'm' is not offered"),
        ({"profile_models": {"m": {"triton_server_flags": 3}}}, "has values by name"),
        ({"gpus": ["GPU-1"]}, "option 'gpus' names some"),
        ({"triton_launch_mode": "remote"}, "is local"),
        ({"run_config_search_mode": "slow"}, "is brute, quick or optuna"),
        ({"client_protocol": "udp"}, "is http or grpc"),
        ({"concurrency": "many"}, "is a number, a list"),
        ({"concurrency": {"start": 1}}, "is a number, a list"),
        ({"concurrency": {"stop": 4, "step": 0}}, "is a number, a list"),
        ({"objectives": {"gpu_utilization": 1}}, "metric 'gpu_utilization' is not measured"),
        ({"objectives": 3}, "has metrics"),
        ({"constraints": {"perf_latency_p99": 3}}, "has min or max"),
        ({"constraints": {"perf_latency_p99": {"max": "9"}}}, "has a number for each bound"),
        ({"constraints": "p99"}, "has bounds by metric, or a list"),
        ({"constraints": [{"perf_latency_p99": {"max": 3}}, {}]}, "has bounds by metric, or a list"),
        ({"constraints": [{"perf_latency_p99": {"max": 3}}] * 101}, "has 100 alternatives at most"),
        ({"profile_models": {"m": {"weighting": -1}}}, "is a whole number above 0"),
        ({"profile_models": {"m": {"weighting": 1.5}}}, "is a whole number above 0"),
        ({"weighting": 2}, "it belongs to a model"),
        ({"num_configs_per_model": "x"}, "is a whole number"),
        ({"triton_server_flags": 3}, "has values by name"),
        ({"profile_models": {"m": {"model_config_parameters": 3}}}, "has no fields"),
        ({"profile_models": {"m": {"model_config_parameters": {"max_batch": 3, "x": 1}}}}, "Cannot find field"),
    ],
)
def test_a_file_that_says_what_there_is_not_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        read_plan(None, {**BASE, **options})


def test_without_pyyaml_a_file_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(Unsupported, match=r"alipes\[tune\]"):
        read_plan(tmp_path / "config.yaml")


@pytest.mark.extra("tune")
def test_a_file_is_read_and_a_command_line_goes_first(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "model_repository: models\nprofile_models:\n  - m\nconcurrency: {start: 1, stop: 3}\nbatch_sizes: 2\n"
    )
    plan = read_plan(file, {"concurrency": "4"})
    assert plan.models[0].ranges["callers"] == [4]
    assert plan.models[0].ranges["rows"] == [2]
    for text in ("- a list", "a: [", "\x00"):
        file.write_text(text)
        with pytest.raises(ConfigError):
            read_plan(file)
    file.write_text("a: " + "x" * (1 << 20))
    with pytest.raises(ConfigError, match="longer than the limit"):
        read_plan(file)
