"""The page about the KServe SDK says of each of its arguments what becomes of it."""

from __future__ import annotations

import re

from support.checkout import ROOT
from support.kserve_facts import recorded

PAGE = ROOT / "docs" / "how-to" / "from-the-kserve-sdk.md"
OPTION = "option "


def described() -> dict[str, str]:
    """What the page says of each argument of its table."""
    section = PAGE.read_text(encoding="utf-8").partition("## Each argument\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `([\w-]+)` \| (.+) \|$", section, re.MULTILINE))


def test_the_page_names_every_argument_of_the_sdk() -> None:
    facts = recorded("names")
    options = {name.removeprefix(OPTION) for name in facts if name.startswith(OPTION)}
    assert "--ssl_certfile" in options
    alone = set(facts["ModelServer()"]["returns"]) - {option.strip("-").replace("-", "_") for option in options}
    assert set(described()) == options | alone


def test_the_page_says_what_becomes_of_each() -> None:
    for name, text in described().items():
        assert re.match(r"works($|[:;,])|(ignored|refused): ", text), name
