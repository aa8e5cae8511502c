"""What newcomers type by analogy with other programs leads them to what there is: by meaning, then by spelling."""

from __future__ import annotations

import inspect
import pkgutil
import shlex
import tomllib
from pathlib import Path
from typing import Final

import alipes
import pytest
import typer
from alipes.cli.app import app
from alipes.cli.topics import topic_text, topics
from alipes.cli.unknown import Command
from alipes.config.environment import unused_variables
from alipes.config.flags import find_for_serve
from alipes.errors import ConfigError, ServeError
from alipes.serve.flags import keyword_words
from alipes.synonyms import SYNONYMS
from alipes.worker.apps.decorator import OPTIONS
from support.command import alipes as typed
from support.command import check_readable

CASES: Final = tomllib.loads(Path(__file__).with_name("guesses.toml").read_text(encoding="utf-8"))
COMMAND_LINES: Final = CASES["commands"] | CASES["flags-of-serve"] | CASES["options-of-clients"]


_OF_MANY: Final = {"clients": "alipes loadtest", "deployments": "alipes deploy kubernetes"}
"""A command with all options that the rows of several commands mean."""


_NAMES: Final = {
    "clients": (),
    "deployments": (),
    "@alipes.model": OPTIONS,
    "alipes.serve": ("host",),
    "import alipes": [*dir(alipes), *(file.name for file in pkgutil.iter_modules(alipes.__path__) if not file.ispkg)],
    "alipes.Client": inspect.signature(alipes.Client).parameters,
    "client.": dir(alipes.Client),
    "server.": dir(alipes.Server),
}
"""What there is where no command is typed. In the package also its files: one that is imported would hide the hint.

Its folders `graph` and `repository` may be words of the table, as they hold what these words mean.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    (tmp_path / "app.py").touch()
    (tmp_path / "iris.joblib").touch()
    (tmp_path / "iris.onnx").touch()
    return tmp_path


@pytest.mark.parametrize("words", COMMAND_LINES)
def test_a_guess_on_the_command_line_is_answered_with_what_is_meant(words: str, folder: Path) -> None:
    done = typed(*shlex.split(words), folder=folder)
    assert done.code == 2
    assert done.message.startswith(f"error: {COMMAND_LINES[words]}")
    check_readable(done)


@pytest.mark.parametrize("words", CASES["names-of-files"])
def test_a_guess_where_a_file_is_named_is_answered_with_what_is_meant(words: str, folder: Path) -> None:
    done = typed(*shlex.split(words), folder=folder)
    assert done.code == 1
    assert done.message.startswith(f"error: {CASES['names-of-files'][words]}")
    check_readable(done)


@pytest.mark.parametrize("words", CASES["names-of-apps"])
def test_a_guess_about_an_app_is_answered_with_its_own_line(words: str, folder: Path) -> None:
    (folder / "guess.py").write_text("import alipes\n\nmodel = alipes.load()\n", encoding="utf-8")
    done = typed(*shlex.split(words), folder=folder)
    assert done.message.startswith(f"error: {CASES['names-of-apps'][words]}")
    assert "/alipes/" not in done.message
    assert ("guess.py, line 3" in done.message) is ("guess" in words)


@pytest.mark.parametrize("word", CASES["topics"])
def test_help_finds_a_topic_or_a_command_by_a_word_for_it(word: str) -> None:
    done = typed("help", word)
    meant = CASES["topics"][word]
    assert (done.code, done.out) == (0, topic_text(meant) or typed(*meant.split(), "--help").out)


@pytest.mark.parametrize("text", CASES["keys"])
def test_a_guessed_key_of_a_file_is_answered_with_what_is_meant(text: str, folder: Path) -> None:
    (folder / "alipes.toml").write_text(text, encoding="utf-8")
    done = typed("serve", "models", folder=folder)
    assert done.message.startswith(f"error: {CASES['keys'][text]}")
    check_readable(done)


@pytest.mark.parametrize("name", CASES["variables"])
def test_a_guessed_variable_is_answered_with_what_is_meant(name: str) -> None:
    [notice] = unused_variables({name: "4"})
    assert notice.startswith(CASES["variables"][name])


@pytest.mark.parametrize("name", CASES["keywords-of-serve"])
def test_a_guessed_keyword_of_serve_is_answered_with_what_is_meant(name: str) -> None:
    with pytest.raises(ServeError) as error:
        keyword_words({name: 4})
    assert str(error.value).startswith(CASES["keywords-of-serve"][name])


@pytest.mark.parametrize("name", CASES["keywords-of-model"])
def test_a_guessed_option_of_a_function_is_answered_with_what_is_meant(name: str) -> None:
    with pytest.raises(ConfigError) as error:
        alipes.model(**{name: 4})(lambda: None)  # type: ignore[call-overload]
    assert str(error.value) == CASES["keywords-of-model"][name]


@pytest.mark.parametrize("name", CASES["names-of-package"])
def test_a_guessed_name_of_the_package_is_answered_with_what_is_meant(name: str) -> None:
    with pytest.raises(AttributeError) as error:
        getattr(alipes, name)
    assert str(error.value).startswith(CASES["names-of-package"][name])


@pytest.mark.parametrize("name", CASES["keywords-of-client"])
def test_a_guessed_keyword_of_a_client_is_answered_with_what_is_meant(name: str) -> None:
    with pytest.raises(TypeError) as error:
        alipes.Client(**{name: 4})  # type: ignore[arg-type]
    assert str(error.value).startswith(CASES["keywords-of-client"][name])


@pytest.mark.parametrize("name", CASES["methods-of-client"])
def test_a_guessed_method_of_a_client_is_answered_with_what_is_meant(name: str) -> None:
    with pytest.raises(AttributeError) as error:
        getattr(alipes.Client(), name)
    assert str(error.value).startswith(CASES["methods-of-client"][name])


@pytest.mark.parametrize("client", [alipes.Client, alipes.AsyncClient])
def test_a_client_of_one_model_is_answered_with_a_call(client: type[alipes.Client]) -> None:
    with pytest.raises(
        TypeError, match=r"takes an address and keywords: name the function in the call: client.call\('"
    ):
        client("localhost:8000", "add")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^a client has no items: write client.call\('add', ...\) or client.infer\("):
        client("localhost:8000")["add"]


def test_inputs_that_are_passed_by_name_are_answered_with_a_dictionary() -> None:
    client = alipes.Client("localhost:8000")
    for verb in ("infer", "stream"):
        with pytest.raises(
            TypeError, match=rf"^{verb}\(\) takes .* {verb}\('add', {{'n': ...}}\); .*, call\('add', n=...\)$"
        ):
            getattr(client, verb)("add", n=3)


@pytest.mark.parametrize("place", SYNONYMS)
def test_the_table_has_no_word_twice_and_none_that_there_is(place: str) -> None:
    words = [word.replace("_", "-") for row in SYNONYMS[place] for word in row.words.split()]  # type: ignore[index]
    assert len(words) == len(set(words)), sorted(word for word in words if words.count(word) > 1)
    assert not [word for word in words if _is_there(place, word)]


def test_every_command_and_option_that_the_table_means_is_there() -> None:
    for place, rows in SYNONYMS.items():
        for meant in (part for row in rows if row.meant for part in row.meant.split(" / ")):
            assert _means_something(place, meant), f"{place}: {meant}"


def _is_there(place: str, word: str) -> bool:
    if place == "alipes serve":
        return find_for_serve(word) is not None
    if place in _NAMES:
        return word.replace("-", "_") in _NAMES[place]
    command = _command(place)
    if place == "alipes help":
        return word in topics() or word in Command("alipes", command.root, command.root).names
    return word in command.names or f"--{word}" in command.options or f"-{word}" in command.options


def _means_something(place: str, meant: str) -> bool:
    if meant.startswith("alipes "):
        return _exists(meant)
    if meant.startswith("--") and place == "alipes serve":
        return find_for_serve(meant.partition("=")[0][2:]) is not None
    if meant.startswith("--"):
        return meant in _command(_OF_MANY.get(place, place)).options
    return True  # a keyword, which the cases above try


def _exists(text: str) -> bool:
    """Whether a command line names a topic, or commands that there are and an option at most."""
    words = text.split()
    if words[1:2] == ["help"] and words[2:]:
        return words[2] in topics() or _exists(" ".join(["alipes", *words[2:]]))
    commands = [word for word in words if not word.startswith("--")]
    options = [word for word in words if word.startswith("--")]
    found = _command(" ".join(commands))
    return all(option in found.options for option in options)


def _command(called: str) -> Command:
    root = command = typer.main.get_command(app)
    for word in called.split()[1:]:
        command = command.commands[word]  # type: ignore[attr-defined]
    return Command(called, command, root)
