"""`alipes config explain`: each value with its origin."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from alipes.cli.mistakes import USAGE_ERROR, show_mistake
from alipes.cli.serve_mistakes import flag_mistake
from alipes.config.flags import OPTION_FLAGS, Flag
from alipes.config.load import parse_flags
from alipes.config.nearest import nearest
from alipes.config.options import ServerOptions
from alipes.config.pbtxt import read_config
from alipes.config.schema import ModelConfig, is_map, is_repeated
from alipes.errors import AlipesError, ConfigError
from alipes.repository.layout import ModelFolder
from alipes.repository.versions import choose_versions, policy_of
from alipes.server.planner import Planner

REPOSITORY = "model-repository"


_PAGE = """\
Usage: alipes config explain [MODEL_FOLDER] [FLAGS]

  Print each value of the server's configuration, or of a model's, with where
  it comes from: a flag, a variable, a file, the model itself, or a default.
  Nothing is started or asked.

    alipes config explain --http-port 9000     the server's flags
    alipes config explain models/digits        the configuration of one model

  FLAGS are those of alipes serve, and so is alipes.toml. A running server is
  asked by alipes explain MODEL.
"""

# Fields that are completed if absent: from the folder's name and files, or from the model itself.
COMPLETED = frozenset(
    (
        "name",
        "platform",
        "backend",
        "default_model_filename",
        "max_batch_size",
        "input",
        "output",
        "dynamic_batching",
        "model_transaction_policy",
    )
)


def explain(arguments: Sequence[str], console: Console | None = None) -> int:
    """Explains a model's configuration if the first argument is a model's folder, else the server's options.

    Returns:
        0, 1 if something does not fit, or 2 for a wrong command line; the reason is on standard error.
    """
    if {"-h", "--help"} & set(arguments):
        print(_PAGE, end="")
        return 0
    console = console if console is not None else Console()
    folder = Path(arguments[0]) if arguments and not arguments[0].startswith("-") else None
    if folder is not None and not folder.exists() and "://" not in arguments[0]:
        show_mistake(_absent(folder))
        return 1
    model = folder is not None and _is_model(folder)
    flags = [str(folder.absolute().parent), *arguments[1:]] if folder is not None and model else arguments
    try:
        options, repository_named = _options(flags)
    except ConfigError as error:
        show_mistake(flag_mistake(error))
        return USAGE_ERROR
    try:
        if folder is not None and model:
            _explain_model(folder.absolute(), options, console)
        else:
            _explain_options(options, repository_named, console)
    except ConfigError as error:
        print(f"error: {error.explain()}", file=sys.stderr)
        return 1
    except AlipesError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _absent(folder: Path) -> str:
    beside = folder.parent
    names = [entry.name for entry in beside.iterdir() if entry.is_dir()] if beside.is_dir() else []
    close = nearest(folder.name, names)
    first = f"did you mean {beside / close}?\n" if close else ""
    return f"{first}there is no folder {folder}; to ask a running server about a model, type\nalipes explain {folder}"


def _is_model(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    return (folder / "config.pbtxt").is_file() or bool(ModelFolder(folder.name, folder).scan_versions().versions)


def _explain_options(options: ServerOptions, repository_named: bool, console: Console) -> None:
    table = _table("flag")
    for flag in OPTION_FLAGS:
        if flag.name == REPOSITORY and not repository_named:
            table.add_row(f"--{flag.name}", "", "default")
        elif flag.status == "works" and not flag.alias:
            origin: str = options.origins.get(flag.name, "default")
            origin = f"file {options.config_file}" if origin == "file" else origin
            table.add_row(f"--{flag.name}", escape(_value(flag, options)), origin)
    console.print(table)
    for notice in options.notices:
        console.print(f"[yellow]notice[/] {escape(notice)}", highlight=False)


def _options(arguments: Sequence[str]) -> tuple[ServerOptions, bool]:
    """The options, and whether a repository is among them: without one the other flags still have values."""
    try:
        return parse_flags(arguments, os.environ, folder=Path()), True
    except ConfigError as error:
        if error.key != REPOSITORY:
            raise
        return parse_flags([*arguments, "."], os.environ, folder=Path()), False


def _value(flag: Flag, options: ServerOptions) -> str:
    if not flag.option:  # taken apart into several options
        return ""
    value: object = options
    for name in flag.option.split("."):
        value = getattr(value, name)
    if isinstance(value, tuple):
        return " ".join(str(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _explain_model(path: Path, options: ServerOptions, console: Console) -> None:
    folder = ModelFolder(path.name, path)
    planner = Planner(options)
    polled = planner.poll(folder, None)
    versions = choose_versions(policy_of(polled), folder.scan_versions().versions)
    if not versions:
        raise ConfigError(f"at least one version must be available under the version policy of model '{folder.name}'")
    plan = planner.plan(folder, polled, versions[-1])
    config = read_config(path, options.model.config_name)
    written = {place for place, _ in leaves(config)} if config is not None else set()
    table = _table("field")
    for place, value in leaves(plan.config):
        table.add_row(escape(place), escape(value), _origin(place, written))
    console.print(f"{folder.name}, versions {', '.join(map(str, versions))}", highlight=False)
    console.print(table)
    for notice in plan.notices:
        console.print(f"[yellow]notice[/] {escape(notice)}", highlight=False)


def _origin(place: str, written: set[str]) -> str:
    if place in written:
        return "file"
    return "auto-completed" if re.split(r"\W", place)[0] in COMPLETED else "default"


def leaves(message: ModelConfig, prefix: str = "") -> Iterator[tuple[str, str]]:
    """The values that are set in a message, each with its place, such as ``input[0].dims``.

    Lists of plain values are one leaf: they are written and completed as a whole.
    """
    fields = message.ListFields()
    if not fields and prefix:
        yield prefix, "{}"
    for field, content in fields:
        place = f"{prefix}.{field.name}" if prefix else field.name
        if is_map(field):
            for key in sorted(content):
                yield from _leaf(field, content[key], f"{place}[{key}]")
        elif is_repeated(field) and field.message_type is not None:
            for index, item in enumerate(content):
                yield from leaves(item, f"{place}[{index}]")
        elif is_repeated(field):
            yield place, "[" + ", ".join(_word(field, item) for item in content) + "]"
        else:
            yield from _leaf(field, content, place)


def _leaf(field: ModelConfig, content: ModelConfig, place: str) -> Iterator[tuple[str, str]]:
    if hasattr(content, "ListFields"):
        yield from leaves(content, place)
    else:
        yield place, _word(field, content)


def _word(field: ModelConfig, value: object) -> str:
    if field.enum_type is not None and isinstance(value, int):
        return str(field.enum_type.values_by_number[value].name)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _table(first: str) -> Table:
    table = Table()
    table.add_column(first, style="cyan", overflow="fold")
    table.add_column("value", overflow="fold")
    table.add_column("origin", no_wrap=True)
    return table
