"""Settings of backends: those that all share, those of ONNX Runtime, of Python models and of attached ones."""

from __future__ import annotations

from typing import Final

from alipes.config.flags.flag import MAX_BYTES
from alipes.config.settings.setting import Setting

__all__ = ["ATTACHED", "BACKENDS", "PYTHON"]

_BACKEND: Final = "backend-config"
_ORT: Final = "onnxruntime"
_PYTHON: Final = "python"
_BATCH: Final = "default-max-batch-size"
_DELAY: Final = "default-max-queue-delay-microseconds"
_LONGEST_US: Final = 86_400_000_000
"""A day."""
_BATCH_HELP: Final = "Largest batch in rows for completed configurations of models that allow batches"
_NO_SHM: Final = "tensors reach Python models through memory that needs no setting"
_OWN_THREADS: Final = "each model has threads of its own, set by its parameters"

BACKENDS: Final = (
    Setting(
        _BACKEND,
        "",
        _BATCH,
        "int",
        4,
        f"{_BATCH_HELP}; with --model-store, --model-list or a model's file 1024, or as many as have 16 MiB of inputs.",
        option="model.default_max_batch_size",
    ),
    Setting(
        _BACKEND,
        _ORT,
        _BATCH,
        "int",
        None,
        f"{_BATCH_HELP}, for ONNX Runtime alone.",
        option="model.onnxruntime_default_max_batch_size",
    ),
    Setting(
        _BACKEND,
        "",
        _DELAY,
        "int",
        0,
        "Longest wait of a request for a fuller batch, for models that completed configurations let batch.",
        option="model.default_max_queue_delay_us",
        high=_LONGEST_US,
    ),
    Setting(
        _BACKEND,
        "",
        "auto-complete-config",
        "bool",
        True,
        "Set by Triton itself.",
        ignored="use --disable-auto-complete-config",
    ),
    Setting(
        _BACKEND,
        "",
        "min-compute-capability",
        "str",
        "6.0",
        "Oldest GPU to use.",
        ignored="GPUs from 6.0 on are used",
    ),
    Setting(
        _BACKEND,
        "",
        "backend-directory",
        "str",
        "",
        "Folder of backend libraries.",
        ignored="backends are Python packages, found by name",
    ),
    Setting(
        _BACKEND,
        _ORT,
        "enable-global-threadpool",
        "bool",
        False,
        "Share one set of threads among models.",
        ignored=_OWN_THREADS,
    ),
    Setting(
        _BACKEND, _ORT, "intra_op_thread_count", "int", 0, "Shared threads within an operator.", ignored=_OWN_THREADS
    ),
    Setting(
        _BACKEND, _ORT, "inter_op_thread_count", "int", 0, "Shared threads across operators.", ignored=_OWN_THREADS
    ),
)

PYTHON: Final = (
    Setting(
        _BACKEND,
        _PYTHON,
        "start-timeout-seconds",
        "seconds",
        0.0,
        "Longest start of a Python model, `initialize` included; 0 sets no limit.",
        option="worker.start_timeout_s",
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        "execute-timeout-seconds",
        "seconds",
        0.0,
        "Longest `execute` of a Python model; its process is then started again. 0 sets no limit.",
        option="worker.execute_timeout_s",
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        "stop-timeout-seconds",
        "seconds",
        30.0,
        "Longest `finalize` of a Python model; its process is then killed. 0 sets no limit.",
        option="worker.stop_timeout_s",
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        "auto-complete-timeout-seconds",
        "seconds",
        120.0,
        "Longest `auto_complete_config` of a Python model, imports included; 0 sets no limit.",
        option="worker.complete_timeout_s",
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        "max-worker-memory-bytes",
        "int",
        0,
        "Resident memory of one process of a Python model, which is started again above it; 0 sets no limit.",
        option="worker.max_memory_bytes",
        high=MAX_BYTES,
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        "max-leased-bytes",
        "int",
        1 << 30,
        "Inputs that one process of a Python model may keep after it has answered; 0 sets no limit.",
        option="worker.max_leased_bytes",
        high=MAX_BYTES,
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        "stub-timeout-seconds",
        "int",
        30,
        "Longest start of a process, without `initialize`.",
        ignored="a process that ends is seen at once; start-timeout-seconds limits a start as a whole",
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        "shm-default-byte-size",
        "int",
        1 << 20,
        "Shared memory of a process at its start.",
        ignored=_NO_SHM,
        high=MAX_BYTES,
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        "shm-growth-byte-size",
        "int",
        1 << 20,
        "Step in which shared memory grows.",
        ignored=_NO_SHM,
        high=MAX_BYTES,
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        "shm-region-prefix-name",
        "str",
        "triton_python_backend_shm_region_",
        "Name of shared memory.",
        ignored="it has no name: nothing is put into /dev/shm",
    ),
    Setting(_BACKEND, _PYTHON, "shm_message_queue_size", "int", 1000, "Messages in shared memory.", ignored=_NO_SHM),
    Setting(
        _BACKEND,
        _PYTHON,
        "thread-pool-size",
        "int",
        32,
        "Threads that answer calls of a model.",
        ignored="calls of a model wait without threads of their own",
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        _BATCH,
        "int",
        None,
        f"{_BATCH_HELP}, for Python models.",
        ignored="auto_complete_config says what a Python model takes",
    ),
)

ATTACHED: Final = (
    Setting(
        _BACKEND,
        "attached",
        "socket",
        "int",
        None,
        "Number of an inherited socket, over which the script that started the server takes the instances of its "
        "models; `alipes.attached` sets it.",
        option="worker.attached_socket",
    ),
)
