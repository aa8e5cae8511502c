"""The picture of the README is of the tour, and of nothing of the machine that drew it."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

PICTURE = Path(__file__).parents[2] / "docs" / "quickstart.svg"
TEXT = PICTURE.read_text(encoding="utf-8")
SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_shows_the_tour() -> None:
    words = " ".join("".join(text.itertext()) for text in ElementTree.fromstring(TEXT).iter(f"{SVG}text"))
    words = words.replace("\xa0", " ")
    for shown in ("alipes quickstart", "HTTP, binary", "requests/s", "batch size"):
        assert shown in words, f"{shown!r} is not in the picture: run `tools/quickstart-picture`"


def test_the_picture_fetches_nothing() -> None:
    assert re.findall(r"(?:url|href|src)\W{1,3}https?:", TEXT) == []


def test_the_picture_names_no_folder_of_a_machine() -> None:
    assert re.findall(r"/(?:home|root|tmp|work|usr)/", TEXT) == []
