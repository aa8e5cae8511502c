"""The one table of model-configuration fields: every field of `proto/model_config.proto`, and what it does here.

A test walks the proto file and fails where a field has no row. The reference page is written from this table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from alipes.config.flags import Status

__all__ = ["FIELDS", "Field", "find_field"]


@dataclass(frozen=True, slots=True)
class Field:
    """One row of the table.

    Attributes:
        path: Field names joined by dots; the entries of a list or map share one path.
        status: `ignored` gives one notice where the field is set, `refused` fails the load.
        help: What the field says, in one line.
        note: The notice of an ignored field, the reason of a refused one.
    """

    path: str
    status: Status
    help: str
    note: str = ""


def _works(rows: dict[str, str]) -> Iterable[Field]:
    return (Field(path, "works", help) for path, help in rows.items())


def _tree(status: Status, note: str, root: str, rows: dict[str, str]) -> Iterable[Field]:
    """Rows that share a note: a field and all that stands in it. The empty path is the field itself."""
    return (Field(f"{root}.{path}" if path else root, status, help, note) for path, help in rows.items())


def _queue_policy(path: str) -> dict[str, str]:
    return {
        path: "Limits on waiting.",
        f"{path}.timeout_action": "Reject a request that waited too long, or put it behind the others.",
        f"{path}.default_timeout_microseconds": "Longest wait, in microseconds; 0 for any.",
        f"{path}.allow_timeout_override": "Let a request bring a shorter limit of its own.",
        f"{path}.max_queue_size": "Most requests that may wait; 0 for any number.",
    }


_NO_SETTING: Final = "no engine here has such a setting"
_NO_TENSORRT: Final = "only TensorRT has it"

FIELDS: Final[tuple[Field, ...]] = (
    *_works(
        {
            "name": "Name of the model; that of its folder.",
            "platform": "Kind of model, for example onnxruntime_onnx; follows from the backend.",
            "backend": "What runs the model: onnxruntime or python, which follow from the model file; or snapshotter "
            "or averager, or a native step such as picture, which have none.",
            "runtime": "Library of the backend: `libtriton_<backend>.so` or nothing; any other is not found.",
            "version_policy": "Which versions are served.",
            "version_policy.latest": "The newest ones.",
            "version_policy.latest.num_versions": "How many; 0 serves none.",
            "version_policy.all": "All of them.",
            "version_policy.specific": "Those named.",
            "version_policy.specific.versions": "Their numbers.",
            "max_batch_size": "Largest batch in rows; 0 for a model without batch dimension.",
            "input": "Inputs; completed from the model where not given.",
            "input.name": "Name of the tensor.",
            "input.data_type": "Element type.",
            "input.format": "Layout of an image; three dimensions are checked, nothing is transposed.",
            "input.dims": "Sizes without the batch dimension; -1 stands for any.",
            "input.reshape": "Shape that the model sees.",
            "input.reshape.shape": "Its sizes.",
        }
    ),
    Field("input.is_shape_tensor", "refused", "The tensor holds a shape.", _NO_TENSORRT),
    *_works(
        {
            "input.allow_ragged_batch": "Requests of different shapes may share a batch.",
            "input.optional": "A request may leave it out.",
        }
    ),
    Field("input.is_non_linear_format_io", "refused", "The tensor has a vectorised layout.", _NO_TENSORRT),
    *_works(
        {
            "output": "Outputs; completed from the model where not given.",
            "output.name": "Name of the tensor.",
            "output.data_type": "Element type.",
            "output.dims": "Sizes without the batch dimension; -1 stands for any.",
            "output.reshape": "Shape that the model gives.",
            "output.reshape.shape": "Its sizes.",
            "output.label_filename": "File of class names, one a line, in the model's folder.",
        }
    ),
    Field("output.is_shape_tensor", "refused", "The tensor holds a shape.", _NO_TENSORRT),
    Field("output.is_non_linear_format_io", "refused", "The tensor has a vectorised layout.", _NO_TENSORRT),
    *_works(
        {
            "batch_input": "Inputs that are computed from the batch; ONNX models alone have them.",
            "batch_input.kind": "What they hold.",
            "batch_input.target_name": "Their names in the model.",
            "batch_input.data_type": "Their element type.",
            "batch_input.source_input": "The input that they are computed from.",
            "batch_output": "Outputs that are cut up like an input; ONNX models alone have them.",
            "batch_output.target_name": "Their names in the model.",
            "batch_output.kind": "How they are cut up.",
            "batch_output.source_input": "The input that tells the sizes.",
            "optimization": "How the model is prepared.",
            "optimization.graph": "The engine's own optimization; ONNX models alone have it.",
            "optimization.graph.level": "-1 basic, 0 all, 1 extended, 2 none.",
        }
    ),
    Field("optimization.priority", "ignored", "Priority on a GPU.", _NO_SETTING),
    *_tree(
        "ignored",
        _NO_SETTING,
        "optimization.cuda",
        {
            "": "Settings of CUDA.",
            "graphs": "Record CUDA graphs.",
            "busy_wait_events": "Wait for events by spinning.",
            "graph_spec": "Shapes to record graphs for.",
            "graph_spec.batch_size": "Batch size of a graph.",
            "graph_spec.input": "Shapes of its inputs.",
            "graph_spec.input.dim": "Sizes.",
            "graph_spec.graph_lower_bound": "Smallest batch that may use it.",
            "graph_spec.graph_lower_bound.batch_size": "Its batch size.",
            "graph_spec.graph_lower_bound.input": "Shapes of its inputs.",
            "graph_spec.graph_lower_bound.input.dim": "Sizes.",
            "output_copy_stream": "Copy outputs on a stream of their own.",
        },
    ),
    *_works(
        {
            "optimization.execution_accelerators": "Further execution providers; ONNX models alone have them.",
            "optimization.execution_accelerators.gpu_execution_accelerator": "Those for instances on a GPU.",
            "optimization.execution_accelerators.gpu_execution_accelerator.name": "tensorrt or cuda.",
            "optimization.execution_accelerators.gpu_execution_accelerator.parameters": "Its settings.",
        }
    ),
    *_tree(
        "ignored",
        "there is no execution provider for the CPU but its own",
        "optimization.execution_accelerators",
        {
            "cpu_execution_accelerator": "Those for CPU instances.",
            "cpu_execution_accelerator.name": "Name of the provider.",
            "cpu_execution_accelerator.parameters": "Its settings.",
        },
    ),
    *_works(
        {
            "optimization.input_pinned_memory": "Pinned memory for inputs; there is none, so either value will do.",
            "optimization.input_pinned_memory.enable": "Use it; shown as true where not given.",
            "optimization.output_pinned_memory": "The same for outputs.",
            "optimization.output_pinned_memory.enable": "Use it; shown as true where not given.",
        }
    ),
    Field(
        "optimization.gather_kernel_buffer_threshold",
        "ignored",
        "Gather inputs on the GPU.",
        "batches are gathered before they are copied to the GPU",
    ),
    Field(
        "optimization.eager_batching",
        "ignored",
        "Prepare a batch before an instance is free.",
        "a free instance forms its batch, which is never later",
    ),
    *_works(
        {
            "dynamic_batching": "Bring requests together on the server.",
            "dynamic_batching.preferred_batch_size": "Sizes in rows to aim for; the largest batch where not given.",
            "dynamic_batching.max_queue_delay_microseconds": "Longest wait for company, in microseconds.",
        }
    ),
    *_works(
        {
            "dynamic_batching.preserve_ordering": "Answers leave in the order in which requests came.",
            "dynamic_batching.priority_levels": "Number of priorities, 1 the highest; 0 where priorities mean nothing.",
            "dynamic_batching.default_priority_level": "Priority of a request that names none, or none that there is.",
            **_queue_policy("dynamic_batching.priority_queue_policy"),
            **_queue_policy("dynamic_batching.default_queue_policy"),
        }
    ),
    *_works(
        {
            "sequence_batching": "Bring requests of one sequence to one instance.",
            "sequence_batching.direct": "A row of the batch for each sequence; the strategy where none is given.",
            "sequence_batching.direct.max_queue_delay_microseconds": "Longest wait for company, in microseconds.",
            "sequence_batching.direct.minimum_slot_utilization": "Share of the slots to wait for, within the delay.",
            "sequence_batching.oldest": "Batches of the sequences whose next requests have waited longest.",
            "sequence_batching.oldest.max_candidate_sequences": "Sequences that an instance has at a time.",
            "sequence_batching.oldest.preferred_batch_size": "Sizes in rows to aim for.",
            "sequence_batching.oldest.max_queue_delay_microseconds": "Longest wait for company, in microseconds.",
            "sequence_batching.oldest.preserve_ordering": "Answers leave in the order of requests; they do either way.",
            "sequence_batching.max_sequence_idle_microseconds": "Silence that ends it; a second where not given.",
            "sequence_batching.control_input": "Tensors that tell the model where a sequence stands.",
            "sequence_batching.control_input.name": "Name of the tensor.",
            "sequence_batching.control_input.control": "What it tells.",
            "sequence_batching.control_input.control.kind": "Start, ready, end or correlation id.",
            "sequence_batching.control_input.control.int32_false_true": "Values for false and true.",
            "sequence_batching.control_input.control.fp32_false_true": "Values for false and true.",
            "sequence_batching.control_input.control.bool_false_true": "Values for false and true.",
            "sequence_batching.control_input.control.data_type": "Element type of a correlation id.",
            "sequence_batching.state": "Tensors that the server keeps between requests.",
            "sequence_batching.state.input_name": "Input that receives it.",
            "sequence_batching.state.output_name": "Output that renews it.",
            "sequence_batching.state.data_type": "Element type.",
            "sequence_batching.state.dims": "Sizes.",
            "sequence_batching.state.initial_state": "What it is at the start; zeros where not given.",
            "sequence_batching.state.initial_state.data_type": "Element type.",
            "sequence_batching.state.initial_state.dims": "Sizes.",
            "sequence_batching.state.initial_state.zero_data": "Zeros.",
            "sequence_batching.state.initial_state.data_file": "File in the model's `initial_state/`.",
            "sequence_batching.state.initial_state.name": "Name, for messages.",
            "sequence_batching.iterative_sequence": "Let a Python model ask for another round of a request.",
            "sequence_batching.state.use_growable_memory": "Let it grow; a state may change its size either way.",
            "sequence_batching.state.use_same_buffer_for_input_output": "Renew it in place; means the same here.",
        }
    ),
    *_works(
        {
            "ensemble_scheduling": "A graph of models that answer a request together.",
            "ensemble_scheduling.step": "One model of it.",
            "ensemble_scheduling.step.model_name": "Its name.",
            "ensemble_scheduling.step.model_version": "Its version; -1 for the newest.",
            "ensemble_scheduling.step.input_map": "Tensor of the ensemble for each input of the model.",
            "ensemble_scheduling.step.output_map": "Tensor of the ensemble for each output of the model.",
        }
    ),
    Field(
        "ensemble_scheduling.step.model_namespace",
        "ignored",
        "Repository of the model.",
        "models are looked for in the ensemble's own repository, and then in the others",
    ),
    *_works(
        {
            "ensemble_scheduling.max_inflight_requests": "Most calls of a step under way at a time; 0 for any number.",
            "instance_group": "Copies of the model; one group named like the model where not given.",
            "instance_group.name": "Name; `<model>_<i>` where not given.",
            "instance_group.kind": "KIND_GPU: GPUs, or as --gpu-fallback says. KIND_AUTO: GPUs if it can. Else CPU.",
            "instance_group.count": "Instances, on each GPU; by default 2 for ONNX and native steps on CPUs, else 1.",
        }
    ),
    *_works(
        {
            "instance_group.rate_limiter": "What executions take, with --rate-limit=execution_count; else a notice.",
            "instance_group.rate_limiter.resources": "Resources that an execution takes.",
            "instance_group.rate_limiter.resources.name": "Name of the resource.",
            "instance_group.rate_limiter.resources.global": "One for the whole machine; else each device has its own.",
            "instance_group.rate_limiter.resources.count": "How many of it.",
            "instance_group.rate_limiter.priority": "Weight: an instance of priority 2 has half the turns of one of 1.",
        }
    ),
    *_works({"instance_group.gpus": "GPUs to run on; all of them where not given. An error for other kinds."}),
    *_tree(
        "ignored",
        "only TensorRT uses them, for its DLA cores",
        "instance_group",
        {
            "secondary_devices": "Further devices.",
            "secondary_devices.kind": "Their kind.",
            "secondary_devices.device_id": "Their number.",
        },
    ),
    Field("instance_group.profile", "refused", "Optimization profiles.", _NO_TENSORRT),
    *_works({"instance_group.passive": "Load the instances and never use them."}),
    Field(
        "instance_group.host_policy",
        "ignored",
        "Placement of the instances.",
        "instances run where the system puts them",
    ),
    *_works({"default_model_filename": "Model file in the version's folder; model.onnx or model.py where not given."}),
    Field(
        "cc_model_filenames",
        "ignored",
        "Model file by compute capability of the GPU.",
        "one file serves on every device",
    ),
    *_works(
        {
            "metric_tags": "Further labels of the model's metrics.",
            "parameters": "Settings of the backend; see the table of parameters.",
            "parameters.string_value": "The value.",
        }
    ),
    *_works(
        {
            "model_warmup": "Samples that each instance executes before it serves; they are counted.",
            "model_warmup.name": "Name, for messages.",
            "model_warmup.batch_size": "Requests of one row that are executed together; 0 skips the sample.",
            "model_warmup.inputs": "Inputs of each of them.",
            "model_warmup.inputs.data_type": "Element type.",
            "model_warmup.inputs.dims": "Sizes without the batch dimension.",
            "model_warmup.inputs.zero_data": "Zeros.",
            "model_warmup.inputs.random_data": "Numbers from 1 to 2, integers from 0 to 127; the same at each load.",
            "model_warmup.inputs.input_data_file": "File in the model's `warmup/`.",
            "model_warmup.count": "How often to run it; once where not given.",
        }
    ),
    *_tree(
        "refused",
        "custom operators cannot be loaded yet",
        "model_operations",
        {"": "Further libraries.", "op_library_filename": "Libraries of custom operators."},
    ),
    *_works(
        {
            "model_transaction_policy": "How many responses a request has.",
            "model_transaction_policy.decoupled": "Any number, none included, in place of one.",
        }
    ),
    *_works(
        {
            "model_repository_agents": "What is done with the folder before a load.",
            "model_repository_agents.agents": "One such thing.",
            "model_repository_agents.agents.name": "Its name: checksum, which compares files with their sums; any "
            "other is refused by name.",
            "model_repository_agents.agents.parameters": "Its settings; of checksum `MD5:<path in the folder>` and the "
            "sum, 32 small hexadecimal digits.",
        }
    ),
    *_works(
        {
            "response_cache": "Answer repeated requests from memory.",
            "response_cache.enable": "Do so, where the server has a cache (`--cache-config`); else it gives a notice.",
        }
    ),
    *_works(
        {
            "model_metrics": "Settings of the model's metrics.",
            "model_metrics.metric_control": "One metric.",
            "model_metrics.metric_control.metric_identifier": "Which one.",
            "model_metrics.metric_control.metric_identifier.family": "Name of the family: "
            "nv_inference_first_response_histogram_ms; another one gives a notice.",
            "model_metrics.metric_control.histogram_options": "How it is counted.",
            "model_metrics.metric_control.histogram_options.buckets": "Upper bounds of its buckets, ascending.",
        }
    ),
)

_BY_PATH: Final = {row.path: row for row in FIELDS}


def find_field(path: str) -> Field:
    """The row of a field.

    Raises:
        KeyError: If the proto file has a field that the table lacks, which a test rules out.
    """
    return _BY_PATH[path]
