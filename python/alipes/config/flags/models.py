"""Flags on which models are served, and from where."""

from __future__ import annotations

from typing import Final

from alipes.config.flags.flag import NO_GPU, Flag

__all__ = ["MODELS"]

MODELS: Final[tuple[Flag, ...]] = (
    Flag(
        "model-repository",
        "list",
        (),
        "Folder of models, or an address such as `s3://bucket/models`; for `alipes serve` the positional REPOSITORY "
        "too.",
        option="repository.paths",
        path="folder",
    ),
    Flag(
        "model-store",
        "list",
        (),
        "What KServe and others put at one place: a repository, folders that hold one model's files each, or the files "
        "of one model alone, which --model-name names. For `tritonserver` another name of --model-repository.",
        option="repository.stores",
        path="folder",
    ),
    Flag(
        "model-control-mode",
        "choice",
        "none",
        "`none` loads every model at start; `poll` also follows every later change of the repository; `explicit` "
        "loads those named by --load-model, and more on request.",
        option="repository.control_mode",
        choices=("none", "poll", "explicit"),
        common=True,
    ),
    Flag(
        "load-model",
        "list",
        (),
        "Model to load at start in explicit mode; `*` alone means all.",
        option="repository.load_models",
        common=True,
    ),
    Flag(
        "repository-poll-secs",
        "int",
        15,
        "Seconds between two looks at the repository, in the mode `poll`.",
        low=1,
        option="repository.poll_interval_s",
    ),
    Flag(
        "reload",
        "bool",
        False,
        "Follow the source of apps: what has changed takes over once it serves. Not a flag of Triton.",
        option="repository.reload",
        common=True,
    ),
    Flag(
        "exit-on-error",
        "bool",
        False,
        "Leave when a model fails at start, or a repository cannot be read; otherwise neither stops the others. "
        "The default of `tritonserver` is true, that of `alipes serve` false.",
        option="repository.exit_on_error",
        common=True,
    ),
    Flag("strict-readiness", "bool", True, "Ready only while every model is.", option="repository.strict_readiness"),
    Flag(
        "disable-auto-complete-config",
        "bool",
        False,
        "Take configurations as they are written: nothing is completed from the model.",
        option="model.strict_config",
    ),
    Flag(
        "strict-model-config",
        "bool",
        False,
        "Older name of --disable-auto-complete-config.",
        alias="disable-auto-complete-config",
        option="model.strict_config",
    ),
    Flag(
        "model-config-name",
        "str",
        "",
        "Read `configs/<name>.pbtxt` of a model where it exists.",
        option="model.config_name",
    ),
    Flag(
        "model-load-thread-count",
        "int",
        4,
        "Models that load at the same time.",
        low=1,
        option="repository.load_threads",
    ),
    Flag(
        "model-load-retry-count",
        "int",
        0,
        "Further attempts at a model version that does not load.",
        option="repository.load_retries",
    ),
    Flag(
        "model-load-timeout-secs",
        "seconds",
        0.0,
        "Seconds that the load of a model may take, with all its versions and attempts; then it fails, and what it "
        "has begun ends. 0 sets no limit. Not a flag of Triton.",
        option="repository.load_timeout_s",
    ),
    Flag("model-load-gpu-limit", "list", (), "Share of a GPU's memory, `device:fraction`.", ignored=NO_GPU),
    Flag(
        "model-namespacing",
        "bool",
        False,
        "Allow one model name in several repositories. A request for a name that several of them serve is refused.",
        option="repository.namespacing",
    ),
    Flag(
        "gpu-fallback",
        "choice",
        "cpu",
        "What KIND_GPU means without a GPU: `cpu` loads on the CPU with a notice, `refuse` fails the load. "
        "Not a flag of Triton, which refuses.",
        choices=("cpu", "refuse"),
        option="model.gpu_fallback",
    ),
    Flag(
        "allow-pickles",
        "list",
        (),
        "A model whose files may run code while they are read, such as pickles; `*` stands for all models. "
        "Not a flag of Triton.",
        option="model.allow_pickles",
    ),
    Flag(
        "streaming-max-sequences",
        "int",
        10_000,
        "Live sequences of a snapshotter or averager; each holds its state in memory until it ends or goes silent.",
        low=1,
        high=10_000_000,
        option="model.streaming_max_sequences",
    ),
)
