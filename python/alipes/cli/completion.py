"""`alipes completion`: the script that completes the command line in a shell."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import typer

__all__ = ["HELP", "completion"]

HELP: Final = """Print the script that completes commands, flags and files in a shell.

It works in every new shell once it is where the shell looks for it:

\b
  bash   alipes completion bash > \\
           ~/.local/share/bash-completion/completions/alipes
  zsh    alipes completion zsh > "${fpath[1]}/_alipes"
  fish   alipes completion fish > ~/.config/fish/completions/alipes.fish

For the shell that is open, type

\b
  bash   eval "$(alipes completion bash)"
  zsh    eval "$(alipes completion zsh)"
  fish   alipes completion fish | source
"""


class Shell(StrEnum):
    """A shell that words can be completed in."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="The shell that you type in.")]) -> int:
    """Print the script that completes commands, flags and files in a shell; `HELP` says where it goes."""
    from alipes.cli.complete import script

    print(script(shell.value))
    return 0
