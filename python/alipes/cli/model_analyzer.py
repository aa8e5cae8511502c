"""`alipes model_analyzer profile`: Model Analyzer's command line, on searches of our own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from alipes.cli.failures import INTERRUPTED, CommandFailed, perform
from alipes.cli.tune import shower
from alipes.leaving import leaving_on_signals

__all__ = ["analyzer_app"]

analyzer_app = typer.Typer(help="Find the best configurations, with the command line of NVIDIA's Model Analyzer.")


@analyzer_app.callback()
def model_analyzer() -> None:
    """Find the best configurations, with the command line of NVIDIA's Model Analyzer."""


@analyzer_app.command()
def profile(  # noqa: PLR0913, PLR0917  # one parameter is one option
    config_file: Annotated[
        Path | None,
        typer.Option(
            "-f", "--config-file", metavar="FILE", show_default=False, help="A YAML of Model Analyzer's, read as it is."
        ),
    ] = None,
    model_repository: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--model-repository",
            metavar="FOLDER",
            show_default=False,
            help="The folder with the models; it stays as it is.",
        ),
    ] = None,
    profile_models: Annotated[
        str | None,
        typer.Option(
            "--profile-models",
            metavar="NAMES",
            show_default=False,
            help="The models to search for, with commas between.",
        ),
    ] = None,
    output_model_repository_path: Annotated[
        str | None,
        typer.Option(
            "--output-model-repository-path",
            metavar="FOLDER",
            show_default=False,
            help="Where the best configurations go.",
        ),
    ] = None,
    override_output_model_repository: Annotated[
        bool, typer.Option("--override-output-model-repository", help="That folder may have something in it.")
    ] = False,
    export_path: Annotated[
        str | None,
        typer.Option("-e", "--export-path", metavar="FOLDER", show_default=False, help="Where tables and reports go."),
    ] = None,
    checkpoint_directory: Annotated[
        str | None,
        typer.Option(
            "-s",
            "--checkpoint-directory",
            metavar="FOLDER",
            show_default=False,
            help="Where trials are kept, to go on from.",
        ),
    ] = None,
    batch_sizes: Annotated[
        str | None,
        typer.Option("-b", "--batch-sizes", metavar="NUMBERS", show_default=False, help="Rows in each request."),
    ] = None,
    concurrency: Annotated[
        str | None,
        typer.Option("-c", "--concurrency", metavar="NUMBERS", show_default=False, help="Requests in flight."),
    ] = None,
    request_rate: Annotated[
        str | None, typer.Option("--request-rate", metavar="NUMBERS", show_default=False, help="Requests per second.")
    ] = None,
    client_protocol: Annotated[
        str | None,
        typer.Option(
            "--client-protocol", metavar="NAME", show_default=False, help="http or grpc, which is the default."
        ),
    ] = None,
    triton_launch_mode: Annotated[
        str | None,
        typer.Option(
            "--triton-launch-mode",
            metavar="MODE",
            show_default=False,
            help="local: each trial starts a server of its own.",
        ),
    ] = None,
    run_config_search_mode: Annotated[
        str | None,
        typer.Option("--run-config-search-mode", metavar="MODE", show_default=False, help="brute, quick or optuna."),
    ] = None,
    run_config_search_disable: Annotated[
        bool, typer.Option("--run-config-search-disable", help="Try only what is named.")
    ] = False,
    run_config_search_max_concurrency: Annotated[
        int | None,
        typer.Option(
            "--run-config-search-max-concurrency",
            metavar="NUMBER",
            show_default=False,
            help="Most requests in flight that are tried.",
        ),
    ] = None,
    run_config_search_max_instance_count: Annotated[
        int | None,
        typer.Option(
            "--run-config-search-max-instance-count",
            metavar="NUMBER",
            show_default=False,
            help="Most instances that are tried.",
        ),
    ] = None,
    run_config_search_max_model_batch_size: Annotated[
        int | None,
        typer.Option(
            "--run-config-search-max-model-batch-size",
            metavar="NUMBER",
            show_default=False,
            help="Largest batch that is tried.",
        ),
    ] = None,
    latency_budget: Annotated[
        int | None,
        typer.Option(
            "--latency-budget",
            metavar="MS",
            show_default=False,
            help="Most latency at the 99th percentile, in milliseconds.",
        ),
    ] = None,
    min_throughput: Annotated[
        int | None,
        typer.Option(
            "--min-throughput", metavar="RATE", show_default=False, help="Least throughput, in inferences per second."
        ),
    ] = None,
    skip_summary_reports: Annotated[bool, typer.Option("--skip-summary-reports", help="Write no report.")] = False,
) -> int:
    """Search the configurations of models; write its tables, a report and the best configurations."""
    typed: Mapping[str, Any] = {name: value for name, value in locals().items() if value not in (None, False)}

    def action() -> int:
        from alipes.tune.analyzer.plan import read_plan
        from alipes.tune.analyzer.profile import profile as search

        options = {name: value for name, value in typed.items() if name != "config_file"}
        plan = read_plan(config_file, options)
        for notice in plan.notices:
            typer.echo(notice, err=True)
        results, written = search(plan, each=shower(plan.models[0].goal))
        for one in results:
            if one.best is not None:
                typer.echo(f"best: {one.best.point}")
            for sentence in one.decisions():
                typer.echo(sentence)
        typer.echo(f"written: {', '.join(map(str, written))}")
        if any(one.interrupted for one in results):
            return INTERRUPTED
        if all(one.best is None for one in results):
            raise CommandFailed("look at the failures above", "no trial gave figures")
        return 0

    with leaving_on_signals():
        return perform(action)
