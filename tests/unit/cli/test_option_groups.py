"""Options that several commands have arrive as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import pytest
import typer
from alipes.cli.option_groups import with_option_groups
from typer.testing import CliRunner


@dataclass(frozen=True)
class Place:
    city: Annotated[str, typer.Option("--city", "-c", help="Where.")] = "Rome"
    floor: Annotated[int | None, typer.Option("--floor", min=0)] = None


APP: Final = typer.Typer()


@APP.command()
@with_option_groups
def send(
    what: Annotated[str, typer.Argument()], loud: Annotated[bool, typer.Option("--loud")] = False, *, place: Place
) -> None:
    """Send it."""
    print(what, loud, place)


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        ("box", "box False Place(city='Rome', floor=None)"),
        ("box --loud -c Oslo --floor 3", "box True Place(city='Oslo', floor=3)"),
        ("--floor 0 box", "box False Place(city='Rome', floor=0)"),
    ],
)
def test_the_options_of_a_group_arrive_as_one_value(words: str, printed: str) -> None:
    done = CliRunner().invoke(APP, words.split())
    assert (done.exit_code, done.stdout) == (0, f"{printed}\n")


def test_the_options_of_a_group_are_checked_and_shown_like_others() -> None:
    assert CliRunner().invoke(APP, ["box", "--floor=-1"]).exit_code == 2
    shown = CliRunner().invoke(APP, ["--help"]).stdout
    assert [word for word in ("--loud", "--city", "-c", "Where.", "--floor") if word not in shown] == []
    assert "--place" not in shown
