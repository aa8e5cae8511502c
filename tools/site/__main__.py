"""Builds the documentation as a site: `python tools/site`, in the environment of the group `docs`.

The pages are put together in build/pages, and from them the site in build/site. Every warning is an error: a link that
leads nowhere, an anchor that is not there, a page that the navigation leaves out, a public name that cannot be read,
something that a browser would fetch from elsewhere.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import api
import pages

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
SETTINGS = ROOT / "zensical.toml"
COLOUR = re.compile(r"\x1b\[[\d;]*m")
WARNING = re.compile(r"^Warning: (.+)\n\s*╭─\[ (\S+) \]", re.MULTILINE)
FETCHED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"' >]+)")


def main() -> None:
    """Puts the pages together, builds the site and looks through it."""
    try:
        gather()
    except LookupError as error:
        sys.exit(f"site: {error.args[0]}")
    (BUILD / SETTINGS.name).write_text(settings(), encoding="utf-8")
    problems = [*left_out(), *built()] or list(fetched())
    if problems:
        sys.exit("\n".join(problems))
    print("the site is in build/site; to look at it: python3 -m http.server --bind 127.0.0.1 -d build/site 8080")


def built() -> list[str]:
    """Builds the site, and says what is wrong with it: a line for each warning, as compilers write them."""
    zensical = Path(sys.executable).with_name("zensical")
    # A cache of an earlier build could hide what has changed outside the pages, such as a docstring.
    command = [zensical, "build", "--clean", "--strict", "--config-file", BUILD / SETTINGS.name]
    done = subprocess.run(
        command, cwd=BUILD, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", check=False
    )
    if done.returncode == 0:
        return []
    printed = COLOUR.sub("", done.stdout)
    return [f"site: {place}: {what}" for what, place in WARNING.findall(printed)] or [printed]


def gather() -> None:
    """Writes the pages anew.

    Raises:
        LookupError: If a page links to what the site does not have.
    """
    for folder in ("pages", "site"):
        shutil.rmtree(BUILD / folder, ignore_errors=True)
    files = pages.sources(ROOT)
    for name, path in files.items():
        content = path.read_bytes()
        if name.endswith(".md"):
            content = pages.page(content.decode(), pages.posix(path, ROOT), files).encode()
        put(name, content)
    for name, text in api.pages(ROOT).items():
        put(name, text.encode())


def put(name: str, content: bytes) -> None:
    """Writes one file of build/pages."""
    path = BUILD / "pages" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def settings() -> str:
    """The settings, with the version behind the name: a site is of one version, and each page says which."""
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    version = workspace["workspace"]["package"]["version"]
    text = SETTINGS.read_text(encoding="utf-8")
    return text.replace('site_name = "alipes"', f'site_name = "alipes {version}"')


def left_out() -> Iterator[str]:
    """Pages that readers cannot reach from the navigation."""
    text = SETTINGS.read_text(encoding="utf-8")
    for path in sorted((BUILD / "pages").rglob("*.md")):
        name = pages.posix(path, BUILD / "pages")
        if f'{name}"' not in text and f"/{name}\n" not in text:
            yield f"site: {name} is in no list of {SETTINGS.name}: add it to `nav`"


def fetched() -> Iterator[str]:
    """What a browser would fetch from elsewhere."""
    for path in sorted((BUILD / "site").rglob("*.html")):
        for address in sorted(set(FETCHED.findall(path.read_text(encoding="utf-8")))):
            yield f"site: {pages.posix(path, BUILD)} fetches {address}"


if __name__ == "__main__":
    main()
