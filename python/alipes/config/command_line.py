"""The syntax of `alipes serve`, through click: its parameters come from the table of flags.

Values stay texts here. They are read where those of the environment and of a file are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from alipes.config.flags import SERVE_FLAGS, Flag, find_for_serve
from alipes.config.values import BOOLS
from alipes.errors import ConfigError

__all__ = ["HELP_FLAGS", "serve_command", "split_arguments"]

HELP_FLAGS: Final = {
    ("-h", "--help"): "Show the flags that most people use.",
    ("--help-all",): "Show every flag.",
    ("-V", "--version"): "Print the version.",
}
"""Flags that show something instead of serving: the command line looks for them first."""

_SWITCHES: Final = ("bool", "level")
_REPOSITORIES: Final = "repositories"

_ADDRESS: Final = re.compile(r"\[?(?P<host>[^/\s\[\]]*?)\]?:(?P<port>[0-9]{1,5})")
"""A host with a port, which some type by itself."""


def split_arguments(argv: Sequence[str]) -> tuple[list[tuple[Flag, str]], list[str]]:
    """Split a command line into flags with their texts, and positional arguments.

    Args:
        argv: The arguments after the command's name.

    Returns:
        Each flag given with each of its texts, and the positional arguments, in their order.

    Raises:
        ConfigError: If a flag is unknown or lacks its value.
    """
    words = list(_written_out(_without_workers(argv)))
    try:
        values = serve_command().make_context("alipes serve", words).params
    except click.NoSuchOption as error:
        raise _unknown(error.option_name, argv) from None
    except click.BadOptionUsage as error:
        raise ConfigError(f"leave out what is behind {error.option_name}=: it takes no value") from None
    pairs = [(flag, text) for flag in SERVE_FLAGS if not flag.alias for text in _texts(flag, values[_variable(flag)])]
    repositories = list(values[_REPOSITORIES])
    if "" in repositories:  # what a shell makes of a variable that is not set; as a path it is the current folder
        raise ConfigError("the name of the repository is empty", key="model-repository")
    for word in repositories:
        _check_repository(word)
    return pairs, repositories


@cache
def serve_command() -> click.Command:
    """`alipes serve` as click has it: for its parser, and for what completes its words in a shell."""
    names = {flag.name: [f"--{flag.name}"] for flag in SERVE_FLAGS if not flag.alias}
    for flag in SERVE_FLAGS:
        if flag.alias:
            names[flag.alias].append(f"--{flag.name}")
    parameters: list[click.Parameter] = [_option(flag, names[flag.name]) for flag in SERVE_FLAGS if flag.name in names]
    for words, text in HELP_FLAGS.items():
        parameters.append(click.Option(list(words), is_flag=True, expose_value=False, help=text))
    repositories = click.Argument(
        [_REPOSITORIES], nargs=-1, type=click.UNPROCESSED, shell_complete=partial(_complete, "folder")
    )
    return click.Command(
        "serve",
        params=[*parameters, repositories],
        context_settings={"token_normalize_func": lambda name: name.replace("_", "-")},
        add_help_option=False,
        help="Serve the models of a folder or a bucket.",
    )


def _option(flag: Flag, names: Sequence[str]) -> click.Option:
    words = [_variable(flag), *names]
    if flag.short:  # how often it stands there, or whether it does
        return click.Option(
            [*words, f"-{flag.short}"], help=flag.help, count=flag.kind == "level", is_flag=flag.kind == "bool"
        )
    complete = partial(_complete, flag.path) if flag.path else partial(_choose, _choices(flag))
    return click.Option(words, help=flag.help, multiple=True, type=click.UNPROCESSED, shell_complete=complete)


def _texts(flag: Flag, value: Any) -> tuple[str, ...]:
    """What click has found for a flag, as texts."""
    if not flag.short:
        return tuple(value)
    return (str(value).lower(),) if value else ()


def _variable(flag: Flag) -> str:
    return flag.name.replace("-", "_")


def _choices(flag: Flag) -> tuple[str, ...]:
    return ("true", "false") if flag.kind == "bool" else flag.choices


def _choose(
    words: Sequence[str], context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [CompletionItem(word) for word in words if word.lower().startswith(incomplete.lower())]


def _complete(kind: str, context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="dir" if kind == "folder" else "file")]


def _without_workers(argv: Sequence[str]) -> list[str]:
    """The same arguments without `--workers` and its number, where they name a predictor.

    KServe adds `--workers` to the command line of a transformer whose `containerConcurrency` is set, for the processes
    of its own SDK. An app says how many requests run at a time.
    """
    if not any(_flag_name(word) == "predictor-host" for word in argv):
        return list(argv)
    found: list[str] = []
    words = iter(argv)
    for word in words:
        if _flag_name(word) != "workers":
            found.append(word)
        elif "=" not in word:
            next(words, None)
    return found


def _flag_name(word: str) -> str:
    return word.partition("=")[0].removeprefix("--").replace("_", "-") if word.startswith("--") else ""


def _written_out(argv: Sequence[str]) -> Iterator[str]:
    """The same arguments, with `=` behind every switch that stands alone.

    A switch takes true or false behind it and nothing else: in `--strict-readiness models` the second word is a
    repository. click would give it to the switch.
    """
    rest = list(reversed(argv))
    while rest:
        word = rest.pop()
        if word == "--":
            yield from (word, *reversed(rest))
            return
        flag = _flag_of(word)
        if flag is None or flag.short:
            yield word
        elif flag.kind in _SWITCHES:
            takes = rest and (rest[-1].lower() in BOOLS or (flag.kind == "level" and rest[-1].isdigit()))
            if rest and not takes and flag.kind == "bool":
                _check_behind(flag, rest[-1])
            yield f"--{flag.name}={rest.pop() if takes else 'true'}"
        elif not rest or _flag_of(rest[-1].partition("=")[0]) is not None:
            raise ConfigError(f"--{flag.name} takes a value, such as {_example(flag)}", key=flag.name)
        else:
            yield from (word, rest.pop())


def _check_behind(switch: Flag, word: str) -> None:
    """Refuse a word behind a switch that is neither its value nor a repository: the server would open every port."""
    if not word or word.startswith("-") or "://" in word or ".py" in word or Path(word).exists():
        return
    name = f"--{switch.name}"
    raise ConfigError(
        f"say {name}=true or {name}=false\n'{word}' behind {name} is neither, and there is no folder of that name",
        key=switch.name,
    )


def _check_repository(word: str) -> None:
    """Refuse an address as a repository."""
    match = _ADDRESS.fullmatch(word)
    if match is not None and not Path(word).exists():
        raise ConfigError(
            f"say --host {match['host'] or '0.0.0.0'} --port {match['port']}\n"
            f"a word by itself is a folder of models, and there is no folder {word}",
            key="host",
        )


def _flag_of(word: str) -> Flag | None:
    """The flag that a word is the name of."""
    return find_for_serve(word[2:].replace("_", "-")) if word.startswith("--") else None


def _example(flag: Flag) -> str:
    default = flag.default if flag.default not in (None, "", ()) else "FILE" if flag.path else "TEXT"
    return f"--{flag.name} {default}"


def _unknown(option: str, argv: Sequence[str]) -> ConfigError:
    """The error for a flag that there is not, under the name that was typed."""
    names = [word.partition("=")[0] for word in argv if word.startswith("-")]
    typed = next((name for name in names if name.replace("_", "-") == option), None)
    if typed is None:  # one letter of a word with a single dash
        typed = next((name for name in names if not name.startswith("--") and option[1:] in name[1:]), option)
    from alipes.config.guesses import guess  # a right command line needs no guesses

    mend = guess(typed.lstrip("-"))
    problem = f"there is no flag {typed}; alipes serve --help-all lists them"
    return ConfigError(f"{mend}\n{problem}" if mend else problem, key=typed)
