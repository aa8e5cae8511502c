"""What goes along with a server of apps: it follows their source."""

from __future__ import annotations

from alipes.apps.follower import Follower
from alipes.apps.serving import Apps
from alipes.server.server import InProcessServer

__all__ = ["AppsCompanion"]

_END_WITHIN_S = 1.0


class AppsCompanion:
    """Begins and ends with the server."""

    def __init__(self, apps: Apps, *, follows: bool) -> None:
        """Takes the apps, and whether a changed source is loaded again."""
        self._apps = apps
        self._follows = follows
        self._follower: Follower | None = None

    def begin(self, server: InProcessServer) -> None:
        """Begins to follow the source, where that is wanted."""
        if self._follows:
            self._follower = Follower(self._apps, server)
            self._follower.start()

    def end(self) -> None:
        """Ends that."""
        if self._follower is not None:
            self._follower.stop(_END_WITHIN_S)
