"""Names of images, and of where they are pushed."""

from __future__ import annotations

import pytest
from alipes.deploy.image.reference import Name, Reference
from alipes.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("registry.example.com/team/models:1.2", ("registry.example.com", "team/models", "1.2")),
        ("localhost:5000/models", ("localhost:5000", "models", "latest")),
        ("localhost/models", ("localhost", "models", "latest")),
        ("127.0.0.1:5000/a__b/c--d:x", ("127.0.0.1:5000", "a__b/c--d", "x")),
        ("[::1]:5000/models:1", ("[::1]:5000", "models", "1")),
    ],
)
def test_a_registry_a_name_and_a_tag_are_read(text: str, parts: tuple[str, str, str]) -> None:
    read = Reference.read(text)
    assert (read.host, read.path, read.tag) == parts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("models", "names no registry"),
        ("team/models:1", "names no registry"),
        ("", "names no registry"),
        ("exa mple.com/models", "names no registry that can be asked"),
        ("example.com/", "no name of an image"),
        ("example.com/Models", "no name of an image"),
        ("example.com/a//b", "no name of an image"),
        ("example.com/a:-x", "no tag of an image"),
        ("example.com/a:" + "x" * 129, "no tag of an image"),
        ("example.com/a@sha256:00", "no name of an image"),
        ("https://example.com/a", "names no registry that can be asked"),
    ],
)
def test_anything_else_is_refused_with_what_to_write(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        Reference.read(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("alipes:1", "localhost/alipes:1"),
        ("team/models", "localhost/team/models:latest"),
        ("example.com/models:2", "example.com/models:2"),
        ("localhost:5000/models:2", "localhost:5000/models:2"),
    ],
)
def test_a_name_without_a_registry_is_one_of_this_machine(text: str, full: str) -> None:
    assert Name.read(text).full == full


@pytest.mark.parametrize("text", ["", "A", "a b", "a:", "a/:1", "exa mple.com/a"])
def test_a_wrong_name_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        Name.read(text)
