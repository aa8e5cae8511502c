"""The tables of `parameters` that models of OpenVINO, TensorFlow and MLflow may carry; workers read what they say.

Source: the documented keys of Triton's backends, in capitals as their users know them, and one of our own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from alipes.config.parameters import Parameter

__all__ = ["MLFLOW_PARAMETERS", "OPENVINO_PARAMETERS", "TENSORFLOW_PARAMETERS", "ignored_parameters"]

_THREADS: Final = "cores ÷ instances where not given, or `OMP_NUM_THREADS`."
_OWN_PROCESS: Final = "each instance is a process of its own"

OPENVINO_PARAMETERS: Final[tuple[Parameter, ...]] = (
    Parameter("INFERENCE_NUM_THREADS", "count", "works", f"Threads of an instance; {_THREADS}"),
    Parameter("NUM_STREAMS", "count", "works", "Parts into which these threads are divided; 1 where not given."),
    Parameter(
        "PERFORMANCE_HINT",
        "text",
        "works",
        "`LATENCY`, `THROUGHPUT` or `CUMULATIVE_THROUGHPUT`: OpenVINO's choice of settings; `LATENCY` where not given.",
    ),
    Parameter("HINT_BF16", "text", "works", "`YES` lets the processor calculate in bfloat16, which rounds."),
    Parameter("TARGET_DEVICE", "text", "works", "The device, of those that OpenVINO finds; `CPU` where not given."),
    Parameter(
        "COMPILATION_NUM_THREADS",
        "count",
        "ignored",
        "Threads to compile a model with.",
        "OpenVINO's plugin for processors does not take it",
    ),
    Parameter(
        "CPU_EXTENSION_PATH", "text", "ignored", "A library of operations.", "operations of users are not loaded"
    ),
    Parameter(
        "SKIP_OV_DYNAMIC_BATCHSIZE", "text", "ignored", "Keep the number of rows.", "batches have any number of rows"
    ),
    Parameter("ENABLE_BATCH_PADDING", "text", "ignored", "Fill batches up.", "batches have any number of rows"),
    Parameter(
        "RESHAPE_IO_LAYOUTS", "text", "ignored", "Reshape to the sizes of the configuration.", "the file's shapes hold"
    ),
)

TENSORFLOW_PARAMETERS: Final[tuple[Parameter, ...]] = (
    Parameter("TF_SIGNATURE_DEF", "text", "works", "The signature; `serving_default` where not given."),
    Parameter("TF_GRAPH_TAG", "text", "works", "The tag of the graph; `serve` where not given."),
    Parameter("TF_NUM_INTRA_THREADS", "count", "works", f"Threads within an operation; {_THREADS}"),
    Parameter("TF_NUM_INTER_THREADS", "count", "works", "Operations side by side; 1 where not given."),
    Parameter("TF_USE_PER_SESSION_THREADS", "text", "ignored", "Threads of its own for a session.", _OWN_PROCESS),
    Parameter("MAX_SESSION_SHARE_COUNT", "count", "ignored", "Instances that share a session.", _OWN_PROCESS),
    Parameter("TF_INIT_OPS_FILE", "text", "ignored", "Operations that prepare a GraphDef.", "GraphDefs are not served"),
)

MLFLOW_PARAMETERS: Final[tuple[Parameter, ...]] = (
    Parameter(
        "MLFLOW_FLAVOR",
        "text",
        "works",
        "The flavor that runs the model, such as `python_function`; the first that there is a backend for where not "
        "given.",
    ),
)


def ignored_parameters(rows: Iterable[Parameter], keys: Iterable[str], name: str) -> tuple[str, ...]:
    """One line for each parameter of a model that does nothing here.

    Args:
        rows: The table of its backend.
        keys: The parameters that it has.
        name: The model.
    """
    ignored = {row.key: row.note for row in rows if row.status == "ignored"}
    return tuple(
        f"parameter '{key}' of model '{name}' is ignored: {ignored[key]}" for key in sorted(keys) if key in ignored
    )
