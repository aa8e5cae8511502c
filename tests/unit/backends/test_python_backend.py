"""What the data plane is told of a Python model, and what its processes are."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import alipes
import pytest
from alipes.backends.base import Draft
from alipes.backends.prepare import LoadPlan, adapt_version, prepare_version
from alipes.backends.registry import backend_of
from alipes.config.load import parse_flags
from alipes.config.poll import poll_model
from alipes.config.schema import copy_config
from alipes.errors import ConfigError, ModelLoadError
from support.environments import make_venv

Plan = Callable[..., LoadPlan]

TENSORS = """
input { name: "X" data_type: TYPE_FP32 dims: [ 2 ] }
input { name: "S" data_type: TYPE_STRING dims: [ 1 ] optional: true }
output [ { name: "Y" data_type: TYPE_INT64 dims: [ -1 ] } ]
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The folder of model `m` with version 3, a Python file that nothing opens."""
    made = tmp_path / "m"
    (made / "3").mkdir(parents=True)
    (made / "3" / "model.py").write_text("")
    return made


@pytest.fixture
def plan(model: Path) -> Plan:
    """Polls and prepares the model without asking it: ``plan(text, *flags)``."""

    def run(text: str, *flags: str) -> LoadPlan:
        (model / "config.pbtxt").write_text(f'backend: "python" {TENSORS} {text}')
        options = parse_flags(["models", "--disable-auto-complete-config", *flags], {})
        return prepare_version(Draft(poll_model(model, "m", options), model, 3, options), backend_of=backend_of)

    return run


def engine(made: LoadPlan) -> dict[str, Any]:
    return dict(made.spec["engine"])


def test_the_whole_engine(plan: Plan, model: Path) -> None:
    made = plan('max_batch_size: 4 parameters { key: "colour" value { string_value: "blue" } }')
    assert engine(made) == {
        "kind": "worker",
        "command": [sys.executable, str(Path(alipes.__file__).parent / "worker" / "bootstrap.py")],
        "attached": None,
        "environment": {},
        "waiting": None,
        "side_by_side": 0,
        "setup": {
            "schema": 1,
            "model_name": "m",
            "model_version": 3,
            "model_file": str(model / "3" / "model.py"),
            "version_directory": str(model / "3"),
            "model_directory": str(model),
            "model_config": made.config_json,
            "decoupled": False,
            "max_batch_size": 4,
            "batches": False,
            "endpoint": False,
            "inputs": [{"name": "X", "datatype": "FP32"}, {"name": "S", "datatype": "BYTES"}],
            "outputs": [{"name": "Y", "datatype": "INT64"}],
            "framework": None,
        },
        "hidden": {},
        "start_timeout_s": 0.0,
        "execute_timeout_s": 0.0,
        "stop_timeout_s": 30.0,
        "max_memory_bytes": 0,
        "max_leased_bytes": 1 << 30,
    }
    assert made.notices == ()


@pytest.mark.parametrize(
    ("app", "places"),
    [({"concurrency": 40}, 40), ({"concurrency": 10_000}, 4096), ({}, 0), ({"concurrency": "many"}, 0), ([], 0)],
)
def test_an_app_says_how_many_requests_it_works_on_side_by_side(
    plan: Plan, model: Path, app: object, places: int
) -> None:
    (model / "3" / "app.json").write_text(json.dumps(app))
    assert engine(plan(""))["side_by_side"] == places


@pytest.mark.parametrize(
    ("config", "flags", "seconds"),
    [
        ("", (), 600.0),
        ("", ("--backend-config=python,execute-timeout-seconds=7",), 7.0),
        ('parameters { key: "EXECUTE_TIMEOUT_SECONDS" value { string_value: "0" } }', (), 0.0),
    ],
)
def test_a_call_of_a_function_has_ten_minutes_by_default(
    plan: Plan, model: Path, config: str, flags: tuple[str, ...], seconds: float
) -> None:
    assert engine(plan("", *flags))["execute_timeout_s"] in (0.0, 7.0), "a model.py has what the server says"
    (model / "3" / "app.json").write_text("{}")
    assert engine(plan(config, *flags))["execute_timeout_s"] == seconds


def test_the_metadata_names_the_backend(plan: Plan) -> None:
    made = plan("")
    assert (made.spec["platform"], made.config.platform, made.config.backend) == ("python", "", "python")
    assert made.config.default_model_filename == "model.py"


def test_there_is_one_instance_by_default(plan: Plan) -> None:
    assert plan("").spec["instances"] == ["m_0"]
    assert plan("instance_group [ { count: 2 }, { } ]").spec["instances"] == ["m_0_0", "m_0_1", "m_1_0"]


def test_a_decoupled_model_is_declared_decoupled(plan: Plan) -> None:
    made = plan("model_transaction_policy { decoupled: true }")
    assert made.spec["decoupled"] is True
    assert engine(made)["setup"]["decoupled"] is True


@pytest.mark.parametrize(
    ("text", "kind", "batches"),
    [
        ("max_batch_size: 4", "direct", False),
        ("max_batch_size: 4 dynamic_batching { }", "dynamic", True),
        ("dynamic_batching { }", "direct", False),
    ],
)
def test_requests_are_executed_together_where_the_model_is_batched(
    plan: Plan, text: str, kind: str, batches: bool
) -> None:
    made = plan(text)
    assert made.spec["scheduling"]["kind"] == kind
    assert engine(made)["setup"]["batches"] is batches


def test_an_optional_input_may_be_left_out(plan: Plan) -> None:
    assert [port["optional"] for port in plan("").spec["inputs"]] == [False, True]


def test_limits_come_from_the_parameters_before_the_flags(plan: Plan) -> None:
    made = plan(
        'parameters { key: "EXECUTE_TIMEOUT_SECONDS" value { string_value: "0.5" } }',
        "--backend-config=python,execute-timeout-seconds=9",
        "--backend-config=python,max-worker-memory-bytes=5000000000",
    )
    assert engine(made)["execute_timeout_s"] == 0.5
    assert engine(made)["max_memory_bytes"] == 5_000_000_000


def test_a_model_may_bring_its_environment(plan: Plan, model: Path) -> None:
    venv = make_venv(model / "environment")
    path = "$$TRITON_MODEL_DIRECTORY/environment"
    made = engine(plan(f'parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{path}" }} }}'))
    assert made["command"][0] == str(venv / "bin" / "python")
    assert made["environment"]["VIRTUAL_ENV"] == str(venv)


def test_what_does_nothing_gives_a_notice(plan: Plan) -> None:
    made = plan('parameters { key: "enable_custom_tracing" value { string_value: "true" } }')
    notice = "parameter 'enable_custom_tracing' of model 'm' is ignored: traces have the server's spans only"
    assert made.notices == (notice,)


def test_the_file_may_have_another_name(plan: Plan, model: Path) -> None:
    (model / "3" / "serve.py").write_text("")
    made = plan('default_model_filename: "serve.py"')
    assert engine(made)["setup"]["model_file"] == str(model / "3" / "serve.py")


def test_a_file_that_is_not_there_is_named(plan: Plan, model: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        plan('default_model_filename: "absent.py"')
    assert caught.value.reason == f"Internal: failed to stat file {model}/3/absent.py"


def test_a_folder_with_a_python_file_is_a_python_model(model: Path) -> None:
    polled = poll_model(model, "m", parse_flags(["models"], {}))
    assert (polled.backend, polled.platform, polled.default_model_filename) == ("python", "", "model.py")


def test_the_specification_is_json(plan: Plan) -> None:
    spec = plan("").spec
    assert json.loads(json.dumps(spec)) == spec


@pytest.mark.parametrize("name", ["a;b", "a|b", "a$(b)", "it's", 'a"b"', "a~b", "a\\b", "a!"])
def test_a_name_that_a_shell_reads_is_refused_after_2_51(plan: Plan, name: str) -> None:
    group = f"instance_group {{ name: {json.dumps(name)} count: 1 kind: KIND_CPU }}"
    with pytest.raises(ModelLoadError) as refused:
        plan(group)
    assert refused.value.reason == "Invalid argument: Invalid stub name: contains invalid characters"
    assert engine(plan(group, "--triton-release=2.51"))["kind"] == "worker"


@pytest.mark.parametrize("release", ["2.51", "2.73"])
def test_a_serving_model_takes_over_only_names_that_a_load_takes(plan: Plan, model: Path, release: str) -> None:
    flag = f"--triton-release={release}"
    made = plan("", flag)
    options = parse_flags(["models", flag], {})
    config = copy_config(made.config)

    def adapt(name: str) -> LoadPlan:
        config.ClearField("instance_group")
        group = config.instance_group.add(name=name, count=2)
        group.kind = group.KIND_CPU
        return adapt_version(made, config, model, options, backend_of=backend_of)

    assert adapt("ab").spec["instances"] == ["ab_0", "ab_1"]
    if release == "2.51":
        assert adapt("a;b").spec["engine"] == made.spec["engine"]
    else:
        with pytest.raises(ModelLoadError, match="Invalid stub name: contains invalid characters"):
            adapt("a;b")


def test_a_name_of_letters_digits_and_dashes_loads(plan: Plan) -> None:
    assert engine(plan('instance_group { name: "Model-1_b.c d" count: 1 kind: KIND_CPU }'))["kind"] == "worker"
