"""Hundreds of models that come into a running server: by KServe's list, and by the load requests of KServe's agent."""

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.fleet import Fleet
from bench.models.repository import repository
from bench.paths import WORK
from bench.rows.row import Better, Cell, Facts, Sample, Target
from bench.servers import alipes, probe
from bench.servers.endpoint import Endpoint
from bench.work import JSON, work

SMALL = "mlp"
MODELS = 500
LISTED = "by models.json"
CALLED = "by load requests, one by one"
SHARE = 0.2
#: How often the index is read; a reading takes some of the server's time.
POLL_S = 0.02
#: Far more than any contender takes.
LONGEST_S = 120.0
#: A few answers say as much as all of them, of models whose file is one file.
CHECKED = 10


@dataclass
class ListedRow:
    """Seconds until all of them are ready."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="listed_models",
            title=f"{MODELS} small models come into a running server, all ready",
            unit="s",
            better=Better.LESS,
            targets=(Target(LISTED, CALLED, SHARE),),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """The same files twice, each time in a server of their own."""
        return [Cell(LISTED, lambda seconds: _listed()), Cell(CALLED, lambda seconds: _called())]


def _listed() -> Sample:
    """From the moment at which the list names them."""
    stores, file = _stores(), WORK / "listed.json"
    file.write_text("[]")
    flags = (f"--model-list={file}", "--model-control-mode=poll")
    names = [store.name for store in stores]
    entries = [{"modelName": store.name, "modelSpec": {"storageUri": store.as_uri()}} for store in stores]
    draft = file.with_suffix(".new")
    draft.write_text(json.dumps(entries))
    return _measured(flags, names, lambda endpoint: draft.replace(file))


def _called() -> Sample:
    """As the agent does: a folder appears, and a request names it; the next follows once it is answered."""
    prepared, store = _stores(), WORK / "called_store"
    shutil.rmtree(store, ignore_errors=True)
    store.mkdir()

    def bring(endpoint: Endpoint) -> None:
        for folder in prepared:
            folder.rename(store / folder.name)
            probe.post(endpoint.http_port, f"/v2/repository/models/{folder.name}/load", b"{}", {})

    flags = (f"--model-store={store}", "--model-name=bench", "--model-control-mode=explicit")
    return _measured(flags, [folder.name for folder in prepared], bring)


def _stores() -> list[Path]:
    """A folder for each model with its file, which is one file."""
    root = WORK / "listed_stores"
    shutil.rmtree(root, ignore_errors=True)
    found = []
    for number in range(MODELS):
        folder = root / f"{SMALL}-{number:03}"
        folder.mkdir(parents=True)
        os.link(repository(SMALL) / SMALL / "1" / "model.onnx", folder / "model.onnx")
        found.append(folder)
    return found


def _measured(flags: Sequence[str], names: Sequence[str], bring: Callable[[Endpoint], object]) -> Sample:
    endpoint = alipes.start(None, "alipes_listed", flags)
    with endpoint.process:
        begin = time.perf_counter()
        bring(endpoint)
        _wait_until_ready(endpoint, begin)
        elapsed_s = time.perf_counter() - begin
        for name in names[:: len(names) // CHECKED]:
            probe.check(endpoint.http_port, work(SMALL, JSON), f"/v2/models/{name}/infer")
    return Sample(elapsed_s, {"models": len(names), "ms_a_model": elapsed_s / len(names) * 1e3})


def _wait_until_ready(endpoint: Endpoint, begin: float) -> None:
    while True:
        index = json.loads(probe.post(endpoint.http_port, "/v2/repository/index", b"{}", {}))
        if sum(entry.get("state") == "READY" for entry in index) == MODELS:
            return
        if time.perf_counter() - begin > LONGEST_S:
            raise TimeoutError(f"{len(index)} models are known, and not all are ready: {index[:3]}")
        time.sleep(POLL_S)
