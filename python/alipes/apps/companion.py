"""What goes along with a server: pages that describe its endpoints, and `--reload`, which follows apps."""

from __future__ import annotations

import threading
from typing import Final

from alipes import _core
from alipes.apps.docs_page import docs_pages
from alipes.apps.endpoints import described
from alipes.apps.follower import Follower
from alipes.apps.openapi import openapi_page
from alipes.apps.serving import Apps
from alipes.server.log import log
from alipes.server.server import InProcessServer

__all__ = ["PagesCompanion"]

_END_WITHIN_S: Final = 1.0


class PagesCompanion:
    """Begins and ends with the server."""

    def __init__(self, apps: Apps | None = None, *, follows: bool = False, describes_models: bool = False) -> None:
        """Takes what is served.

        Args:
            apps: The apps, if there are some.
            follows: Whether a changed source of them is loaded again.
            describes_models: Whether models are described where no function is.
        """
        self._apps = apps
        self._follows = follows
        self._describes_models = describes_models
        self._is_stale = False
        self._follower: Follower | None = None
        self._describing = threading.Lock()
        self._has_pages = False

    def begin(self, server: InProcessServer) -> None:
        """Sets the pages, and begins to follow the source where that is wanted."""
        self._is_stale = True
        self._describe(server)
        if self._apps is not None and self._follows:
            self._follower = Follower(self._apps, server, lambda: self.endpoints_changed(server))
            self._follower.start()

    def endpoints_changed(self, server: InProcessServer) -> None:
        """Describes the endpoints anew, and all models where they are described."""
        self._is_stale = True
        try:
            self._describe(server)
        except Exception:  # the models serve all the same
            log.exception("the endpoints cannot be described")

    def end(self) -> None:
        """Follows the source no longer."""
        if self._follower is not None:
            self._follower.stop(_END_WITHIN_S)

    def _describe(self, server: InProcessServer) -> None:
        with self._describing:
            if not self._is_stale:
                return  # the thread that had the lock has seen this change too
            self._is_stale = False
            own = self._apps.descriptions.values() if self._apps is not None else ()
            functions = {model["name"]: model for description in own for model in description.models}
            others = {model["name"]: model for model in described(server.endpoints()) if model["name"] not in functions}
            if not self._has_pages and not functions and not others and not self._describes_models:
                return
            if not self._has_pages:
                # From now on any model belongs to the page; one that comes before the next line is found below.
                server.report_models()
            shown = functions | others
            models = [model for model in server.models() if model.name not in shown]
            page = openapi_page(shown.values(), models, _core.version(), has_keys=server.has_keys)
            server.set_page(*page)
            if not self._has_pages:
                for docs in docs_pages():
                    server.set_page(*docs)
                self._has_pages = True
