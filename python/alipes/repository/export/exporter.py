"""What every exporter does, and how one of your own is found: by being a subclass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from alipes.errors import AlipesError, ExportError
from alipes.progress.work import current
from alipes.repository.export.checked_arguments import unknown_option
from alipes.repository.export.noise import caught_noise
from alipes.repository.export.request import ExportRequest
from alipes.repository.platform import Platform

__all__ = ["Exporter"]


class Exporter(ABC):
    """Writes one kind of object for one platform.

    A subclass that has been imported is used like those that come with the package.

    Attributes:
        platform: What it writes.
        options: Names of the options that it takes beside those of every export; None where it hands on any.
    """

    platform: ClassVar[Platform]
    options: ClassVar[frozenset[str] | None] = frozenset()

    @classmethod
    @abstractmethod
    def handles(cls, source: Any) -> bool:
        """Whether it exports such an object. An object's framework is loaded already: look, do not import."""

    @abstractmethod
    def export(self, source: Any, request: ExportRequest) -> None:
        """Declare inputs and outputs in `request.config`, and write the version's files into `request.folder`.

        Raises:
            ExportError: If it cannot be done.
        """

    def run(self, source: Any, request: ExportRequest) -> None:
        """Check the options, export, and give whatever fails the model's name.

        What frameworks print, log and warn of meanwhile is a note of what fails, unless the request is verbose.

        Raises:
            ExportError: If the export fails.
        """
        name = request.config.name
        unknown = [] if self.options is None else sorted(set(request.options) - self.options)
        if unknown:
            raise unknown_option(name, self.platform.name, unknown[0], self.options or ())
        current().step(f"as {self.platform.name}")
        with caught_noise(request.verbose):
            try:
                self.export(source, request)
            except AlipesError:
                raise
            except Exception as error:
                raise ExportError(
                    f"export of model '{name}' as {self.platform.name} failed: {type(error).__name__}: {error}"
                ) from error
