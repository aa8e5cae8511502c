"""The page `/docs`: Swagger UI over `/openapi.json`, with all that it needs served by this server."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["Page", "docs_pages"]

_FOLDER: Final = Path(__file__).parent / "swagger"

# Paths are relative, so that the page works below a prefix of a proxy too.
_HTML: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>alipes: functions and models of this server</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="page"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""

_START: Final = """\
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#page",
  deepLinking: true,
  validatorUrl: null,
  tryItOutEnabled: true,
});
"""


class Page(NamedTuple):
    """A page of the server.

    Attributes:
        path: Its path.
        content_type: Its media type.
        body: Its content.
    """

    path: str
    content_type: str
    body: bytes


def docs_pages() -> list[Page]:
    """The page, its program and its style."""
    return [
        Page("/docs", "text/html; charset=utf-8", _HTML.encode()),
        Page("/docs/start.js", "text/javascript; charset=utf-8", _START.encode()),
        Page("/docs/swagger-ui-bundle.js", "text/javascript; charset=utf-8", _unpacked("swagger-ui-bundle.js.gz")),
        Page("/docs/swagger-ui.css", "text/css; charset=utf-8", _unpacked("swagger-ui.css.gz")),
    ]


def _unpacked(name: str) -> bytes:
    return gzip.decompress((_FOLDER / name).read_bytes())
