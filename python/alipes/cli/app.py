"""Every command but `serve`, `tritonserver` and `perf_analyzer`, which `cli.main` runs, and the page that lists them.

A new command is a function with typer's annotations in a module of its own, and one line at the foot of this file.
It returns its exit code: 0, or 1 for an error. Wrong usage is 2, which `run` sees to for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer

from alipes.cli.activate import ACTIVATE_HELP, activate
from alipes.cli.advise import HELP as ADVISE_HELP
from alipes.cli.advise import advise
from alipes.cli.batch import batch_app
from alipes.cli.client_app import client_app
from alipes.cli.completion import HELP as COMPLETION_HELP
from alipes.cli.completion import completion
from alipes.cli.deploy import deploy_app
from alipes.cli.detached import launch, status, stop
from alipes.cli.grouped_help import GroupedCommand
from alipes.cli.help import help_about
from alipes.cli.init import init
from alipes.cli.link_names import link_names
from alipes.cli.loadtest import HELP as LOADTEST_HELP
from alipes.cli.loadtest import loadtest
from alipes.cli.mistakes import USAGE_ERROR, show_mistake, usage_mistake
from alipes.cli.model_analyzer import analyzer_app
from alipes.cli.monitor import monitor
from alipes.cli.quickstart import quickstart
from alipes.cli.rollout import rollout
from alipes.cli.stream import HELP as STREAM_HELP
from alipes.cli.stream import stream
from alipes.cli.tune import HELP as TUNE_HELP
from alipes.cli.tune import tune
from alipes.cli.unknown import Command, unknown_command
from alipes.cli.verbs import add_verbs
from alipes.cli.waiting import explain_model

_HELP = """Serves trained models over HTTP and gRPC, as NVIDIA Triton does.

\b
  alipes quickstart         watch a model being served
  alipes init my-app        write a first app, to serve with alipes serve app.py
  alipes serve FOLDER       serve the models in a folder
  alipes serve --help       the flags that people use
  alipes loadtest MODEL     measure how fast a server answers
  alipes batch run MODEL    answer what many files hold
  alipes help TOPIC         read how something is done
"""

app = typer.Typer(
    name="alipes",
    help=_HELP,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    # Plain text: it reads the same at 80 columns, in a pipe and with NO_COLOR.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
config_app = typer.Typer(help="Show the configuration of the server and of models.")
app.add_typer(config_app, name="config")
app.add_typer(analyzer_app, name="model_analyzer")
app.add_typer(batch_app, name="batch")
app.add_typer(deploy_app, name="deploy")
app.add_typer(client_app, name="client")

# Arguments that are Triton's flags and go to the flag parser as they are.
FLAGS_FOLLOW = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def run(arguments: Sequence[str]) -> int:
    """Runs a command and returns its exit code: 2 for a wrong command line, whichever command it is of."""
    words = list(arguments)
    group: Any = typer.main.get_command(app)
    called, command = "alipes", group
    for word in words:
        if word.startswith("-") or not hasattr(command, "commands"):
            break
        if word not in command.commands:
            show_mistake(unknown_command(Command(called, command, group), word))
            return USAGE_ERROR
        called, command = f"{called} {word}", command.commands[word]
    else:  # every word names a command: where the last one has commands of its own, they are shown
        words += ["--help"] if hasattr(command, "commands") else []
    try:
        result = group(words, prog_name="alipes", standalone_mode=False)
    except typer.Exit as leave:
        return leave.exit_code
    except typer.Abort:
        return 1
    except Exception as error:
        mistake = usage_mistake(Command(called, command, group), error)
        if mistake is None:
            raise
        show_mistake(mistake)
        return USAGE_ERROR
    return result if isinstance(result, int) else 0


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def alipes(
    print_version: bool = typer.Option(
        False, "-V", "--version", help="Print the version.", is_eager=True, callback=_print_version
    ),
) -> None:
    """The options of `alipes` itself."""


@app.command(context_settings=FLAGS_FOLLOW)
def serve(context: typer.Context) -> int:
    """Serve the models of a folder or a bucket."""
    from alipes.cli.serve import serve as serve_models

    return serve_models(context.args)


@app.command(context_settings=FLAGS_FOLLOW)
def tritonserver(context: typer.Context) -> int:
    """Serve, with the command line of Triton's server."""
    from alipes.cli.serve import serve_as_triton

    return serve_as_triton(context.args)


@app.command(context_settings=FLAGS_FOLLOW, short_help="Answer the requests of an InferenceGraph of KServe.")
def graph(context: typer.Context) -> int:
    """Answer the requests of an InferenceGraph of KServe."""
    from alipes.cli.graph import serve_graph

    return serve_graph(context.args)


@app.command("perf_analyzer", context_settings=FLAGS_FOLLOW)
def perf_analyzer(context: typer.Context) -> int:
    """Measure a server, with the command line of Triton's perf_analyzer."""
    from alipes.compat.perf_analyzer import main

    return main(context.args)


@app.command()
def version() -> None:
    """Print the version."""
    import alipes

    typer.echo(f"alipes {alipes.__version__}")


add_verbs(app)


@config_app.command(context_settings=FLAGS_FOLLOW)
def explain(context: typer.Context) -> int:
    """Print the values of the server, or of a model's folder, with where each comes from."""
    from alipes.cli.explain import explain as explain_values

    return explain_values(context.args)


app.command("help", short_help="Print what a command takes, or how something is done.")(help_about)
app.command(help=COMPLETION_HELP, short_help="Print the script that completes words in bash, zsh or fish.")(completion)
app.command(short_help="Write a first app, its test, and a request to try.")(init)
app.command(short_help="Watch a model read handwritten digits.")(quickstart)
app.command(cls=GroupedCommand, help=STREAM_HELP, short_help="Answer frames as they arrive.")(stream)
app.command("explain", short_help="What waits for a model of a running server, and why.")(explain_model)
app.command(cls=GroupedCommand, help=LOADTEST_HELP, short_help="Measure how fast a server answers.")(loadtest)
app.command(short_help="Link perf_analyzer and other names of Triton's to alipes.")(link_names)
app.command(short_help="Watch what running servers do.")(monitor)
app.command(short_help="Replace a version of a model by steps, and take it back if it is worse.")(rollout)
app.command(help=ADVISE_HELP, short_help="Say what limits the models of a running server.")(advise)
app.command(help=TUNE_HELP, short_help="Find the best configuration of a model.")(tune)
app.command(
    context_settings={**FLAGS_FOLLOW, "help_option_names": ["-h", "--help"]},
    short_help="Start a server that goes on running.",
)(launch)
app.command(help=ACTIVATE_HELP, short_help="Start a server when somebody connects.")(activate)
app.command(short_help="Tell whether a launched server is ready, and where.")(status)
app.command(short_help="Stop a launched server.")(stop)
