"""What is said of a command or an option that there is not: what is meant, by meaning and then by spelling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from alipes.config.nearest import ALIKE, MISSPELLED, nearest
from alipes.synonyms import SYNONYMS, Synonym, synonym, words_at

__all__ = ["Command", "nearest_option", "unknown_command", "unknown_option"]

_SHARED: Final = {"clients": "--url", "deployments": "--set"}
"""Places that several commands share, and the option by which those are known."""

_SERVE: Final = "alipes serve"
"""The command whose flags are beside the command line library's."""

_LISTED: Final = 4
"""Commands that are listed of those that have an option."""

_LONG: Final = 5
"""Letters of a synonym that spellings are compared with: shorter ones look like too much."""


@dataclass(frozen=True)
class Command:
    """A command as the command line library has it.

    Attributes:
        called: What is typed for it, such as `alipes repo`.
        command: Its object.
        root: That of `alipes`, whose other commands a word may belong to.
    """

    called: str
    command: Any
    root: Any

    @property
    def names(self) -> list[str]:
        """The commands behind it."""
        return list(getattr(self.command, "commands", {}))

    @property
    def options(self) -> list[str]:
        """Its options, with their dashes."""
        return _options(self.command)


def unknown_command(at: Command, word: str) -> str:
    """What to say about a word that is no command."""
    seen = f"there is no command {word!r}; {at.called} --help lists them"
    if served := _served(at.called, word):
        return served
    row = _synonym(at.called, word)
    if row is None and (elsewhere := _commands(at.root).get(word)):
        return f"did you mean {' or '.join(elsewhere)}?\n{seen}"
    if row is None:
        close = _nearest_command(at, word)
        row = _synonym(at.called, close) if close and close not in at.names else None
        if close and row is None:
            return f"did you mean {at.called} {close}?\n{seen}"
    return f"{row.hint}\n{seen}" if row else seen


def unknown_option(at: Command, option: str) -> str:
    """What to say about an option that there is not."""
    seen = f"there is no option {option}; {at.called} --help lists them"
    word = option.lstrip("-")
    if word in at.names:
        return f"did you mean {at.called} {word}?\n{seen}"
    if row := next(_rows(at, word), None):
        return f"{row.hint}\n{seen}"
    close = nearest_option(option, at.options)
    elsewhere = _others(at, option)
    is_flag = at.command is at.root and elsewhere == [_SERVE]
    if at.names and not is_flag and (below := _holders(at.called, at.command, option)):
        return f"{option} belongs behind a command, such as {below[0]} {option}\n{seen}"
    if elsewhere and (close is None or (option.startswith("--") and close[2:] not in word)):
        return f"{option} is an option of {_listed(elsewhere)}\n{seen}"
    return f"did you mean {close}?\n{seen}" if close else seen


def nearest_option(option: str, known: Iterable[str]) -> str | None:
    """The known option that is spelled like another; dashes, which all have, do not make them alike."""
    plain = {one.lstrip("-"): one for one in known}
    return plain.get(nearest(option.lstrip("-"), plain, ALIKE) or "")


def _nearest_command(at: Command, word: str) -> str | None:
    """A command, or a synonym of one, that is spelled like a word."""
    found = (nearest(word, at.names, ALIKE), nearest(word, _long_words(at.called), MISSPELLED))
    return nearest(word, [one for one in found if one])


def _served(called: str, word: str) -> str:
    """What to say where the word is what somebody wants to serve."""
    from alipes.apps.target import is_app

    path = Path(word)
    is_path = path.is_dir() or path.is_file() or "://" in word or is_app(word)
    if called == "alipes" and is_path and _synonym(called, word) is None:
        return f"to serve {'a folder' if path.is_dir() else 'it'}, type\nalipes serve {word}"
    if called == "alipes deploy" and is_path:
        return f"to put it into a container image, type\nalipes deploy image {word}"
    return ""


def _synonym(called: str, word: str) -> Synonym | None:
    return synonym(called, word) if called in SYNONYMS else None


def _long_words(called: str) -> Sequence[str]:
    if called not in SYNONYMS:
        return ()
    return [word for word in words_at(called) if len(word) >= _LONG]


def _rows(at: Command, word: str) -> Iterator[Synonym]:
    """Rows for an option, those of the command itself first; none that means an option which this command lacks."""
    places = [at.called, *(place for place, mark in _SHARED.items() if mark in at.options)]
    for place in places:
        row = _synonym(place, word)
        if row is not None and (not row.meant or row.meant in at.options or row.meant.startswith("alipes ")):
            yield row


def _others(at: Command, option: str) -> list[str]:
    """The commands that have an option; `alipes serve` has its flags beside the command line library's."""
    from alipes.config.flags import find_for_serve

    found = _holders("alipes", at.root, option)
    flag = find_for_serve(option[2:]) if option.startswith("--") else None
    return [_SERVE] if flag is not None else found


def _holders(called: str, command: Any, option: str) -> list[str]:
    """The commands behind one that have an option; those that list come first."""
    found = [name for name, leaf in _leaves(called, command) if option in _options(leaf)]
    return sorted(found, key=lambda name: not name.endswith(" list")) if called != "alipes" else found


def _listed(commands: Sequence[str]) -> str:
    """The commands in a sentence; where there are many, the first ones."""
    shown = list(commands) if len(commands) <= _LISTED else [*commands[: _LISTED - 1], "others"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]


def _commands(root: Any) -> Mapping[str, list[str]]:
    """Commands of commands by their last word: `apply` is that of `alipes deploy apply`."""
    found: dict[str, list[str]] = {}
    for called, _ in _leaves("alipes", root):
        found.setdefault(called.rpartition(" ")[2], []).append(called)
    return found


def _leaves(called: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Every command that has none behind it."""
    below = getattr(command, "commands", None)
    if below is None:
        yield called, command
        return
    for name, one in below.items():
        yield from _leaves(f"{called} {name}", one)


def _options(command: Any) -> list[str]:
    return [
        word for one in command.params if one.param_type_name == "option" for word in (*one.opts, *one.secondary_opts)
    ]
