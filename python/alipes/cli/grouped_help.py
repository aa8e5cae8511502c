"""A help page whose options stand under headings."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

__all__ = ["GroupedCommand", "grouped_option"]

_OTHERS = "Others"
"""Heading of the options that name none."""


def grouped_option(group: str, *names: str, text: str, metavar: str | None = None, **more: Any) -> Any:
    """An option under a heading; its default is shown where `shown` says so, else where it has no `metavar`."""
    shown = more.pop("shown", metavar is None)
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=group, show_default=shown, **more)


class GroupedCommand(TyperCommand):
    """A command whose options are listed under the `rich_help_panel` that each names, in the order of the first."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the arguments and the options."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                is_argument = param.param_type_name == "argument"
                heading = "Arguments" if is_argument else getattr(param, "rich_help_panel", None) or _OTHERS
                groups.setdefault(heading, []).append(record)
        for heading in sorted(groups, key=lambda heading: heading == _OTHERS):
            with formatter.section(heading):
                formatter.write_dl(groups[heading])
