"""The recorded failures and configurations, checked without a server: what Triton says is what we say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from alipes.backends.base import Backend, Draft
from alipes.backends.onnxruntime.backend import OnnxruntimeBackend
from alipes.backends.prepare import prepare_version
from alipes.backends.registry import backend_of
from alipes.config.load import parse_flags
from alipes.config.normalize import normalize_instance_groups
from alipes.config.override import parse_override
from alipes.config.poll import poll_model
from alipes.config.render import config_json
from alipes.errors import ConfigError, ModelLoadError
from support.described_file import opening
from support.onnx_files import describe

GOLDEN = Path(__file__).parents[2] / "golden"
CONTROL = GOLDEN / "models" / "control"
OPTIONS = parse_flags(["models", "--gpu-fallback=refuse", "--model-control-mode=explicit"], {})

# What Triton 2.51 logs after "Poll failed for model directory 'simple': " in the recorded failures.
LOGGED = {
    "batch_negative": "'max_batch_size' must be non-negative value for simple",
    "name_other": "unexpected directory name 'simple' for model 'other', directory name must equal model name",
    "input_bad_type": 'Invalid config override: (input[0].data_type): invalid value "FP32" for type '
    "type.googleapis.com/inference.DataType",
    "platform_unknown": "unexpected platform type 'tensor_magic' for simple",
    "platform_backend": "unexpected 'platform' and 'backend' pair, got:tensorrt_plan, onnxruntime",
    "preferred_zero": "dynamic batching preferred size must be positive for simple",
    "preferred_large": "dynamic batching preferred size must be <= max batch size for simple",
    "priority_default": "default priority level must be in range [1, 2] for simple",
    "priority_policy": "priority queue policy must have priority level in range [1, 2] for simple",
    "ordering_priority": "Only one priority level is allowed when 'preserve_ordering' is true for simple",
    "two_schedulers": "Invalid config override: : invalid value oneof field 'scheduling_choice' is already set. "
    "Cannot set 'sequence_batching' for type oneof",
    "sequence_control_name": "sequence batching control tensor must have a name for simple",
    "sequence_control_values": "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or "
    "'bool_false_true' for CONTROL_SEQUENCE_START for simple",
    "sequence_two_starts": "sequence batching specifies multiple CONTROL_SEQUENCE_START tensors for simple",
    "sequence_corrid_type": "unexpected data type for control CONTROL_SEQUENCE_CORRID for simple. Allowed data types "
    "are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING",
    "cache_decoupled": "Response Cache does not currently support model simple with 'decoupled' transaction policy. "
    "Please disable the response cache.",
    "ensemble_backend": "Ensemble model 'simple' must have platform type 'ensemble' and empty backend type",
    "ensemble_no_steps": "must specify 'step' for ensemble 'simple'",
    "ensemble_unused": "ensemble input 'Z' for ensemble simple' is not used",
    "ensemble_unwritten": "ensemble output 'W' for ensemble simple' is not used",
    "agent_unknown": "unable to find 'libtritonrepoagent_nosuch.so' for repo agent 'nosuch', searched: ",
}

# What it answers where a recorded model fails; None where only the log says more than "failed to poll".
ANSWERED = {
    "bad_text": None,
    "other_name": None,
    "no_backend": None,
    "no_file": "Internal: failed to stat file {repository}/no_file/1/model.onnx",
    "unknown_backend": "Invalid argument: unable to find backend library for backend 'nosuch', try specifying "
    "runtime on the model configuration.",
    "more_inputs": "Invalid argument: unable to load model 'more_inputs', configuration expects 2 inputs, model "
    "provides 1",
    "other_input": "Invalid argument: unexpected inference input 'Q', allowed inputs are: X",
    "other_dims": "Invalid argument: model 'other_dims', tensor 'X': the model expects 2 dimensions (shape [-1,2]) "
    "but the model configuration specifies 2 dimensions (an initial batch dimension because max_batch_size > 0 "
    "followed by the explicit tensor shape, making complete shape [-1,3])",
    "other_type": "Invalid argument: unable to load model 'other_type', configuration expects datatype TYPE_INT32 "
    "for input 'X', model provides TYPE_FP32",
    "fixed_batch": "Invalid argument: model 'fixed_batch', tensor 'X': for the model to support batching the shape "
    "should have at least 1 dimension and the first dimension must be -1; but shape expected by the model is [3,2]",
}


def described(name: str) -> Callable[[Draft], Backend]:
    """The backend of that name; ONNX files are read without ONNX Runtime."""
    backend = backend_of(name)
    return partial(OnnxruntimeBackend, open_file=opening(describe)) if backend is OnnxruntimeBackend else backend


def scenarios(group: str) -> Iterator[tuple[str, Any]]:
    text = (GOLDEN / "scenarios" / f"{group}.json").read_text(encoding="utf-8")
    for scenario in json.loads(text)["scenarios"]:
        yield scenario["id"].rpartition(".")[2], scenario["steps"][0]


def outcome(folder: Path, override: str | None = None) -> tuple[str, str]:
    """The stage that ends the load of version 1, and what it says; `ready` where nothing ends it."""
    try:
        config = poll_model(folder, folder.name, OPTIONS, None if override is None else parse_override(override))
    except ConfigError as error:
        return "poll", str(error)
    try:
        plan = prepare_version(Draft(config, folder, 1, OPTIONS), backend_of=described)
    except (ConfigError, ModelLoadError) as error:
        return "load", error.reason
    return "ready", plan.config_json


def overrides() -> Iterator[Any]:
    for name, step in scenarios("lifecycle/config_errors"):
        body = step["response"]["body"]
        message = body["json"]["error"] if body else None
        if (
            message is None or "version 1 is at" in message or "failed to poll" in message
        ):  # else the version policy fails
            yield pytest.param(name, step["request"]["body"]["json"]["parameters"]["config"], message, id=name)


@pytest.mark.parametrize(("name", "override", "message"), list(overrides()))
def test_a_recorded_override_ends_as_recorded(name: str, override: str, message: str | None) -> None:
    area, text = outcome(CONTROL / "simple", override)
    if message is None:
        assert area == "ready"
    elif name in LOGGED:
        assert message == "failed to load 'simple', failed to poll from model repository"
        assert (area, text) == ("poll", LOGGED[name])
    else:
        assert area == "load"
        assert message == f"load failed for model 'simple': version 1 is at UNAVAILABLE state: {text};\n"


@pytest.mark.parametrize("name", ANSWERED)
def test_a_recorded_model_fails_as_recorded(name: str) -> None:
    area, text = outcome(CONTROL / name)
    expected = ANSWERED[name]
    assert area == ("poll" if expected is None else "load")
    assert expected is None or text == expected.replace("{repository}", str(CONTROL))


def test_a_model_without_configuration_is_refused_in_strict_mode() -> None:
    strict = parse_flags(["models", "--disable-auto-complete-config"], {})
    with pytest.raises(ConfigError):
        poll_model(CONTROL / "bare", "bare", strict)


def answered() -> Iterator[Any]:
    for name, step in scenarios("http_control/metadata"):
        path = step.get("request", {}).get("path", "")
        if path.endswith("/config") and step["response"]["status"] == 200:
            yield pytest.param(path.split("/")[3], step["response"]["body"], id=name)


@pytest.mark.parametrize(("name", "body"), list(answered()))
def test_a_recorded_configuration_is_answered_as_recorded(name: str, body: dict[str, Any]) -> None:
    config = poll_model(GOLDEN / "models" / "basic" / name, name, OPTIONS)
    normalize_instance_groups(config, "refuse")
    text = config_json(config)
    assert text == body["text"] if "text" in body else json.loads(text) == body["json"]


@pytest.mark.parametrize("folder", sorted((GOLDEN / "models" / "basic").iterdir()), ids=lambda folder: folder.name)
def test_every_recorded_model_that_answers_is_ready(folder: Path) -> None:
    assert outcome(folder)[0] == "ready"
