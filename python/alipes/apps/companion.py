"""What goes along with a server of apps: pages that describe them, and `--reload`, which follows their source."""

from __future__ import annotations

from typing import Final

from alipes import _core
from alipes.apps.docs_page import docs_pages
from alipes.apps.follower import Follower
from alipes.apps.openapi import openapi_page
from alipes.apps.serving import Apps
from alipes.server.server import InProcessServer

__all__ = ["AppsCompanion"]

_END_WITHIN_S: Final = 1.0


class AppsCompanion:
    """Begins and ends with the server."""

    def __init__(self, apps: Apps, *, follows: bool) -> None:
        """Takes the apps, and whether a changed source is loaded again."""
        self._apps = apps
        self._follows = follows
        self._follower: Follower | None = None

    def begin(self, server: InProcessServer) -> None:
        """Sets the pages, and begins to follow the source where that is wanted."""
        for page in docs_pages():
            server.set_page(*page)
        self._describe(server)
        if self._follows:
            self._follower = Follower(self._apps, server, lambda: self._describe(server))
            self._follower.start()

    def end(self) -> None:
        """Follows the source no longer."""
        if self._follower is not None:
            self._follower.stop(_END_WITHIN_S)

    def _describe(self, server: InProcessServer) -> None:
        server.set_page(*openapi_page(self._apps.descriptions.values(), _core.version()))
