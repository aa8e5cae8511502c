"""Reads what is to be loaded: which folders a model has, what they are configured as, and which versions count."""

from __future__ import annotations

from alipes.errors import ConfigError, RepositoryError
from alipes.repository.layout import ModelFolder
from alipes.repository.repository import Repository
from alipes.repository.versions import choose_versions, missing_versions, policy_of
from alipes.server.builder import Origin, Request
from alipes.server.failures import LoadFailed, poll_failed
from alipes.server.log import log
from alipes.server.override import Override
from alipes.server.planner import Planner

__all__ = ["NoVersion", "Reader"]


class NoVersion(LoadFailed):
    """The version policy of a model chooses none of the versions that there are."""


class Reader:
    """Reads folders of models. Read errors go to the log; clients get no details."""

    def __init__(self, repository: Repository, planner: Planner) -> None:
        """Reads nothing yet.

        Args:
            repository: Where models are.
            planner: Reads configurations.
        """
        self._repository = repository
        self._planner = planner

    def find(self, model: str) -> tuple[ModelFolder, ...]:
        """The folders of a model; with namespaces, one in every repository that has it.

        Raises:
            LoadFailed: If there is none, or too many.
        """
        try:
            return self._repository.find(model)
        except RepositoryError as error:
            log.error("%s", error)
            raise poll_failed(model, str(error)) from error

    def read(self, folder: ModelFolder, origin: Origin, override: Override | None) -> Request:
        """What a folder says that was looked at before.

        Args:
            folder: The folder.
            origin: What it looked like.
            override: What takes the place of the folder's own.

        Raises:
            LoadFailed: If the model cannot be taken up as it is configured.
        """
        try:
            return Request(folder, origin, self._planner.poll(folder, override.config if override else None))
        except ConfigError as error:
            # A file has a place and a hint to show; an override is the client's own text.
            reason = str(error) if override is not None else error.explain()
            log.error("Poll failed for model directory '%s': %s", folder.name, reason)
            raise poll_failed(folder.name, reason) from error

    def choose(self, request: Request) -> tuple[int, ...]:
        """The versions that the model's policy chooses among those that there are.

        Raises:
            NoVersion: If it chooses none.
            LoadFailed: If the folder cannot be read.
        """
        folder = request.folder
        try:
            directories = folder.scan_versions()
        except RepositoryError as error:
            log.error("%s", error)
            raise poll_failed(folder.name, str(error)) from error
        for sentence in directories.ignored:
            log.warning("%s", sentence)
        policy = policy_of(request.config)
        for version in missing_versions(policy, directories.versions):
            log.error(
                "version %d is specified for model '%s', but the version directory is not present", version, folder.name
            )
        versions = choose_versions(policy, directories.versions)
        if not directories.versions:
            log.error(
                "model '%s' has no version: export one into %s, into a folder named by its number, or remove the model",
                folder.name,
                folder.path,
            )
        if not versions:
            reason = f"at least one version must be available under the version policy of model '{folder.name}'"
            log.error("failed to load model '%s': Invalid argument: %s", folder.name, reason)
            raise NoVersion("INVALID_ARG", f"load failed for model '{folder.name}': {reason}\n", reason=reason)
        return versions
