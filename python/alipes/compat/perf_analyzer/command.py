"""A run: from the words of a command line to its exit status."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from alipes.client import Client
from alipes.compat.perf_analyzer.answer_check import AnswerCheck
from alipes.compat.perf_analyzer.csv_report import write_csv
from alipes.compat.perf_analyzer.failures import Exit, Failed, OptionFailed
from alipes.compat.perf_analyzer.level import MeasuredLevel
from alipes.compat.perf_analyzer.measurement import LevelMeasurement, Looks
from alipes.compat.perf_analyzer.metrics import MetricsCollector
from alipes.compat.perf_analyzer.model import Model
from alipes.compat.perf_analyzer.other_services import model_of, prepare_posts
from alipes.compat.perf_analyzer.parser import parse
from alipes.compat.perf_analyzer.profile_export import missing_requests, write_profile
from alipes.compat.perf_analyzer.reading import read_settings
from alipes.compat.perf_analyzer.report import (
    is_async,
    level_heading,
    level_lines,
    pass_line,
    settings_lines,
    summary_lines,
)
from alipes.compat.perf_analyzer.requests import Prepared, dataset_of, prepare, tls_of
from alipes.compat.perf_analyzer.search import search
from alipes.compat.perf_analyzer.sequence_requests import prepare_sequences
from alipes.compat.perf_analyzer.server_statistics import ServerStatistics
from alipes.compat.perf_analyzer.settings import Settings, Target
from alipes.compat.perf_analyzer.shared_tensors import prepare_shared
from alipes.compat.perf_analyzer.slices import Slicing
from alipes.compat.perf_analyzer.tfserving import ask_tfserving, prepare_predictions
from alipes.compat.perf_analyzer.trace_settings import set_trace
from alipes.compat.perf_analyzer.usage import usage
from alipes.compat.perf_analyzer.windows import MeasuredWindow
from alipes.errors import AlipesError
from alipes.leaving import leaving_on_signals

__all__ = ["main"]


def main(words: Sequence[str]) -> int:
    """Runs a command line of perf_analyzer and returns its exit status; see `Exit`."""
    try:
        arguments = parse(words)
        if (about := _about({argument.option.name for argument in arguments})) is not None:
            print(about)
            return Exit.OK
        settings = read_settings(arguments)
        with leaving_on_signals(), ExitStack() as stack:
            return _Run(settings, stack).go()
    except OptionFailed as error:
        print(f"{error.prefix}{error}\n{usage()}", file=sys.stderr)
        return Exit.GENERIC
    except Failed as error:
        print(error, file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print("Interrupt signal (2) received before anything was measured.", file=sys.stderr)
        return Exit.OK
    except BrokenPipeError:  # the reader of the report has read enough
        return _close_output()


def _about(names: AbstractSet[str]) -> str | None:
    """What is printed in place of a run."""
    if "help" in names:
        return usage()
    if "version" not in names:
        return None
    import alipes

    return f"Perf Analyzer of alipes {alipes.__version__}"


def _client(target: Target) -> Client:
    try:
        return Client(target.address, headers=dict(target.headers), tls=tls_of(target))
    except AlipesError as error:
        raise Failed(f"error: failed to create triton client backend: {error}\n") from error


class _Run:
    """The parts of a run."""

    def __init__(self, settings: Settings, stack: ExitStack) -> None:
        self._settings = settings
        self._stack = stack
        self._levels: list[MeasuredLevel] = []

    def go(self) -> int:
        settings = self._settings
        client = self._stack.enter_context(_client(settings.target))
        set_trace(settings.target, settings.trace)
        if settings.target.kind == "triton":
            model = Model.ask(client, settings.target)
            self._check(model)
            prepared = self._prepare(client, model)
        elif settings.target.kind == "tfserving":
            model = ask_tfserving(settings)
            self._check(model)
            prepared = prepare_predictions(model, settings, dataset_of(model, settings.data))
        else:
            model = model_of(settings)
            prepared = prepare_posts(settings)
        self._show([*([prepared.message] if prepared.message else []), *settings_lines(settings, model)])
        measurement = self._measurement(client, model, prepared)
        try:
            for level in search(settings.load, lambda value: self._measure(measurement, value)):
                self._levels.append(level)
                self._tell(level, model)
        except Failed:
            self._summarize()
            raise
        return self._end(model)

    @property
    def _is_periodic(self) -> bool:
        """Whether the moments of requests are all that is wanted of the run."""
        return self._settings.load.mode == "periodic"

    def _check(self, model: Model) -> None:
        data = self._settings.data
        if data.batch > 1 and model.is_sequence:
            raise Failed("can not specify batch size > 1 when using a sequence model")
        if data.batch > 1 and not model.max_batch:
            raise Failed("can not specify batch size > 1 as the model does not support batching")
        if self._settings.load.streaming and self._settings.load.is_async is False:
            raise Failed("can not use streaming with synchronous API")
        for name in data.shapes.keys() - model.inputs.keys():
            inputs = ", ".join(f"'{known}'" for known in model.inputs)
            print(
                f"WARNING: --shape names '{name}', which is no input of model '{model.name}' and counts for nothing: "
                f"its inputs are {inputs}",
                file=sys.stderr,
            )

    def _prepare(self, client: Client, model: Model) -> Prepared:
        settings = self._settings
        dataset = dataset_of(model, settings.data)
        if model.is_sequence:
            return prepare_sequences(model, settings, dataset)
        if settings.data.shared_memory != "none":
            return prepare_shared(client, model, settings, dataset, self._stack)
        return prepare(settings.target, model, settings.data, dataset, settings.load.streaming)

    def _measurement(self, client: Client, model: Model, prepared: Prepared) -> LevelMeasurement:
        settings = self._settings
        metrics = None
        if settings.reports.metrics_url is not None:
            interval_s = settings.reports.metrics_interval_ms / 1e3
            metrics = self._stack.enter_context(MetricsCollector(settings.reports.metrics_url, interval_s))
            for metric in metrics.missing():
                print(f"WARNING: Unable to parse '{metric}' metric.", file=sys.stderr)
        in_flight = settings.sequences.count if model.is_sequence else None
        load = replace(settings.load, is_async=is_async(settings, model), in_flight=in_flight)
        statistics = ServerStatistics(client, model) if settings.target.kind == "triton" else None
        check = None
        if prepared.expected:
            check = AnswerCheck(model, prepared.expected, "stream" if load.streaming else settings.target.protocol)
        ends = np.array(prepared.ends, np.bool_) if prepared.ends else None
        logs = ends is not None or settings.reports.profile is not None or settings.measuring.requests > 0
        slicing = Slicing(load.streaming and model.is_decoupled, load.streaming, ends, logs)
        looks = Looks(statistics, metrics, check, slicing)
        # What is sent in waves is measured as a number of requests: it settles at nothing.
        count = int(load.end) if load.mode == "periodic" else settings.measuring.requests
        return LevelMeasurement(prepared.requests, load, replace(settings.measuring, requests=count), looks)

    def _measure(self, measurement: LevelMeasurement, value: float) -> MeasuredLevel:
        settings = self._settings
        heading = level_heading(settings.load, value)
        self._show([heading] if heading else [])

        def watch(windows: Sequence[MeasuredWindow]) -> None:
            if settings.reports.verbosity:
                self._show([pass_line(len(windows), windows[-1], settings)])

        return measurement.measure(value, watch)

    def _tell(self, level: MeasuredLevel, model: Model) -> None:
        """A level that was measured; also one that did not settle."""
        settings = self._settings
        if level.has_answers and not self._is_periodic:
            self._show(level_lines(level, settings, model))
        if level.outcome == "not_settled":
            count = settings.measuring.most_windows
            flag = "--measurement-request-count" if settings.measuring.counts else "--measurement-interval"
            words = "Failed to obtain stable measurement"
            if settings.load.mode == "concurrency":
                words += f" within {count} measurement windows for concurrency {int(level.value)}"
                words += f". Please try to increase the {flag}"
            self._warn(f"{words}.")
        elif level.outcome == "rate_settled":
            self._warn("Warning: Request latency is not stabilizing. Please try lowering the request rate.")
        elif level.outcome == "over_limit":
            self._warn(f"Measured latency went over the set limit of {settings.load.latency_limit_ms} msec. ")
        elif level.outcome == "interrupted":
            self._warn("Interrupt signal (2) received: what was measured until then is above.")
        elif level.outcome == "failed":
            self._warn(
                "Failed to maintain requested inference load. Worker thread(s) failed to generate concurrent "
                f"requests.\nThread [0] had error: {level.failure}\n"
            )

    def _summarize(self) -> None:
        if self._is_periodic:
            return
        shown = [level for level in self._levels if level.has_answers and level.outcome != "over_limit"]
        if shown:
            self._show(summary_lines(shown, self._settings))

    def _end(self, model: Model) -> int:
        levels = self._levels
        self._summarize()
        settled = [level for level in levels if level.is_settled]
        if self._settings.reports.csv is not None and settled and not self._is_periodic:
            self._write_csv(settled, model)
        if self._settings.reports.profile is not None:
            self._export()
        if levels[-1].outcome == "failed":
            return Exit.GENERIC
        if any(level.outcome != "not_settled" for level in levels):
            return Exit.OK
        self._warn("Failed to obtain stable measurement.")
        return Exit.NOT_STABLE

    def _write_csv(self, levels: Sequence[MeasuredLevel], model: Model) -> None:
        path = self._settings.reports.csv
        assert path is not None
        try:
            write_csv(path, levels, self._settings, model)
        except OSError as error:
            raise Failed(f"failed to write the report '{path}': {error.strerror}") from error

    def _export(self) -> None:
        import alipes

        path = self._settings.reports.profile
        assert path is not None
        try:
            write_profile(path, self._levels, self._settings, f"alipes {alipes.__version__}")
        except OSError as error:
            raise Failed(f"failed to open file for outputting raw profile data: {error}") from error
        if missing := missing_requests(self._levels):
            self._warn(f"WARNING: {missing} requests are not in '{path}': there were too many")

    @staticmethod
    def _show(lines: Iterable[str]) -> None:
        for line in lines:
            print(line)
        sys.stdout.flush()

    @staticmethod
    def _warn(text: str) -> None:
        print(text, file=sys.stderr, flush=True)


def _close_output() -> int:
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.OK
