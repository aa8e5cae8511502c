"""What fits where somebody types: the answers to the questions of the script in their shell.

click works them out, from commands that are made here: `serve` from the table of flags, and the others from typer's,
which are of another library where typer brings a copy of click of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

from alipes.config.command_line import serve_command

__all__ = ["complete", "script"]

_PROGRAM: Final = "alipes"
_VARIABLE: Final = "_ALIPES_COMPLETE"
_REPOSITORY: Final = "repository"


class _Bash(BashComplete):
    """Bash, for which `=` is a word: in `--log-format=J` the words are the flag, `=` and `J`."""

    def get_completion_args(self) -> tuple[list[str], str]:
        words, incomplete = super().get_completion_args()
        return [word for word in words if word != "="], incomplete


_SHELLS: Final[Mapping[str, type[ShellComplete]]] = {"bash": _Bash, "zsh": ZshComplete, "fish": FishComplete}


class _Commands(click.Group):
    """Every command. `serve`, which has most flags, is there without the others, which take longer to import."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_others())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "serve":
            return serve_command()
        command = _others().get(cmd_name)
        return None if command is None else _as_click(command)


def script(shell: str) -> str:
    """The script that has a shell ask `complete`.

    Args:
        shell: `bash`, `zsh` or `fish`.
    """
    return _SHELLS[shell](click.Command(_PROGRAM), {}, _PROGRAM, _VARIABLE).source()


def complete(instruction: str) -> int:
    """Answers a script's question, which is in the environment.

    Args:
        instruction: The shell and what it wants, such as `bash_complete`.

    Returns:
        0, or 1 for a shell that is not known.
    """
    shell, _, wanted = instruction.partition("_")
    if wanted != "complete" or shell not in _SHELLS:
        return 1
    print(_SHELLS[shell](_Commands(_PROGRAM), {}, _PROGRAM, _VARIABLE).complete())
    return 0


def _others() -> Mapping[str, Any]:
    """Typer's commands, by their names."""
    import typer

    from alipes.cli.app import app

    group: Any = typer.main.get_command(app)
    return dict(group.commands)


def _as_click(command: Any) -> click.Command:
    """One of typer's commands, with those beneath it, as one of click's."""
    parameters = [_parameter(one) for one in command.params]
    if hasattr(command, "commands"):
        beneath = {name: _as_click(one) for name, one in command.commands.items()}
        return click.Group(command.name, params=parameters, commands=beneath, help=command.help)
    if command.context_settings.get("ignore_unknown_options"):  # the flags of `serve` follow
        known = {name for one in parameters for name in one.opts}
        arguments = [one for one in parameters if isinstance(one, click.Argument)]
        flags = [
            one
            for one in serve_command().params
            if known.isdisjoint(one.opts) and not (arguments and isinstance(one, click.Argument))
        ]
        parameters = [*(one for one in parameters if one not in arguments), *flags, *arguments]
    text = command.short_help or command.help
    return click.Command(command.name, params=parameters, help=text, short_help=text, add_help_option=False)


def _parameter(parameter: Any) -> click.Parameter:
    """One of typer's parameters: its names, and what it completes."""

    def shell_complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        if parameter.name == _REPOSITORY:
            return [CompletionItem(incomplete, type="dir")]
        found = parameter.shell_complete(context, incomplete)
        if not found and _is_path(parameter):
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(one.value, type=one.type, help=one.help) for one in found]

    if parameter.param_type_name == "argument":
        return click.Argument([parameter.name], nargs=parameter.nargs, required=False, shell_complete=shell_complete)
    names = [parameter.name, *parameter.opts, *parameter.secondary_opts]
    if parameter.is_flag:
        return click.Option(names, is_flag=True, help=parameter.help, hidden=parameter.hidden)
    return click.Option(
        names, multiple=parameter.multiple, help=parameter.help, hidden=parameter.hidden, shell_complete=shell_complete
    )


def _is_path(parameter: Any) -> bool:
    """Whether a parameter of typer's names a file: typer has kept that in two places so far."""
    kind = getattr(getattr(parameter, "type", None), "name", "")
    annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", "")
    return "path" in f"{kind} {annotation}".lower()
