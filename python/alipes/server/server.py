"""The running service: bind, load what the start asks for, accept, and later drain.

The order is the contract: a port in use is reported before any load, clients can connect only after the models are
settled, and a stop refuses new requests before it waits for those in flight.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from alipes import _core
from alipes.config.options import RepositoryOptions, ServerOptions
from alipes.config.store_schemes import is_fetched, stores_of
from alipes.config.unguarded import reached_by_anybody
from alipes.errors import RepositoryError, ServerStartError
from alipes.process_folder import sweep
from alipes.repository.model_list import ModelList
from alipes.repository.model_store import ModelStore
from alipes.repository.path_advice import refused_advice
from alipes.repository.repository import Need, NotAFolder, Repository
from alipes.repository.store.open import without_scheme
from alipes.repository.stores import opened_list, opened_stores
from alipes.server.boundary import server_config
from alipes.server.control import Control
from alipes.server.greeting import Greeting, address_of
from alipes.server.idle_watch import IdleWatch
from alipes.server.index import Index
from alipes.server.inherited_sockets import sockets_by_endpoint
from alipes.server.key_file import KeyFile
from alipes.server.lifecycle import Lifecycle
from alipes.server.loader import LoaderPool
from alipes.server.loads import LoadLimits
from alipes.server.log import log, log_table
from alipes.server.memory_shares import MemoryWatch
from alipes.server.payloads.sender import payload_sender
from alipes.server.planner import Planner
from alipes.server.published import EndpointModel, ServedModel
from alipes.server.pump import LogPump
from alipes.server.refresher import Refresher
from alipes.server.table import HEADINGS, model_documents, model_rows, print_table, text_table
from alipes.server.watcher import Watcher

ALL_MODELS = "*"

# The release whose texts are answered to the letter, for scripts that compare them.
RECORDED_RELEASE: Final = "2.51"

# What becomes of a repository that cannot be read at the start, by control mode.
_NEXT: Final = {
    "none": "start the server again once it can be read",
    "poll": "it is looked at again every few seconds",
    "explicit": "its models can be loaded once it can be read",
}


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the server answers, as ``host:port`` with the real ports; ``None`` for what is not offered."""

    http: str | None
    grpc: str | None
    metrics: str | None


class Companion(Protocol):
    """What goes along with a server from its start to its stop."""

    def begin(self, server: InProcessServer) -> None:
        """The models of the start are settled, and requests are about to be accepted."""

    def endpoints_changed(self, server: InProcessServer) -> None:
        """Other models have an endpoint, or the same ones another; called from any thread, after `begin`.

        After `report_models`, also where any other model has changed.
        """

    def end(self) -> None:
        """The server is about to stop: nothing is loaded any more."""


