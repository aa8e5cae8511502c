"""`alipes help`: the help of a command, or one of the texts to which messages lead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from alipes.cli.mistakes import USAGE_ERROR, show_mistake
from alipes.cli.topics import topic_text, topics
from alipes.config.nearest import MISSPELLED, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["help_about"]


def help_about(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COMMAND|TOPIC]", show_default=False, help="A command, or a topic of the list."),
    ] = None,
) -> int:
    """Print what a command takes, or how something is done."""
    words = words or []
    if not words:
        return _list()
    text = topic_text(words[0].lower()) if len(words) == 1 else None
    if text is not None:
        print(text, end="")
        return 0
    if len(words) == 1 and (meant := _meant(words[0])):
        return help_about(list(meant))
    return _command(words)


def _meant(word: str) -> Sequence[str]:
    """The topic, or the words of the command, that a word of somebody else's stands for; empty where there is none."""
    from alipes.synonyms import synonym

    if row := synonym("alipes help", word):
        return row.meant.split()[2:]
    row = synonym("alipes", word)
    words = row.meant.split()[1:] if row is not None else ()
    return [one for one in words if one != "help" and not one.startswith("-")]


def _list() -> int:
    from alipes.cli import main

    code = main(["--help"])
    print("\nTopics, for alipes help TOPIC:")
    width = 2 + max(map(len, topics()))
    for name, first in topics().items():
        print(f"  {name:{width}}{first}")
    return code


def _command(words: Sequence[str]) -> int:
    import typer.main

    from alipes.cli import main
    from alipes.cli.app import app
    from alipes.synonyms import synonym

    command = typer.main.get_command(app)
    for word in words:
        below = getattr(command, "commands", {})
        if word not in below:
            close = nearest(word, [*topics(), *below], MISSPELLED)
            mend = f"did you mean alipes help {close}?" if close else "alipes help lists the commands and topics"
            if (row := synonym("alipes", word)) is not None and len(words) == 1:
                mend = row.hint
            show_mistake(f"{mend}\nthere is no command and no topic {' '.join(words)!r}")
            return USAGE_ERROR
        command = below[word]
    return main([*words, "--help"])
