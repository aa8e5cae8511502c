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

from alipes.config.flags import FLAGS, Flag
from alipes.config.load import parse_flags
from alipes.config.options import ServerOptions
from alipes.config.pbtxt import read_config
from alipes.config.schema import ModelConfig, is_map, is_repeated
from alipes.errors import AlipesError, ConfigError
from alipes.repository.layout import ModelFolder
from alipes.repository.versions import choose_versions, policy_of
from alipes.server.planner import Planner

REPOSITORY = "model-repository"

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
        0, or 1 if something does not fit; the reason is on standard error.
    """
    console = console if console is not None else Console()
    folder = Path(arguments[0]) if arguments and not arguments[0].startswith("-") else None
    try:
        if folder is not None and _is_model(folder):
            _explain_model(folder.absolute(), arguments[1:], console)
        else:
            _explain_options(arguments, console)
    except ConfigError as error:
        print(f"error: {error.explain()}", file=sys.stderr)
        return 1
    except AlipesError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _is_model(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    return (folder / "config.pbtxt").is_file() or bool(ModelFolder(folder.name, folder).scan_versions().versions)


def _explain_options(arguments: Sequence[str], console: Console) -> None:
    table = _table("flag")
    options, repository_argument = _options(arguments)
    for flag in FLAGS:
        if flag.name == REPOSITORY and not repository_argument:
            table.add_row(f"--{flag.name}", "", "default")
        elif flag.status == "works" and not flag.alias:
            origin = options.origins.get(flag.name, "default")
            table.add_row(f"--{flag.name}", escape(_value(flag, options)), origin)
    console.print(table)
    for notice in options.notices:
        console.print(f"[yellow]notice[/] {escape(notice)}", highlight=False)


def _options(arguments: Sequence[str]) -> tuple[ServerOptions, bool]:
    """The options, and whether a repository is among them: without one the other flags still have values."""
    try:
        return parse_flags(arguments, os.environ), True
    except ConfigError as error:
        if error.key != REPOSITORY:
            raise
        return parse_flags([*arguments, "."], os.environ), False


def _value(flag: Flag, options: ServerOptions) -> str:
    if not flag.option:  # taken apart into several options
        return ""
    value: object = options
    for name in flag.option.split("."):
        value = getattr(value, name)
    if isinstance(value, tuple):
        return " ".join(str(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _explain_model(path: Path, flags: Sequence[str], console: Console) -> None:
    options = parse_flags([str(path.parent), *flags], os.environ)
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