class InProcessServer:
    """The server of this process: its sockets, its models, and the threads that change them."""

    def __init__(
        self,
        options: ServerOptions,
        *,
        core: _core.Server | None = None,
        greets: bool = False,
        companion: Companion | None = None,
        when_idle: Callable[[], None] | None = None,
    ) -> None:
        """Checks the repositories and binds the sockets; nothing is loaded and no connection is accepted yet.

        Args:
            options: What to serve, and where.
            core: The data plane, if it is not to be made from ``options``.
            greets: Whether it says, once it is ready, what a person may want to know; `tritonserver` does not.
            companion: What goes along with it.
            when_idle: Called once no client has asked for anything for as long as the options say.

        Raises:
            RepositoryError: If no repository is there that could be served.
            ServerStartError: If one is absent and the options say to leave then, or an address is in use or not ours.
        """
        self._options = options
        self._greets = greets
        self._companion = companion
        self._has_docs = False
        repository = _open(options.repository)
        self._core = core if core is not None else _bind(options)
        self._index = Index(
            self._core.set_index,
            strict_readiness=options.repository.strict_readiness,
            advises=options.triton_release != RECORDED_RELEASE,
        )
        self._lifecycle = Lifecycle(
            self._core,
            repository,
            Planner(options),
            self._index,
            LoadLimits(options.repository.load_retries, options.repository.load_timeout_s),
        )
        self._pool = LoaderPool(options.repository.load_threads)
        self._watcher = self._make_watcher()
        explicit = options.repository.control_mode == "explicit"
        self._control = Control(self._core, self._lifecycle, self._pool, allowed=explicit)
        self._refresher = Refresher(self._lifecycle)
        keys = options.api_keys
        self._keys = KeyFile(keys, self._core.set_api_keys) if keys is not None and keys.file else None
        self._memory = MemoryWatch(options, self._core.limit_memory)
        self._pump = LogPump(self._core)
        self._payloads = payload_sender(self._core, options.payloads)
        ends_idle = when_idle is not None and options.idle_exit_s > 0
        self._idle = IdleWatch(self._core, options.idle_exit_s, when_idle) if ends_idle and when_idle else None
        self._settled = threading.Event()
        self._phase = (
            threading.Lock()
        )  # a stop happens before the server accepts connections or after, never in between
        self._started = False
        self._stopping = False

    def start(self) -> Addresses:
        """Loads the models of the start and then accepts requests.

        Raises:
            RepositoryError: If no store can be had.
            ServerStartError: If a model fails and the options say to leave then, or an address was taken meanwhile.
        """
        self._pump.start()
        sweep()
        try:
            self._lifecycle.fetch()
            failed = self._load_models()
        finally:
            self._settled.set()
        self._show_models()
        if failed and self._options.repository.exit_on_error:
            raise ServerStartError("creating server: Internal - failed to load all models")
        with self._phase:
            if self._stopping:
                raise ServerStartError("stopped before the models were loaded")
            self._index.open()
            if self._companion is not None:
                self._companion.begin(self)
                self._lifecycle.published.changed = partial(self._companion.endpoints_changed, self)
            addresses = self._accept()
            self._control.start()
            self._refresher.start()
            self._memory.start()
            if self._keys is not None:
                self._keys.start()
            if self._payloads is not None:
                self._payloads.start()
            if self._watcher is not None:
                self._watcher.start()
            if self._loads_named_models_alone():
                self._load_marked()
            self._started = True
        if self._idle is not None:
            self._idle.start()
        self._announce(addresses)
        return addresses

    def abandon_start(self) -> None:
        """Prevents a start that is still loading from accepting connections; one that accepts them already goes on."""
        with self._phase:
            self._stopping = True

    def reload(self) -> None:
        """Reads certificates and keys again, and opens trace files anew that were moved away; logs what fails."""
        self._core.reload()
        if self._keys is not None:
            self._keys.look()

    def load_soon(self, name: str) -> None:
        """Has a model loaded, or loaded again; what serves stays until the new one serves, and where that fails."""
        self._pool.submit(name, partial(self._lifecycle.try_load, name))

    def unload_soon(self, name: str) -> None:
        """Has a model taken out of service."""
        self._pool.submit(name, partial(self._lifecycle.unload, name), unloads=True)

    def endpoints(self) -> list[EndpointModel]:
        """The models that plain requests reach."""
        return self._lifecycle.published.endpoints()

    def models(self) -> list[ServedModel]:
        """The models that serve."""
        return self._lifecycle.published.models()

    def report_models(self) -> None:
        """Has the companion be told of all models that change."""
        self._lifecycle.published.reports_all = True

    def set_page(self, path: str, content_type: str, body: bytes) -> None:
        """Serves a page: `/openapi.json`, `/docs`, or one below it."""
        self._core.set_page(path, content_type, body)
        self._has_docs = self._has_docs or path == "/docs"

    def cut(self) -> None:
        """Answers every request that is not finished with an error; clients have a moment to read it."""
        self._core.cut()

    def stop(self, timeout_s: float) -> bool:
        """Lets clients go, refuses what comes later, finishes what came before, and closes.

        Returns:
            True if everything ended within ``timeout_s`` seconds.
        """
        deadline = time.monotonic() + timeout_s
        self.abandon_start()
        if self._companion is not None:
            self._companion.end()
        self._lifecycle.cancel()
        if self._watcher is not None:
            self._watcher.stop(_remaining(deadline))
        self._refresher.stop(0.0)  # a look that hangs must not hold the exit
        self._memory.stop(0.0)
        if self._keys is not None:
            self._keys.stop(0.0)
        done = self._settled.wait(_remaining(deadline))
        if self._idle is not None and self._idle.stop(_remaining(deadline)) and self._idle.is_over:
            # Requests on open connections are served, and each new connection waits for the next server.
            self._core.retire(_remaining(deadline))
        if self._started:
            log.info("Waiting for in-flight requests to complete.")
            self._index.close()
            done &= self._core.drain(_remaining(deadline))
        self._core.stop()
        if self._payloads is not None:
            done &= self._payloads.stop(_remaining(deadline))
        done &= self._control.stop(_remaining(deadline))
        done &= self._pool.stop(_remaining(deadline))
        done &= self._pump.stop(_remaining(deadline))
        self._lifecycle.close()
        return done

    @property
    def has_keys(self) -> bool:
        """Whether requests must show a key."""
        return self._options.api_keys is not None

    @property
    def abandoned(self) -> int:
        """The number of threads that loads have left alone, since nothing can end what they wait for."""
        return self._lifecycle.abandoned

    def _make_watcher(self) -> Watcher | None:
        repository = self._options.repository
        if repository.control_mode != "poll":
            return None
        return Watcher(self._lifecycle, self._pool, interval_s=repository.poll_interval_s)

    def _accept(self) -> Addresses:
        try:
            return Addresses(**json.loads(self._core.start()))
        except OSError as error:
            raise ServerStartError(str(error)) from error

    def _load_models(self) -> tuple[str, ...]:
        """Loads what the start asks for, ensembles last; returns the names that failed."""
        if self._watcher is not None:
            self._watcher.take_as_known()
        failed = self._load_side_by_side(self._names_at_start(), compose=False)
        failed += self._unreadable_at_start()
        for mistake in self._lifecycle.mistakes():
            log.error("%s", mistake)
        if self._options.repository.control_mode != "explicit":
            for advice in self._lifecycle.advice():
                log.warning("%s", advice)
        failed += self._load_side_by_side(self._lifecycle.put_off(), compose=True)
        return tuple(sorted(failed))

    def _load_side_by_side(self, names: tuple[str, ...], *, compose: bool) -> list[str]:
        """Loads several models at a time, with ensembles or leaving them for later; returns the names that failed."""
        failed: list[str] = []
        left = threading.Semaphore(0)

        def load(name: str) -> None:
            try:
                if not self._lifecycle.try_load(name, compose=compose):
                    failed.append(name)
            finally:
                left.release()

        for name in names:
            if not self._pool.submit(name, partial(load, name)):  # stopped meanwhile
                failed.append(name)
                left.release()
        for _ in names:
            left.acquire()
        return failed

    def _names_at_start(self) -> tuple[str, ...]:
        if self._loads_named_models_alone():
            return tuple(dict.fromkeys((*self._options.repository.load_models, *self._lifecycle.marked())))
        return self._lifecycle.names()

    def _loads_named_models_alone(self) -> bool:
        """Whether models are loaded that somebody names, and no others."""
        repository = self._options.repository
        return repository.control_mode == "explicit" and repository.load_models != (ALL_MODELS,)

    def _load_marked(self) -> None:
        """Loads what KServe's agent brought while the models of the start were loaded, and asked for in vain."""
        served = {one.name for one in self.models()}
        for name in self._lifecycle.marked():
            if name not in served:
                self.load_soon(name)

    def _unreadable_at_start(self) -> tuple[str, ...]:
        """The repositories that are to be served and cannot be read, after a word about each on what comes of that."""
        mode = self._options.repository.control_mode
        unreadable = self._lifecycle.unreadable
        options = self._options.repository
        named = (*options.paths, *options.stores, *options.files)
        others = ", and the others are served" if len(unreadable) < len(named) else ""
        for repository in unreadable:
            log.warning("model repository '%s' cannot be read%s; %s", repository, others, _NEXT[mode])
        return () if self._loads_named_models_alone() else unreadable

    def _show_models(self) -> None:
        entries = self._index.touched()
        if self._on_terminal():
            if self._options.log.info and (entries or not self._greets):
                print_table(entries)
        else:
            log_table(text_table(HEADINGS, model_rows(entries)), model_documents(entries))

    def _announce(self, addresses: Addresses) -> None:
        """Says where the server answers. On a terminal the block takes the place of the log's lines."""
        if not self._greets:
            _log_addresses(addresses)
            self._warn_of_strangers()
            return
        options = self._options
        greeting = Greeting(
            _core.version(),
            address_of(addresses.http, "https" if options.http.is_encrypted else "http"),
            address_of(addresses.grpc, "grpcs" if options.grpc.is_encrypted else "grpc"),
            address_of(addresses.metrics, "http"),
            self._index.touched(),
            loads_on_request=options.repository.control_mode == "explicit",
            has_docs=self._has_docs,
        )
        if self._on_terminal() and options.log.info:
            print(greeting.block(reached_by_anybody(options) or ""), file=sys.stderr, flush=True)
            return
        _log_addresses(addresses)
        log.info("%s", greeting.line())
        self._warn_of_strangers()

    def _warn_of_strangers(self) -> None:
        if (strangers := reached_by_anybody(self._options)) is not None:
            log.info("%s", strangers)

    def _on_terminal(self) -> bool:
        log = self._options.log
        return sys.stderr.isatty() and not log.file and log.format != "JSON"


