"""Puts apps into the options of a server: a repository is made for them, which goes with the process."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from alipes.apps.description import Description, Inquiry
from alipes.apps.process import AppProcess
from alipes.apps.target import Target, is_app, target_of
from alipes.config.options import PredictorOptions, RepositoryOptions, ServerOptions
from alipes.errors import ConfigError
from alipes.process_folder import ProcessFolder
from alipes.repository.app_folder import app_config, waiting_key, write_model

__all__ = ["Apps", "apps_of", "check_names", "new_process"]


def apps_of(options: ServerOptions, ahead: AppProcess | None = None) -> Apps | None:
    """The apps among the repositories of a server; None where there are none.

    Args:
        options: Those of the server.
        ahead: A process for the first app, if one has been started already.

    Raises:
        ConfigError: If a file that is named is not there, or no process can be started.
    """
    words = [path for path in options.repository.paths if is_app(path)]
    return Apps(options, _targets(words, options.repository), ahead) if words else None


def _targets(words: Sequence[str], repository: RepositoryOptions) -> list[Target]:
    """The apps that words name. The name of the model is that of a store, where there is one."""
    name = repository.model_name if not repository.stores else ""
    if name and len(words) > 1:
        raise ConfigError(
            f"leave out --model-name, or name one app: it cannot name the models of {len(words)} apps", key="model-name"
        )
    return [replace(target_of(word), served_as=name) for word in words]


class Apps:
    """The apps of one server, from their description to the end of the server."""

    def __init__(self, options: ServerOptions, targets: Sequence[Target], ahead: AppProcess | None = None) -> None:
        """Asks the apps what they have, each in a process of its own.

        Args:
            options: Those of the server.
            targets: The apps.
            ahead: A process for the first of them, if one has been started already.

        Raises:
            ConfigError: If no process can be started.
        """
        self.targets = tuple(targets)
        self.descriptions: dict[Target, Description] = {}
        self._options = options
        self._secret = os.urandom(16).hex()
        self._folder: ProcessFolder | None = None
        self._processes: dict[Target, AppProcess] = {}
        self._inquiries: list[Inquiry] = []
        try:
            for target in targets:
                process, ahead = ahead or new_process(), None
                self._processes[target] = process
                self._inquiries.append(Inquiry(target, process))
        except BaseException:
            self._close_processes()
            raise

    def __enter__(self) -> Self:
        """The apps themselves."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Removes the repository, and ends what describes an app or has described it and is no worker."""
        self._close_processes()
        if self._folder is not None:
            self._folder.close()

    @property
    def repository(self) -> Path:
        """The folder of the models; made when the apps are known."""
        assert self._folder is not None, "options() makes it"
        return self._folder.path

    def options(self) -> ServerOptions:
        """The server's options with the repository in place of the apps.

        Raises:
            ConfigError: If an app cannot be imported or served, or two models have one name.
        """
        for inquiry in self._inquiries:
            self.descriptions[inquiry.target] = inquiry.result()
        check_names(self.descriptions.values())
        try:
            self._folder = ProcessFolder("repository")
        except OSError as error:
            raise ConfigError(f"the folder for the app's models cannot be made: {error}") from error
        for target, process in self._processes.items():
            self.write(self.descriptions[target], process)
        names = [model["name"] for one in self.descriptions.values() for model in one.models]
        before = self._options.repository
        folders = [path for path in before.paths if not is_app(path)]
        load_models = before.load_models
        if before.control_mode == "explicit" and load_models != ("*",):
            load_models = (*load_models, *names)
        repository = replace(before, paths=(str(self.repository), *folders), load_models=load_models)
        return replace(self._options, repository=repository)

    def write(self, description: Description, process: AppProcess) -> None:
        """Writes the models of an app as its source is now.

        Args:
            description: What it has.
            process: The one that has said so, and may go on as the first worker.
        """
        target = description.target
        before = self._processes[target]
        if before is not process:
            before.close()
            self._processes[target] = process
        app: dict[str, Any] = {"file": target.file} if target.file else {"module": target.module, "root": target.root}
        app |= {"state": _state(description.files), "secret": self._secret}
        if target.served_as:
            app["served_as"] = target.served_as
        if flags := _predictor(self._options.predictor, target.served_as):
            app["predictor"] = flags
        process.offer(waiting_key(app))
        for model in description.models:
            write_model(self.repository, app_config(model), {**app, "concurrency": model["concurrency"]})

    def _close_processes(self) -> None:
        for process in self._processes.values():
            process.close()


def new_process() -> AppProcess:
    """A process for an app.

    Raises:
        ConfigError: If it cannot be started.
    """
    try:
        return AppProcess()
    except OSError as error:
        raise ConfigError(f"cannot run {sys.executable}: {error.strerror}") from error


def check_names(descriptions: Iterable[Description]) -> None:
    """Makes sure that no name stands in two apps.

    Raises:
        ConfigError: If one does.
    """
    seen: dict[str, str] = {}
    for description in descriptions:
        for model in description.models:
            other = seen.setdefault(model["name"], description.target.text)
            if other != description.target.text:
                raise ConfigError(
                    f"two models are called '{model['name']}', in {other} and in {description.target.text}: "
                    'give one another name, as in @alipes.model(name="other")',
                    key="model-repository",
                )


def _predictor(options: PredictorOptions, served_as: str) -> dict[str, Any]:
    """What the workers of an app know of the predictor behind it, as far as flags say anything."""
    found = {name: value for name, value in asdict(options).items() if value != getattr(PredictorOptions(), name)}
    return found | ({"model": served_as} if served_as else {})


def _state(files: Sequence[str]) -> str:
    """What tells one state of the source from another, so that a changed source is loaded again."""
    digest = hashlib.sha256()
    for file in files:
        try:
            digest.update(Path(file).read_bytes())
        except OSError:
            digest.update(b"gone")
    return digest.hexdigest()[:16]
