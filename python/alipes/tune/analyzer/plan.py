"""Reads Model Analyzer's YAML into searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from alipes.config.nearest import nearest
from alipes.errors import ConfigError, Unsupported
from alipes.tune.analyzer.config_values import config_values
from alipes.tune.analyzer.options import (
    FIGURE_OF_METRIC,
    MODEL_OPTIONS,
    OPTIONS,
    OPTIONS_BEHIND,
    OPTIONS_OF_REPORT,
    PERF_FLAGS_WITHOUT_EFFECT,
    Status,
)
from alipes.tune.goal import Goal, Limit, Objective
from alipes.tune.knobs import CALLERS, RATE, ROWS, Value

__all__ = ["ModelPlan", "Plan", "read_plan"]

_MAX_FILE_BYTES: Final = 1 << 20
_MAX_ALTERNATIVES: Final = 100
_MODES: Final = ("brute", "quick", "optuna")
_LAUNCHED_HERE: Final = ("local", "c_api", "docker")


@dataclass(frozen=True)
class ModelPlan:
    """A model that is tuned.

    Attributes:
        name: Its name.
        ranges: Values by knob.
        goal: What is wanted of it.
        weight: How much it counts beside others that get requests at the same time.
        flags: Of the servers that it is tried on.
    """

    name: str
    ranges: Mapping[str, Sequence[Value]]
    goal: Goal
    weight: float = 1.0
    flags: Mapping[str, str] = field(default_factory=dict)


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
    document = {**(_document(path) if path is not None else {}), **(options or {})}
    return _Reader(document, path).plan()


def _document(path: Path) -> dict[str, Any]:
    try:
        yaml: Any = import_module("yaml")
    except ImportError as error:
        raise Unsupported("Model Analyzer's files need PyYAML: pip install 'alipes[tune]'") from error
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MAX_FILE_BYTES + 1)
        if len(text) > _MAX_FILE_BYTES:
            raise ConfigError(f"the file is longer than the limit of {_MAX_FILE_BYTES:,} characters", path=path)
        document = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read: {' '.join(str(error).split())}", path=path) from error
    if not isinstance(document, dict):
        raise ConfigError("expected options by name", path=path)
    return document


class _Reader:
    """One file; errors name it."""

    def __init__(self, document: Mapping[str, Any], path: Path | None) -> None:
        self._document = document
        self._path = path
        self._notices_of_models: list[str] = []
        self._automatic: set[str] = set()
        self._cpu_only: set[str] = set()

    def plan(self) -> Plan:
        notices = self._notices()
        models = [self._model(name, spec) for name, spec in self._models("profile_models").items()]
        if not models:
            raise self._wrong("profile_models", "names at least one model", self._document.get("profile_models"))
        mode = self._document.get("run_config_search_mode", "brute")
        if mode not in _MODES:
            raise self._wrong("run_config_search_mode", "is brute, quick or optuna", mode)
        protocol = self._document.get("client_protocol", "grpc")
        if protocol not in ("http", "grpc"):
            raise self._wrong("client_protocol", "is http or grpc", protocol)
        composing = {
            name: self._behind(name, spec)
            for option in ("ensemble_composing_models", "bls_composing_models")
            for name, spec in self._models(option).items()
        }
        return Plan(
            Path(self._text("model_repository", None)),
            models,
            bool(self._document.get("run_config_profile_models_concurrently_enable", False)),
            composing,
            list(self._models("bls_composing_models")),
            frozenset(self._automatic),
            self._usual_ranges(),
            frozenset([*self._cpu_only, *self._models("cpu_only_composing_models")]),
            mode,
            self._number("optuna_max_trials", 200) if mode == "optuna" else None,
            protocol,
            Path(self._text("output_model_repository_path", "output_model_repository")),
            Path(self._text("export_path", ".")),
            Path(self._text("checkpoint_directory", "checkpoints")),
            list(self._document.get("inference_output_fields", _own_fields(models))),
            self._text("filename_model_inference", "metrics-model-inference.csv"),
            self._text("filename_model_gpu", "metrics-model-gpu.csv"),
            self._text("filename_server_only", "metrics-server-only.csv"),
            self._number("num_configs_per_model", 3),
            bool(self._document.get("override_output_model_repository", False)),
            not self._document.get("skip_summary_reports", False),
            [*notices, *self._notices_of_models],
        )

    def _notices(self) -> list[str]:
        """Refuses what there is not; names what does nothing."""
        notices: list[str] = []
        known = {**OPTIONS, **OPTIONS_OF_REPORT}
        self._check_perf_flags(self._document)
        self._check_gpus()
        for name in self._document:
            if name in ("model_type", "triton_launch_mode", "config_file"):
                continue
            if name not in known:
                close = nearest(str(name), known)
                hint = f"did you mean '{close}'?" if close else None
                raise ConfigError(f"there is no option '{name}'", path=self._path, key=str(name), hint=hint)
            notices += self._notice(str(name), known[name])
        if self._document.get("model_type", "generic") != "generic":
            raise self._wrong(
                "model_type", "is generic: there are no language models here", self._document["model_type"]
            )
        mode = self._document.get("triton_launch_mode", "local")
        if mode not in _LAUNCHED_HERE:
            raise self._wrong("triton_launch_mode", "is local: each trial starts a server of its own", mode)
        return notices

    def _notice(self, option: str, known: tuple[Status, str], model: str = "") -> list[str]:
        """A line for an option that does nothing here; one that is not offered is refused."""
        status, note = known
        whose = f"option '{option}'{f' of {model!r}' if model else ''}"
        if status == "refused":
            raise ConfigError(f"{whose} is not offered: {note}", path=self._path, key=option)
        return [f"{whose} is ignored: {note}"] if status == "ignored" else []

    def _check_gpus(self) -> None:
        """All GPUs and none can be said of any machine; some would need others hidden."""
        if self._document.get("gpus") not in (None, "all", ["all"], "", "[]", []):
            raise ConfigError(
                "option 'gpus' names some, and the servers have all that this command has",
                path=self._path,
                key="gpus",
                hint="leave it out, and set CUDA_VISIBLE_DEVICES for this command",
            )

    def _check_perf_flags(self, options: Mapping[str, Any]) -> None:
        """Refuses flags of perf_analyzer without which other figures would come out; one that is false is not given."""
        flags = options.get("perf_analyzer_flags") or {}
        if not isinstance(flags, dict):
            raise self._wrong("perf_analyzer_flags", "has values by name", flags)
        for name in (
            str(flag).replace("_", "-") for flag, value in flags.items() if not (value is None or value is False)
        ):
            if name not in PERF_FLAGS_WITHOUT_EFFECT:
                raise ConfigError(
                    f"option 'perf_analyzer_flags' has '{name}', which is not offered, and the figures depend on it",
                    path=self._path,
                    key="perf_analyzer_flags",
                    hint="search with `alipes tune`, which has --shape and --batch, or leave the flag out",
                )

    def _models(self, option: str) -> dict[str, Mapping[str, Any]]:
        """Names with their own options: a text with commas, a list of names or of mappings, or one mapping."""
        named = self._document.get(option) or []
        if isinstance(named, str):
            named = [name.strip() for name in named.split(",")]
        found: dict[str, Mapping[str, Any]] = {}
        for one in named if isinstance(named, list) else [named]:
            if isinstance(one, str):
                found[one] = {}
            elif isinstance(one, dict) and all(isinstance(spec, dict | None) for spec in one.values()):
                found |= {str(name): spec or {} for name, spec in one.items()}
            else:
                raise self._wrong(option, "has names of models, or names with their options", one)
        return found

    def _model(self, name: str, spec: Mapping[str, Any]) -> ModelPlan:
        self._options(name, spec, MODEL_OPTIONS)
        self._check_perf_flags(spec)
        ranges = {**self._config_ranges(name, spec), **self._load_ranges(spec)}
        weight = spec.get("weighting") or 1  # its own parser takes 0 for not given
        if not isinstance(weight, int) or isinstance(weight, bool) or weight < 0:
            raise self._wrong("weighting", "is a whole number above 0", weight)
        return ModelPlan(
            name, ranges, self._goal(spec), float(weight), self._flags(spec) or self._flags(self._document)
        )

    def _behind(self, name: str, spec: Mapping[str, Any]) -> dict[str, Sequence[Value]]:
        """The values of a model that others call."""
        self._options(name, spec, OPTIONS_BEHIND)
        return self._config_ranges(name, spec)

    def _options(self, name: str, spec: Mapping[str, Any], known: Mapping[str, tuple[Status, str]]) -> None:
        """Refuses what a model has not; notes what does nothing."""
        if unknown := spec.keys() - known.keys():
            raise self._wrong(name, f"has {', '.join(known)}", min(unknown))
        for option in spec:
            self._notices_of_models += self._notice(option, known[option], name)
        if spec.get("cpu_only"):
            self._cpu_only.add(name)

    def _flags(self, options: Mapping[str, Any]) -> dict[str, str]:
        """Of servers: those of a model take the place of those of all."""
        flags = options.get("triton_server_flags") or {}
        if not isinstance(flags, dict):
            raise self._wrong("triton_server_flags", "has values by name", flags)
        return {str(name).replace("-", "_"): str(value) for name, value in flags.items()}

    def _config_ranges(self, name: str, spec: Mapping[str, Any]) -> dict[str, Sequence[Value]]:
        """The lists of the file; without any, and unless that is disabled, the ranges of its automatic search."""
        wanted = spec.get("model_config_parameters")
        if wanted:
            return config_values(wanted, self._path, name)
        self._automatic.add(name)
        return self._usual_ranges()

    def _usual_ranges(self) -> dict[str, Sequence[Value]]:
        """Those of the automatic search."""
        if self._document.get("run_config_search_disable", False):
            return {}
        instances = (
            self._number("run_config_search_min_instance_count", 1),
            self._number("run_config_search_max_instance_count", 5),
        )
        batches = (
            self._number("run_config_search_min_model_batch_size", 1),
            self._number("run_config_search_max_model_batch_size", 128),
        )
        return {"instances": list(range(instances[0], instances[1] + 1)), "max_batch_size": _doubled(*batches)}

    def _load_ranges(self, spec: Mapping[str, Any]) -> dict[str, Sequence[Value]]:
        parameters = spec.get("parameters") or {}
        rows = self._numbers("batch_sizes", parameters.get("batch_sizes", self._document.get("batch_sizes", 1)))
        found: dict[str, Sequence[Value]] = {ROWS: rows} if rows != [1] else {}
        rates = parameters.get("request_rate", self._document.get("request_rate"))
        callers = parameters.get("concurrency", self._document.get("concurrency"))
        searches = not self._document.get("run_config_search_disable", False)
        if rates or (self._searches_rates() and not callers):
            least, most = (
                self._number(f"run_config_search_{end}_request_rate", own) for end, own in (("min", 16), ("max", 8192))
            )
            found[RATE] = self._numbers("request_rate", rates) if rates else _doubled(least, most)
        elif callers:
            found[CALLERS] = self._numbers("concurrency", callers)
        elif searches and not self._document.get("concurrency_sweep_disable", False):
            least, most = (
                self._number(f"run_config_search_{end}_concurrency", own) for end, own in (("min", 1), ("max", 1024))
            )
            found[CALLERS] = _doubled(least, most)
        else:
            found[CALLERS] = [1]
        return found

    def _searches_rates(self) -> bool:
        """Whether the load is a rate where none is named: so it is, too, where its ends are."""
        ends = ("run_config_search_min_request_rate", "run_config_search_max_request_rate")
        return bool(self._document.get("request_rate_search_enable", False)) or any(map(self._document.get, ends))

    def _goal(self, spec: Mapping[str, Any]) -> Goal:
        wanted = spec.get("objectives") or self._document.get("objectives") or {"perf_throughput": 10}
        weights = dict.fromkeys(wanted, 10) if isinstance(wanted, list) else wanted
        if isinstance(wanted, str):
            weights = dict.fromkeys((name.strip() for name in wanted.split(",")), 10)
        if not isinstance(weights, dict):
            raise self._wrong("objectives", "has metrics, or weights by metric", wanted)
        objectives = tuple(Objective(self._figure(name), float(weight)) for name, weight in weights.items())
        groups = self._constraints(spec.get("constraints") or self._document.get("constraints") or {})
        return Goal(objectives, groups[0]) if len(groups) == 1 else Goal(objectives, alternatives=tuple(groups))

    def _constraints(self, wanted: Any) -> list[tuple[Limit, ...]]:
        """Bounds by metric, all of which have to be kept; or a list of such, one of which has to be kept whole."""
        groups = wanted if isinstance(wanted, list) else [wanted]
        if not groups or not all(isinstance(group, dict) and (group or groups == [wanted]) for group in groups):
            raise self._wrong("constraints", "has bounds by metric, or a list of such", wanted)
        if len(groups) > _MAX_ALTERNATIVES:
            raise self._wrong("constraints", f"has {_MAX_ALTERNATIVES} alternatives at most", f"{len(groups)}")
        short = {
            "perf_latency_p99": ("max", self._document.get("latency_budget")),
            "perf_throughput": ("min", self._document.get("min_throughput")),
        }
        always = {metric: {kind: bound} for metric, (kind, bound) in short.items() if bound is not None}
        return [tuple(self._limit(name, bounds) for name, bounds in {**group, **always}.items()) for group in groups]

    def _limit(self, name: str, bounds: Any) -> Limit:
        if not isinstance(bounds, dict) or len(bounds) != 1 or not bounds.keys() <= {"min", "max"}:
            raise self._wrong("constraints", "has min or max by metric", {name: bounds})
        ((kind, bound),) = bounds.items()
        if not isinstance(bound, int | float) or isinstance(bound, bool):
            raise self._wrong("constraints", "has a number for each bound", {name: bounds})
        return Limit(self._figure(name), float(bound), "at least" if kind == "min" else "at most")

    def _figure(self, metric: str) -> str:
        if metric not in FIGURE_OF_METRIC:
            known = ", ".join(FIGURE_OF_METRIC)
            raise ConfigError(f"metric '{metric}' is not measured: expected {known}", path=self._path, key=metric)
        return FIGURE_OF_METRIC[metric]

    def _numbers(self, option: str, values: Any) -> list[Value]:
        """A number, a text with commas, a list, or a range with `start`, `stop` and `step`."""
        if isinstance(values, str):
            values = [int(part) if part.strip().isdecimal() else part for part in values.split(",")]
        if isinstance(values, dict) and values.keys() <= {"start", "stop", "step"} and "stop" in values:
            ends = [values.get("start", 0), values["stop"], values.get("step", 1)]
            if all(isinstance(one, int) for one in ends) and ends[2] > 0:
                values = list(range(ends[0], ends[1] + 1, ends[2]))
        found = values if isinstance(values, list) else [values]
        if not found or not all(isinstance(one, int) and not isinstance(one, bool) for one in found):
            raise self._wrong(option, "is a number, a list, or start, stop and step", values)
        return found

    def _number(self, option: str, own: int) -> int:
        value = self._document.get(option, own)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self._wrong(option, "is a whole number", value)
        return value

    def _text(self, option: str, own: str | None) -> str:
        value = self._document.get(option, own)
        if not isinstance(value, str) or not value:
            raise self._wrong(option, "is a text", value)
        return value

    def _wrong(self, option: str, expected: str, value: object) -> ConfigError:
        if value is None:
            flag = f"--{option.replace('_', '-')}"
            return ConfigError(
                f"option '{option}' is not given, which {expected}: write it into the file, or give {flag}",
                path=self._path,
                key=option,
            )
        return ConfigError(f"option '{option}' {expected}, not {str(value)[:80]!r}", path=self._path, key=option)


def _doubled(least: int, most: int) -> list[Value]:
    """A number, twice it, and so on up to another."""
    found: list[Value] = []
    value = max(least, 1)
    while value <= most:
        found.append(value)
        value *= 2
    return found or [max(least, 1)]
