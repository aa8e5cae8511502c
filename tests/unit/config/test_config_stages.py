"""Broken and odd configurations: at which stage each ends, and in which words; or that it loads.

A row names the function of Triton's core (2.51 and since) whose check it follows. Several rows are wrong in two places:
the one that Triton finds first is told.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Final, NamedTuple

import pytest
from alipes.backends.base import Backend, Draft
from alipes.backends.onnxruntime.backend import OnnxruntimeBackend
from alipes.backends.prepare import prepare_version
from alipes.backends.registry import backend_of
from alipes.config.load import parse_flags
from alipes.config.poll import poll_model
from alipes.errors import ConfigError, ModelLoadError
from support.described_file import opening
from support.onnx_files import describe

SIMPLE: Final = Path(__file__).parents[2] / "golden" / "models" / "control" / "simple"
LENIENT: Final = ("--gpu-fallback=refuse",)
STRICT: Final = (*LENIENT, "--disable-auto-complete-config")

X: Final = 'input { name: "X" data_type: TYPE_FP32 dims: [ 2 ] }'
Y: Final = 'output { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] }'
ONNX: Final = 'backend: "onnxruntime" max_batch_size: 4 '
PYTHON: Final = 'backend: "python" max_batch_size: 4 '
GPU: Final = "instance_group { kind: KIND_GPU } "
READY: Final = ""


class Case(NamedTuple):
    """One configuration.

    Attributes:
        source: The function of Triton that decides.
        text: The configuration; the model is called `m`, and has the file of `simple` as `1/model.onnx`.
        stage: `poll`, `load` or `ready`.
        message: What is said; `{folder}` stands for the model's folder.
    """

    source: str
    text: str
    stage: str
    message: str = READY


def controls(*inputs: str) -> str:
    return f"{PYTHON}{X} {Y} sequence_batching {{ control_input [ {', '.join(inputs)} ] }}"


def states(*parts: str) -> str:
    return f"{PYTHON}{X} {Y} sequence_batching {{ {' '.join(f'state {{ {part} }}' for part in parts)} }}"


def ensemble(steps: str, inputs: str = "A", outputs: str = "D") -> str:
    tensors = [f'input {{ name: "{name}" data_type: TYPE_FP32 dims: [ 2 ] }}' for name in inputs.split()]
    tensors += [f'output {{ name: "{name}" data_type: TYPE_FP32 dims: [ 2 ] }}' for name in outputs.split()]
    return f'platform: "ensemble" {" ".join(tensors)} ensemble_scheduling {{ {steps} }}'


def step(inputs: str, outputs: str) -> str:
    maps = [f'input_map {{ key: "I{at}" value: "{name}" }}' for at, name in enumerate(inputs.split())]
    maps += [f'output_map {{ key: "O{at}" value: "{name}" }}' for at, name in enumerate(outputs.split())]
    return f'step {{ model_name: "n" model_version: -1 {" ".join(maps)} }}'


START: Final = "{ kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] }"
READINESS: Final = "{ kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] }"
STATE: Final = 'input_name: "OLD" output_name: "NEW" data_type: TYPE_FP32 dims: [ 2 ] '
BEGUN: Final = STATE + 'initial_state { name: "i" data_type: TYPE_FP32 dims: [ 2 ] zero_data: true }'
DELAYED: Final = "preserve_ordering: true default_queue_policy { timeout_action: DELAY "
CHAIN: Final = step("A", "B") + step("B", "D")
NO_CACHE: Final = "Response Cache does not currently support model m with {}. Please disable the response cache."
NO_BACKEND: Final = (
    "Invalid model name: Could not determine backend for model 'm' with no backend in model configuration. Expected "
    "model name of the form 'model.<backend_name>'."
)

CASES: Final = (
    # What a model is.
    Case("InitializeModelInfo", 'backend: "onnxruntime" name: "other" max_batch_size: -1', "poll",
         "'max_batch_size' must be non-negative value for other"),
    Case("InitializeModelInfo", ONNX + 'name: "other"', "poll", "unexpected directory name 'm' for model 'other', "
         "directory name must equal model name"),
    Case("CreateAgentModelListWithLoadAction", 'platform: "magic" model_repository_agents { agents { name: "a" } }',
         "poll", "unable to find 'libtritonrepoagent_a.so' for repo agent 'a', searched: "),
    Case("CreateAgentModelListWithLoadAction", f"{ONNX}{X} {Y} model_repository_agents {{ }}", "ready"),
    Case("AutoCompleteBackendFields", 'platform: "onnxruntime_onnx" default_model_filename: "model.plan"', "poll",
         "unexpected 'platform' and 'backend' pair, got:onnxruntime_onnx, tensorrt"),
    Case("AutoCompleteBackendFields", 'platform: "magic" default_model_filename: "model.onnx"', "poll",
         "unexpected 'platform' and 'backend' pair, got:magic, onnxruntime"),
    Case("AutoCompleteBackendFields", 'platform: "ensemble" default_model_filename: "model.onnx"', "poll",
         "Ensemble model 'm' must have platform type 'ensemble' and empty backend type"),
    Case("ValidateModelConfig", 'default_model_filename: "net.bin"', "poll", "unexpected platform type '' for m"),
    Case("ValidateModelConfig", f'{PYTHON}platform: "mine" {X} {Y}', "ready"),
    Case("ValidateModelConfig", 'backend: "mine" platform: "tensorrt_plan"', "load", "Invalid argument: unable to find "
         "backend library for backend 'mine', try specifying runtime on the model configuration."),
    Case("GetBackendLibraryProperties", f'{ONNX}{X} {Y} runtime: "libtriton_onnxruntime.so"', "ready"),
    Case("GetBackendLibraryProperties", f'{ONNX}{GPU}runtime: "mine.so"', "load", "Invalid argument: unable to find "
         "backend library 'mine.so' for model 'm', searched: '{folder}/1' '{folder}' "),
    # Schedulers.
    Case("ValidateModelConfig", f"{ONNX}{X} {Y} dynamic_batching {{ {DELAYED} }} }}", "ready"),
    Case("ValidateModelConfig", f"{ONNX}{X} {Y} dynamic_batching {{ {DELAYED} default_timeout_microseconds: 1 }} }}",
         "poll", "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m"),
    Case("ValidateModelConfig", PYTHON + "dynamic_batching { preserve_ordering: true priority_queue_policy { key: 1 "
         "value { timeout_action: DELAY default_timeout_microseconds: 1 } } }",
         "poll", "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m"),
    Case("ValidateModelConfig", PYTHON + "dynamic_batching { priority_queue_policy { key: 7 value { } } } " + X + Y,
         "ready"),
    Case("ValidateModelConfig", controls('{ control { } }') + " response_cache { enable: true }", "poll",
         NO_CACHE.format("sequence batching scheduler")),
    Case("ValidateModelConfig", PYTHON + "response_cache { enable: true } model_transaction_policy { decoupled: true } "
         "dynamic_batching { preferred_batch_size: 9 }", "poll",
         "dynamic batching preferred size must be <= max batch size for m"),
    Case("ValidateModelConfig", PYTHON + "response_cache { enable: true } model_transaction_policy { decoupled: true } "
         "model_metrics { metric_control { } }", "poll", NO_CACHE.format("'decoupled' transaction policy")),
    # Control tensors.
    Case("GetBooleanSequenceControlProperties", controls(f'{{ name: "T" control [ {START}, {READINESS} ] }}'), "ready"),
    Case("GetBooleanSequenceControlProperties", controls('{ name: "T" }'), "ready"),
    Case("GetBooleanSequenceControlProperties", controls(f'{{ name: "T" control {START} }}', '{ name: "T" }'), "poll",
         "sequence batching control tensor 'T' is specified for multiple control kinds for m"),
    Case("GetBooleanSequenceControlProperties", controls(f'{{ name: "T" control [ {START}, {START} ] }}'), "poll",
         "sequence batching specifies multiple CONTROL_SEQUENCE_START tensors for m"),
    Case("GetBooleanSequenceControlProperties",
         controls('{ name: "T" control { int32_false_true: [ 0, 1 ] bool_false_true: [ false, true ] } }'), "poll",
         "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true' "
         "for CONTROL_SEQUENCE_START for m"),
    Case("GetBooleanSequenceControlProperties",
         controls('{ name: "C" control { kind: CONTROL_SEQUENCE_CORRID } }', '{ name: "S" control { } }'), "poll",
         "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for "
         "CONTROL_SEQUENCE_START for m"),
    Case("GetBooleanSequenceControlProperties", controls('{ name: "T" control { kind: 9 } }'), "ready"),
    # Ensembles.
    Case("ValidateModelConfig", 'platform: "ensemble"', "poll",
         "ensemble scheduling must be set for ensemble m whose platform is ensemble"),
    Case("ValidateEnsembleSchedulingConfig", PYTHON + "ensemble_scheduling { }", "poll",
         "ensemble scheduling cannot be set for model 'm' whose platform is not ensemble"),
    Case("ValidateEnsembleSchedulingConfig",
         ensemble(step("A Q", "B") + step("B", "C") + step("C", "D")), "poll",
         "output 'D' for ensemble 'm' is not written: at least one of its depending tensors, 'Q', is not connected"),
    Case("ValidateEnsembleSchedulingConfig", ensemble(step("A", "B") + step("C", "D") + step("D", "C")), "poll",
         "output 'D' for ensemble 'm' is not written"),
    Case("ValidateEnsembleSchedulingConfig", ensemble(step("D A", "D")), "poll",
         "output 'D' for ensemble 'm' is not written"),
    Case("ValidateModelConfig", ensemble(CHAIN) + "response_cache { enable: true } model_transaction_policy "
         "{ decoupled: true }", "poll", NO_CACHE.format("'decoupled' transaction policy")),
    Case("Model::Init", ensemble(CHAIN).replace("dims: [ 2 ]", "dims: [ 0 ]", 1), "load", "Invalid argument: model "
         "input 'A' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m"),
    # Instance groups come before the model is looked at.
    Case("NormalizeInstanceGroup", ONNX + 'default_model_filename: "absent" instance_group { gpus: 0 }', "load",
         "Invalid argument: instance group m_0 of model m has kind KIND_CPU but specifies one or more GPUs"),
    Case("ValidateInstanceGroup", ONNX + GPU + 'default_model_filename: "absent"', "load",
         "Invalid argument: instance group m_0 of model m has kind KIND_GPU but no GPUs are available"),
    Case("ValidateInstanceGroup", ONNX + "instance_group { kind: KIND_GPU gpus: [ 3 ] }", "load",
         "Invalid argument: instance group m_0 of model m specifies invalid or unsupported gpu id 3. GPUs with at "
         "least the minimum required CUDA compute compatibility of 6.000000 are: "),
    Case("ValidateInstanceGroup", ONNX + "instance_group { kind: 9 }", "load",
         "Internal: instance group m_0 of model m has unexpected kind KIND_AUTO"),
    Case("ValidateInstanceGroup", ONNX + 'instance_group { profile: "1" }', "load",
         "Invalid argument: instance group m_0 of model m and platform onnxruntime_onnxspecifies profile field which "
         "is only supported for TensorRT models"),
    # Inputs and outputs.
    Case("ValidateModelInput", ONNX + X.replace("dims", "format: FORMAT_NCHW is_shape_tensor: true dims") + Y, "load",
         "Invalid argument: model input NHWC/NCHW require 3 dims for m"),
    Case("ValidateModelInput", ONNX + X.replace("dims", "is_shape_tensor: true dims") + Y, "load",
         "Invalid argument: shape tensors are only supported for TensorRT platform for m"),
    Case("ValidateModelOutput", ONNX + X + Y.replace("dims", "is_shape_tensor: true dims"), "load",
         "Invalid argument: shape tensors are only supported for TensorRT platform for m"),
    Case("ValidateNonLinearFormatIO", ONNX + X.replace("dims", "is_non_linear_format_io: true dims") + Y, "load",
         "Invalid argument: Non-linear IO format is only supported for the TensorRT platform for m"),
    Case("ValidateBatchIO", f'{ONNX}{X} {Y} batch_input {{ target_name: "N" source_input: "Q" }}', "load",
         "Invalid argument: batch input data type must be TYPE_INT32 or TYPE_FP32 for m"),
    Case("ValidateBatchIO", f"{ONNX}{X} {Y} batch_input {{ kind: 77 }}", "load",
         "Invalid argument: unknown batch input kind '' for m"),
    Case("ValidateBatchIO", f"{ONNX}{X} {Y} batch_output {{ kind: 77 }}", "load",
         "Invalid argument: unknown batch output kind '' for m"),
    Case("ValidateBatchIO", ONNX + X + Y + 'batch_output [ { target_name: "Y" source_input: "X" }, { target_name: "Y" '
         'source_input: "X" } ]', "ready"),
    # What instances need comes after the model.
    Case("Model::Init", ONNX + X + Y.replace("dims", 'label_filename: "absent" dims'), "load",
         "Internal: failed to open text file for read {folder}/absent: No such file or directory"),
    Case("GenerateWarmupData", ONNX + X.replace("X", "Q") + Y + " model_warmup { batch_size: 1 inputs { key: 'X' value "
         "{ dims: -1 } } }", "load", "Invalid argument: unexpected inference input 'Q', allowed inputs are: X"),
    Case("GenerateWarmupData", ONNX + X + Y + " model_warmup { batch_size: 1 inputs { key: 'A' value { dims: 1 } } "
         "inputs { key: 'X' value { dims: -1 } } }", "load", "Invalid argument: warmup setting expects all "
         "variable-size dimensions are specified for input 'X'"),
    Case("GenerateWarmupData", ONNX + X + Y + " model_warmup { batch_size: 1 inputs { key: 'X' value { dims: 2 "
         "input_data_file: 'absent' } } }", "load",
         "Internal: failed to open text file for read {folder}/warmup/absent: No such file or directory"),
    # States.
    Case("SequenceBatchScheduler::Create", states(STATE, STATE), "ready"),
    Case("SequenceBatchScheduler::Create", states(BEGUN, STATE), "ready"),
    Case("SequenceBatchScheduler::Create", states(BEGUN, BEGUN), "load",
         "Invalid argument: State input name 'OLD' specified more than once."),
    Case("SequenceBatchScheduler::Create", states(STATE.replace("[ 2 ]", "[ ]")), "ready"),
    Case("SequenceBatchScheduler::Create", states(STATE.replace("[ 2 ]", "[ 0, 3 ]")), "ready"),
    Case("GenerateInitialStateData", states(BEGUN.replace("[ 2 ]", "[ 3 ]", 1), BEGUN), "load",
         "Invalid argument: 'initial_state' dim for input name 'OLD' doesn't match 'state' dim description. 2 != 3"),
    Case("GenerateInitialStateData", states(BEGUN.replace('"OLD"', '""').replace("TYPE_FP32", "TYPE_INT8", 1)), "load",
         "Invalid argument: The data type used for 'initial_state' field of state '' does not match the state data "
         "type."),
    # Versions.
    Case("VersionsToLoad", f"{ONNX}{X} {Y} version_policy {{ }}", "ready"),
    Case("AutoCompleteBackendFields", "ensemble_scheduling { }", "poll", "ensemble scheduling cannot be set for model "
         "'m' whose platform is not ensemble"),
)  # fmt: skip


def described(name: str) -> Callable[[Draft], Backend]:
    """The backend of that name; ONNX files are read without ONNX Runtime."""
    backend = backend_of(name)
    return partial(OnnxruntimeBackend, open_file=opening(describe)) if backend is OnnxruntimeBackend else backend


def outcome(folder: Path, text: str) -> tuple[str, str]:
    """The stage that ends the load of version 1, and what it says."""
    (folder / "config.pbtxt").write_text(text, encoding="utf-8")
    # A Python model would run to complete its configuration: it is taken as it is written.
    options = parse_flags(["models", *(STRICT if 'backend: "python"' in text else LENIENT)], {})
    try:
        config = poll_model(folder, folder.name, options)
    except ConfigError as error:
        return "poll", str(error)
    try:
        prepare_version(Draft(config, folder, 1, options), backend_of=described)
    except (ConfigError, ModelLoadError) as error:
        return "load", error.reason
    return "ready", READY


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of model `m` with a model file for each backend."""
    copytree(SIMPLE / "1", tmp_path / "m" / "1")
    (tmp_path / "m" / "1" / "model.py").write_text("class TritonPythonModel: ...", encoding="utf-8")
    return tmp_path / "m"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.source}-{case.stage}")
def test_a_configuration_ends_where_and_as_triton_ends_it(folder: Path, case: Case) -> None:
    expected = case.message.replace("{folder}", str(folder))
    assert outcome(folder, case.text) == (case.stage, expected)


def test_a_model_without_any_sign_is_refused_before_its_graph(folder: Path) -> None:
    for file in (folder / "1").iterdir():
        file.unlink()
    assert outcome(folder, "ensemble_scheduling { }") == ("poll", NO_BACKEND)
