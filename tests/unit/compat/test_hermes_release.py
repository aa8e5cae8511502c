"""Servers that scripts of hermes start follow the release that hermes was written for."""

from __future__ import annotations

from alipes.compat.release import release_flags
from alipes.config.load import parse_flags


def test_scripts_get_the_release_of_hermes_unless_they_name_one() -> None:
    for words, release in ([], "2.51"), (["--id=a"], "2.51"), (["--triton-release=2.73"], "2.73"):
        assert parse_flags(["models", *release_flags(words, {}), *words], {}).triton_release == release
    assert release_flags(["--triton-release", "2.73"], {}) == ()
    assert release_flags([], {"ALIPES_TRITON_RELEASE": "2.73"}) == ()
