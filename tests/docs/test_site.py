"""The pages of the site say what those of the checkout say, and their links lead where they led."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site_pages() -> ModuleType:
    """`tools/site/pages.py`, which is part of a program."""
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "tools" / "site" / "pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_can_join_the_site(site_pages: ModuleType) -> None:
    files = site_pages.sources(ROOT)
    for name, path in files.items():
        if name.endswith(".md"):
            assert site_pages.page(path.read_text(encoding="utf-8"), site_pages.posix(path, ROOT), files)


def test_every_page_of_the_documentation_is_in_the_navigation(site_pages: ModuleType) -> None:
    settings = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    missing = [name for name in site_pages.sources(ROOT) if name.endswith(".md") and name not in settings]
    assert missing == []


@pytest.mark.parametrize(
    ("source", "link", "led"),
    [
        ("docs/how-to/a.md", "b.md", "b.md"),
        ("docs/how-to/a.md", "../reference/c.md#part", "../reference/c.md#part"),
        ("docs/how-to/a.md", "../../SECURITY.md#report", "../SECURITY.md#report"),
        ("docs/index.md", "../examples/digits/README.md", "examples/digits/README.md"),
        ("SECURITY.md", "docs/how-to/b.md", "how-to/b.md"),
        ("examples/digits/README.md", "../../docs/how-to/b.md", "../../how-to/b.md"),
        ("CONTRIBUTING.md", "README.md", "index.md"),
        ("docs/index.md", "#part", "#part"),
        ("docs/index.md", "https://example.org/b.md", "https://example.org/b.md"),
    ],
)
def test_links_follow_the_pages_into_the_site(site_pages: ModuleType, source: str, link: str, led: str) -> None:
    offered = {"index.md", "how-to/b.md", "reference/c.md", "SECURITY.md", "examples/digits/README.md"}
    assert site_pages.page(f"see [this]({link}).\n", source, offered) == f"see [this]({led}).\n"


def test_a_link_to_what_the_site_lacks_is_an_error_that_says_so(site_pages: ModuleType) -> None:
    with pytest.raises(LookupError, match=r"docs/a.md links to python/b.py: add it to tools/site/pages.py"):
        site_pages.page("see [this](../python/b.py)\n", "docs/a.md", set())


@pytest.mark.parametrize(
    ("fence", "plain"),
    [
        ("```bash", "```bash"),
        ("```bash serve", "```bash"),
        ("```console needs torch", "```console"),
        ("```python plain.py needs torch", '```python title="plain.py"'),
        ("```pbtxt models/a/config.pbtxt", '```protobuf title="models/a/config.pbtxt"'),
        ("```", "```"),
    ],
)
def test_a_fence_becomes_one_that_the_site_knows(site_pages: ModuleType, fence: str, plain: str) -> None:
    text = "see\n\n{}\n[not](a.md) a link\n```\n"
    assert site_pages.page(text.format(fence), "docs/index.md", set()) == text.format(plain)


def test_a_version_stands_behind_the_name_of_the_site() -> None:
    settings = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    assert settings.count('site_name = "alipes"\n') == 1, "tools/site puts the version there"
