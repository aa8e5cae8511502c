"""The pages of the site, made from the pages that code hosts show: links put right, fences made plain.

The pages of `docs` are written to be read as they stand. On the way into the site

* pages outside `docs` join them, and links follow: every link is checked, whichever page it leads to;
* what stands behind the language of a fence, for the tests that run it, becomes the block's title or goes.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

DOCS = "docs/"
# Further pages, and files that pages link to. The README is the first page of a code host; the site has docs/index.md.
OUTSIDE = (
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "SECURITY.md",
    "examples/*/README.md",
    "python/alipes/quickstart/digits/DATA.md",
)
INSTEAD = {"README.md": "docs/index.md"}
# Languages that the site's highlighter does not know, and what is closest to them.
LANGUAGES = {"pbtxt": "protobuf"}

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


def sources(root: Path) -> Mapping[str, Path]:
    """The files of the site: path within the site to file of the checkout."""
    found = {posix(path, root).removeprefix(DOCS): path for path in (root / "docs").rglob("*") if path.is_file()}
    for pattern in OUTSIDE:
        found |= {posix(path, root): path for path in root.glob(pattern)}
    return found


def page(text: str, source: str, offered: Iterable[str]) -> str:
    """The Markdown of a page as the site has it.

    Args:
        text: The page.
        source: Its path in the checkout, such as `docs/how-to/security.md`.
        offered: The files of the site.

    Raises:
        LookupError: If a link leads to what the site does not have.
    """
    parts, end = [], 0
    for block in _FENCED.finditer(text):
        parts += [_linked(text[end : block.start()], source, offered), _plain(block[0])]
        end = block.end()
    return "".join([*parts, _linked(text[end:], source, offered)])


def posix(path: Path, root: Path) -> str:
    """The path of a file below the root, with slashes."""
    return path.relative_to(root).as_posix()


def _plain(block: str) -> str:
    """A block whose fence Markdown knows: ```` ```pbtxt a/config.pbtxt ```` becomes a block with that title."""
    fence, rest = block.split("\n", 1)
    language, _, argument = fence.removeprefix("```").partition(" ")
    file = "" if argument == "serve" else re.sub(r" *(needs \w+|by \S+)$", "", argument)
    title = f' title="{file}"' if file else ""
    return f"```{LANGUAGES.get(language, language)}{title}\n{rest}"


def _linked(text: str, source: str, offered: Iterable[str]) -> str:
    """Text without fences, whose links lead from where the page is in the site."""

    def led(link: re.Match[str]) -> str:
        target = urlsplit(link["target"])
        if target.scheme or not target.path:
            return link[0]
        meant = posixpath.normpath(posixpath.join(posixpath.dirname(source), target.path))
        there = INSTEAD.get(meant, meant).removeprefix(DOCS)
        if there not in offered:
            raise LookupError(f"{source} links to {meant}: add it to tools/site/pages.py, or name it without a link")
        path = posixpath.relpath(there, posixpath.dirname(source.removeprefix(DOCS)) or ".")
        return f"]({path}{'#' if target.fragment else ''}{target.fragment})"

    return _LINK.sub(led, text)
