"""Reads Model Analyzer's YAML into searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from alipes.compat.perf_analyzer.settings import SentData
from alipes.config.nearest import nearest
from alipes.errors import ConfigError
from alipes.tune.analyzer.config_values import config_values
from alipes.tune.analyzer.document import OptionsDocument
from alipes.tune.analyzer.goals import read_goal
from alipes.tune.analyzer.load_ranges import load_ranges, usual_ranges
from alipes.tune.analyzer.options import (
    MODEL_OPTIONS,
    OPTIONS,
    OPTIONS_BEHIND,
    OPTIONS_OF_REPORT,
    Status,
)
from alipes.tune.analyzer.perf_flags import ignored_flags, sent_data
from alipes.tune.goal import Goal
from alipes.tune.knobs import CALLERS, RATE, ROWS, Value

__all__ = ["ModelPlan", "Plan", "read_plan"]

_MODES: Final = ("brute", "quick", "optuna")
_LAUNCHED_HERE: Final = ("local", "c_api", "docker")
_SETTLES: Final = "the load test is alipes' own, and settles or says that it did not"


@dataclass(frozen=True)
class ModelPlan:
    """A model that is tuned.

    Attributes:
        name: Its name.
        ranges: Values by knob.
        goal: What is wanted of it.
        weight: How much it counts beside others that get requests at the same time.
        flags: Of the servers that it is tried on.
        sent: What its requests hold; random values where it is none.
    """

    name: str
    ranges: Mapping[str, Sequence[Value]]
    goal: Goal
    weight: float = 1.0
    flags: Mapping[str, str] = field(default_factory=dict)
    sent: SentData | None = None


@dataclass(frozen=True)
class Plan:
    """What a file says.

    Attributes:
        repository: The folder with the models.
        models: Those that get requests.
        together: Whether they get them at the same time.
        composing: Values by knob of models that ensembles or Python models call, by model.
        called: Those of them that Python models call.
        automatic: Models of which the file names no values, so that the usual ones are tried.
        usual: Values by knob of the automatic search; none where that is disabled.
        cpu_only: Models that are to run on the CPU.
        search: `brute`, `quick` or `optuna`.
        trials: Most trials; `None` for the search's own number.
        protocol: Over which.
        output: Where the configurations go.
        export: Where the tables go.
        checkpoint: Where trials are kept.
        fields: Columns of the table.
        filename: Of the table.
        filename_gpu: Of the table about GPUs, which has no rows.
        filename_server: Of the table about the server's GPUs, likewise.
        configs: How many configurations of each model are written.
        overrides: Whether the configurations may go into a folder that has something in it.
        reports: Whether a report is written.
        notices: One line for each option that does nothing here.
    """

    repository: Path
    models: Sequence[ModelPlan]
    together: bool
    composing: Mapping[str, Mapping[str, Sequence[Value]]]
    called: Sequence[str]
    automatic: frozenset[str]
    usual: Mapping[str, Sequence[Value]]
    cpu_only: frozenset[str]
    search: str
    trials: int | None
    protocol: str
    output: Path
    export: Path
    checkpoint: Path
    fields: Sequence[str]
    filename: str
    filename_gpu: str
    filename_server: str
    configs: int
    overrides: bool
    reports: bool
    notices: Sequence[str] = field(default_factory=tuple)

    load_knobs = frozenset({CALLERS, RATE, ROWS})
    """Those that an ensemble has."""


INFERENCE_FIELDS: Final = (
    "model_name", "batch_size", "concurrency", "model_config_path", "instance_group", "max_batch_size",
    "satisfies_constraints", "perf_throughput", "perf_latency_p99",
)  # fmt: skip


def _own_fields(models: Sequence[ModelPlan]) -> Sequence[str]:
    """The columns of a table where the file names none: a load is shown as what it is."""
    rates = any(RATE in model.ranges for model in models)
    return [("request_rate" if rates and name == "concurrency" else name) for name in INFERENCE_FIELDS]


def read_plan(path: Path | None, options: Mapping[str, Any] | None = None) -> Plan:
    """Reads a file.

    Args:
        path: The file; `None` where the options say all.
        options: What a command line says besides, by the names of the file; it goes first.

    Raises:
        Unsupported: If PyYAML is not installed.
        ConfigError: If it is no such file, or asks for what there is not.
    """
    return _Reader(OptionsDocument.read(path, options or {})).plan()


class _Reader:
    """One file; errors name it."""

    def __init__(self, document: OptionsDocument) -> None:
        self._document = document
        self._notices_of_models: list[str] = []
        self._automatic: set[str] = set()
        self._cpu_only: set[str] = set()

    def plan(self) -> Plan:
        notices = self._notices()
        models = [self._model(name, spec) for name, spec in self._document.models("profile_models").items()]
        if not models:
            raise self._document.wrong(
                "profile_models", "names at least one model", self._document.get("profile_models")
            )
        mode = self._document.get("run_config_search_mode", "brute")
        if mode not in _MODES:
            raise self._document.wrong("run_config_search_mode", "is brute, quick or optuna", mode)
        protocol = self._document.get("client_protocol", "grpc")
        if protocol not in ("http", "grpc"):
            raise self._document.wrong("client_protocol", "is http or grpc", protocol)
        composing = {
            name: self._behind(name, spec)
            for option in ("ensemble_composing_models", "bls_composing_models")
            for name, spec in self._document.models(option).items()
        }
        return Plan(
            Path(self._document.text("model_repository", None)),
            models,
            bool(self._document.get("run_config_profile_models_concurrently_enable", False)),
            composing,
            list(self._document.models("bls_composing_models")),
            frozenset(self._automatic),
            usual_ranges(self._document),
            frozenset([*self._cpu_only, *self._document.models("cpu_only_composing_models")]),
            mode,
            self._document.number("optuna_max_trials", 200) if mode == "optuna" else None,
            protocol,
            Path(self._document.text("output_model_repository_path", "output_model_repository")),
            Path(self._document.text("export_path", ".")),
            Path(self._document.text("checkpoint_directory", "checkpoints")),
            list(self._document.get("inference_output_fields", _own_fields(models))),
            self._document.text("filename_model_inference", "metrics-model-inference.csv"),
            self._document.text("filename_model_gpu", "metrics-model-gpu.csv"),
            self._document.text("filename_server_only", "metrics-server-only.csv"),
            self._document.number("num_configs_per_model", 3),
            bool(self._document.get("override_output_model_repository", False)),
            not self._document.get("skip_summary_reports", False),
            [*notices, *self._notices_of_models],
        )

    def _notices(self) -> list[str]:
        """Refuses what there is not; names what does nothing."""
        notices: list[str] = []
        known = {**OPTIONS, **OPTIONS_OF_REPORT}
        notices += self._perf_notices(self._document.get("perf_analyzer_flags"))
        self._check_gpus()
        for name in self._document:
            if name in ("model_type", "triton_launch_mode", "config_file"):
                continue
            if name not in known:
                close = nearest(str(name), known)
                hint = f"did you mean '{close}'?" if close else None
                raise ConfigError(f"there is no option '{name}'", path=self._document.path, key=str(name), hint=hint)
            notices += self._notice(str(name), known[name])
        if self._document.get("model_type", "generic") != "generic":
            raise self._document.wrong(
                "model_type", "is generic: there are no language models here", self._document.get("model_type")
            )
        mode = self._document.get("triton_launch_mode", "local")
        if mode not in _LAUNCHED_HERE:
            raise self._document.wrong("triton_launch_mode", "is local: each trial starts a server of its own", mode)
        return notices

    def _notice(self, option: str, known: tuple[Status, str], model: str = "") -> list[str]:
        """A line for an option that does nothing here; one that is not offered is refused."""
        status, note = known
        whose = f"option '{option}'{f' of {model!r}' if model else ''}"
        if status == "refused":
            raise ConfigError(f"{whose} is not offered: {note}", path=self._document.path, key=option)
        return [f"{whose} is ignored: {note}"] if status == "ignored" else []

    def _perf_notices(self, flags: Any, model: str = "") -> list[str]:
        """A line for the flags of perf_analyzer that do nothing here; one that would change figures is refused."""
        whose = f"option 'perf_analyzer_flags'{f' of {model!r}' if model else ''}"
        names = ", ".join(f"'{name}'" for name in ignored_flags(self._document, flags))
        return [f"{whose} has {names}, ignored: {_SETTLES}"] if names else []

    def _check_gpus(self) -> None:
        """All GPUs and none can be said of any machine; some would need others hidden."""
        if self._document.get("gpus") not in (None, "all", ["all"], "", "[]", []):
            raise ConfigError(
                "option 'gpus' names some, and the servers have all that this command has",
                path=self._document.path,
                key="gpus",
                hint="leave it out, and set CUDA_VISIBLE_DEVICES for this command",
            )

    def _model(self, name: str, spec: Mapping[str, Any]) -> ModelPlan:
        self._options(name, spec, MODEL_OPTIONS)
        self._notices_of_models += self._perf_notices(spec.get("perf_analyzer_flags"), name)
        ranges = {**self._config_ranges(name, spec), **load_ranges(self._document, spec)}
        weight = spec.get("weighting") or 1  # its own parser takes 0 for not given
        if not isinstance(weight, int) or isinstance(weight, bool) or weight < 0:
            raise self._document.wrong("weighting", "is a whole number above 0", weight)
        flags = self._flags(spec.get("triton_server_flags")) or self._flags(self._document.get("triton_server_flags"))
        sent = sent_data(self._document, spec.get("perf_analyzer_flags") or self._document.get("perf_analyzer_flags"))
        return ModelPlan(name, ranges, read_goal(self._document, spec), float(weight), flags, sent)

    def _behind(self, name: str, spec: Mapping[str, Any]) -> dict[str, Sequence[Value]]:
        """The values of a model that others call."""
        self._options(name, spec, OPTIONS_BEHIND)
        return self._config_ranges(name, spec)

    def _options(self, name: str, spec: Mapping[str, Any], known: Mapping[str, tuple[Status, str]]) -> None:
        """Refuses what a model has not; notes what does nothing."""
        if unknown := spec.keys() - known.keys():
            raise self._document.wrong(name, f"has {', '.join(known)}", min(unknown))
        for option in spec:
            self._notices_of_models += self._notice(option, known[option], name)
        if spec.get("cpu_only"):
            self._cpu_only.add(name)

    def _flags(self, flags: Any) -> dict[str, str]:
        """Of servers: those of a model take the place of those of all."""
        flags = flags or {}
        if not isinstance(flags, dict):
            raise self._document.wrong("triton_server_flags", "has values by name", flags)
        return {str(name).replace("-", "_"): str(value) for name, value in flags.items()}

    def _config_ranges(self, name: str, spec: Mapping[str, Any]) -> dict[str, Sequence[Value]]:
        """The lists of the file; without any, and unless that is disabled, the ranges of its automatic search."""
        wanted = spec.get("model_config_parameters")
        if wanted:
            return config_values(wanted, self._document.path, name)
        self._automatic.add(name)
        return usual_ranges(self._document)
