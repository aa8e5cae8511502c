"""`alipes help` shows what commands take, and the texts to which messages lead."""

from __future__ import annotations

import re
from pathlib import Path

import alipes as package
import pytest
from alipes.cli.topics import topic_text, topics
from support.command import alipes

SOURCES = Path(package.__file__).parent


def test_help_alone_lists_commands_and_topics() -> None:
    done = alipes("help")
    assert done.code == 0
    assert "  serve  " in done.out
    assert "  files       Which files are served, and where they lie." in done.out


@pytest.mark.parametrize("words", ["serve", "deploy image", "repo", "help"])
def test_help_of_a_command_is_what_its_own_option_prints(words: str) -> None:
    assert alipes("help", *words.split()).out == alipes(*words.split(), "--help").out


@pytest.mark.parametrize("name", topics())
def test_a_topic_is_printed_in_eighty_columns(name: str) -> None:
    done = alipes("help", name)
    assert (done.code, done.out) == (0, topic_text(name))
    assert max(map(len, done.out.splitlines())) <= 80


def test_every_topic_that_a_message_names_is_there() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in (*SOURCES.rglob("*.py"), *SOURCES.rglob("*.txt"))}
    named = {name for text in texts.values() for name in re.findall(r"alipes help ([a-z]\w+)", text)}
    assert named - {"serve", "lists", "says", "deploy"} <= topics().keys()
    assert len(named) > 5


def test_no_message_names_a_page_of_the_sources() -> None:
    page = re.compile(r"(?<![\w/(])docs/(how-to|tutorial|explanation|reference)/[\w-]+\.md|see\s+\W*\s*SECURITY\.md")
    own = ("deploy/reference.py", "config/reference", "compat/perf_analyzer/reference.py")
    for path in SOURCES.rglob("*.py"):
        if not str(path.relative_to(SOURCES)).startswith(own):
            assert not page.search(path.read_text(encoding="utf-8")), path
