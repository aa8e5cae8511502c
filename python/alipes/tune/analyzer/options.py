"""What of Model Analyzer's options there is, and what becomes of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

__all__ = [
    "FIGURE_OF_METRIC",
    "MODEL_OPTIONS",
    "OPTIONS",
    "OPTIONS_BEHIND",
    "OPTIONS_OF_REPORT",
    "PERF_FLAGS_OF_DATA",
    "PERF_FLAGS_WITHOUT_EFFECT",
    "Status",
]

Status: TypeAlias = Literal["works", "ignored", "refused"]


def _table(status: Status, names: str, note: str = "") -> dict[str, tuple[Status, str]]:
    return dict.fromkeys(names.split(), (status, note))


_ENVIRONMENT: Final = "set these variables for this command, whose servers have them too"

OPTIONS: Final[Mapping[str, tuple[Status, str]]] = {
    **_table(
        "works",
        """
        batch_sizes bls_composing_models checkpoint_directory client_protocol concurrency concurrency_sweep_disable
        constraints cpu_only_composing_models ensemble_composing_models export_path filename_model_gpu
        filename_model_inference filename_server_only inference_output_fields latency_budget min_throughput
        model_repository num_configs_per_model objectives optuna_max_trials output_model_repository_path
        override_output_model_repository perf_analyzer_flags profile_models request_rate request_rate_search_enable
        run_config_profile_models_concurrently_enable run_config_search_disable run_config_search_max_concurrency
        run_config_search_max_instance_count run_config_search_max_model_batch_size
        run_config_search_max_request_rate run_config_search_min_concurrency run_config_search_min_instance_count
        run_config_search_min_model_batch_size run_config_search_min_request_rate run_config_search_mode
        skip_summary_reports triton_server_flags
        """,
    ),
    **_table("ignored", "collect_cpu_metrics", "memory and processor time of the server are always measured"),
    **_table(
        "ignored",
        "always_report_gpu_metrics dcgm_disable gpus gpu_output_fields server_output_fields duration_seconds "
        "monitoring_interval",
        "there is no GPU to watch",
    ),
    **_table(
        "ignored",
        "perf_analyzer_cpu_util perf_analyzer_max_auto_adjusts perf_analyzer_path "
        "perf_analyzer_timeout perf_output perf_output_path client_max_retries",
        "the load test is alipes' own, and settles or says that it did not",
    ),
    **_table(
        "ignored",
        "triton_grpc_endpoint triton_http_endpoint triton_metrics_url triton_install_path triton_server_path "
        "triton_output_path triton_docker_args triton_docker_image triton_docker_labels "
        "triton_docker_mounts triton_docker_shm_size reload_model_disable",
        "servers are alipes' own, on free ports of this machine",
    ),
    **_table(
        "ignored",
        "early_exit_enable max_percentage_of_search_space min_percentage_of_search_space optuna_early_exit_threshold "
        "optuna_min_trials run_config_search_max_binary_search_steps use_concurrency_formula",
        "the search is alipes' own: which points are tried, no figure of a point depends on it",
    ),
    **_table(
        "ignored",
        "num_top_model_configs plots skip_detailed_reports",
        "the report is alipes' own, and no figure depends on it",
    ),
    **_table("refused", "triton_server_environment", _ENVIRONMENT),
    **_table("refused", "weighting", "it belongs to a model, among the options of that in profile_models"),
    **_table("refused", "genai_perf_flags", "there are no language models of that interface"),
}
"""Every option of its command `profile`, with what becomes of it, and why; `model_type`, `triton_launch_mode` and
`config_file` are looked at by value."""

OPTIONS_OF_REPORT: Final[Mapping[str, tuple[Status, str]]] = _table(
    "ignored", "report_model_configs output_formats", "it belongs to the command `report`, which there is not"
)
"""Those that its command `report` alone has: one file is for both commands."""

_BEHIND: Final = "it gets no requests of its own, and the server has the options of the models that do"

MODEL_OPTIONS: Final[Mapping[str, tuple[Status, str]]] = {
    **_table(
        "works",
        "parameters objectives constraints model_config_parameters cpu_only weighting triton_server_flags "
        "perf_analyzer_flags",
    ),
    **_table("ignored", "triton_docker_args", "servers are alipes' own, without Docker"),
    **_table("refused", "genai_perf_flags", "there are no language models of that interface"),
    **_table("refused", "triton_server_environment", _ENVIRONMENT),
}
"""Every option of one model, with what becomes of it, and why."""

OPTIONS_BEHIND: Final[Mapping[str, tuple[Status, str]]] = {
    name: ("works", "") if name in ("model_config_parameters", "cpu_only") else ("ignored", _BEHIND)
    for name in MODEL_OPTIONS
}
"""Likewise of a model that ensembles or Python models call."""

PERF_FLAGS_OF_DATA: Final = ("input-data", "shape", "string-data", "string-length")
"""Flags of perf_analyzer that say what is sent, which the load test takes."""

PERF_FLAGS_WITHOUT_EFFECT: Final = frozenset(
    [
        "collect-metrics",
        "extra-verbose",
        "max-threads",
        "max-trials",
        "measurement-interval",
        "measurement-mode",
        "measurement-request-count",
        "metrics-interval",
        "metrics-url",
        "stability-percentage",
        "verbose",
    ]
)
"""Flags of perf_analyzer that say how long and how it measures, not what is sent or which figure counts: the load test
is our own, and settles or says that it did not."""

FIGURE_OF_METRIC: Final[Mapping[str, str]] = {
    "perf_throughput": "rate",
    "perf_latency": "p99_ms",
    "perf_latency_avg": "mean_ms",
    "perf_latency_p90": "p90_ms",
    "perf_latency_p95": "p95_ms",
    "perf_latency_p99": "p99_ms",
    "cpu_used_ram": "memory_mb",
}
"""Its metrics that are measured here, by our names. The units are the same."""
