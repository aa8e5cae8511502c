"""Every command but `serve`, and the page that lists them all."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from alipes.cli.detached import launch, status, stop
from alipes.cli.monitor import monitor
from alipes.cli.quickstart import quickstart
from alipes.cli.waiting import explain_model

app = typer.Typer(
    name="alipes",
    help="Serves trained models over HTTP and gRPC, as NVIDIA Triton does.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
config_app = typer.Typer(help="What the server and its models are told.", no_args_is_help=True)
app.add_typer(config_app, name="config")

# Arguments that are Triton's flags and go to the flag parser as they are.
FLAGS_FOLLOW = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def run(arguments: Sequence[str]) -> int:
    """Runs a command and returns its exit code; a wrong command line counts as any other error, 1."""
    try:
        result = app(list(arguments), prog_name="alipes", standalone_mode=False)
    except typer.Exit as leave:
        return leave.exit_code
    except typer.Abort:
        return 1
    except Exception as error:
        show = getattr(error, "show", None)  # what the command line library raises for a wrong command line
        if show is None:
            raise
        show()
        return 1
    return result if isinstance(result, int) else 0


@app.command(context_settings=FLAGS_FOLLOW)
def serve(context: typer.Context) -> int:
    """Serve the models of a repository: `alipes serve REPOSITORY [FLAGS]`. The flags are Triton's; see --help."""
    from alipes.cli.serve import serve as serve_models

    return serve_models(context.args)


@app.command(context_settings=FLAGS_FOLLOW)
def tritonserver(context: typer.Context) -> int:
    """Serve as `tritonserver` does, with its command line: `alipes tritonserver --model-repository=FOLDER`."""
    from alipes.cli.serve import serve_as_triton

    return serve_as_triton(context.args)


@app.command()
def version() -> None:
    """Print the version."""
    import alipes

    typer.echo(f"alipes {alipes.__version__}")


@config_app.command(context_settings=FLAGS_FOLLOW)
def explain(context: typer.Context) -> int:
    """Print each value with its origin: `explain REPOSITORY/MODEL`, or `explain [FLAGS]` for the server."""
    from alipes.cli.explain import explain as explain_values

    return explain_values(context.args)


app.command()(quickstart)
app.command("explain")(explain_model)
app.command()(monitor)
app.command(context_settings={**FLAGS_FOLLOW, "help_option_names": ["--help"]})(launch)
app.command()(status)
app.command()(stop)