def _open(options: RepositoryOptions) -> Repository:
    """The repositories. Where the server stays whatever fails, one that could become readable later may be absent."""
    need: Need = "all" if options.exit_on_error else "one" if options.control_mode == "none" else "none"
    try:
        paths = [path for path in options.paths if not is_fetched(path)]
        stores: list[ModelStore | ModelList] = [
            *opened_stores(stores_of(options.paths, options.stores), options.model_name),
            *opened_stores(options.files, ""),
        ]
        if options.model_list:
            stores.append(opened_list(options.model_list))
        return Repository(paths, namespacing=options.namespacing, need=need, stores=stores)
    except RepositoryError as error:
        if not options.exit_on_error:
            raise _advised(options, error) from error
        code = "Invalid argument" if isinstance(error, NotAFolder) else "Internal"
        raise ServerStartError(f"creating server: {code} - {error}") from error


def _advised(options: RepositoryOptions, error: RepositoryError) -> RepositoryError:
    """The error with what to do about it in front, where it is about a path of this machine."""
    named = map(without_scheme, (*options.paths, *options.stores, *options.files))
    folders = [path for path in named if "://" not in str(path)]
    for path in map(os.path.abspath, folders):
        if str(error).endswith(f" {path}"):
            return RepositoryError(f"{refused_advice(Path(path))} ({error})")
    return error


def _bind(options: ServerOptions) -> _core.Server:
    sockets = sockets_by_endpoint(options)
    try:
        return _core.Server(server_config(options), **{name: one.detach() for name, one in sockets.items()})
    except (OSError, ValueError) as error:  # a port in use, or a pattern that only the data plane can read
        raise ServerStartError(str(error)) from error


def _log_addresses(addresses: Addresses) -> None:
    for service, address in (
        ("GRPCInferenceService", addresses.grpc),
        ("HTTPService", addresses.http),
        ("Metrics Service", addresses.metrics),
    ):
        if address is not None:
            log.info("Started %s at %s", service, address)


def _remaining(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
