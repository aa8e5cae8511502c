"""Bare models of every framework, as their authors save them, are served from one store by their folders' names."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from alipes import Client
from support.bare_frameworks import WRITERS, write_installed
from support.forests import ROWS
from support.server import ServerProcess

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.proof, pytest.mark.timeout(900)]

BEFORE = ("README.md", "SUCCESS.0a1b")


@pytest.fixture(scope="module")
def client(
    tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]
) -> Iterator[tuple[Client, list[str]]]:
    store = tmp_path_factory.mktemp("store")
    names = write_installed(store)
    for name in (one for folder in names for one in (f"{folder}/{BEFORE[0]}", f"{folder}/{BEFORE[1]}")):
        (store / name).write_text("")
    before = sorted(str(path) for path in store.rglob("*"))
    # Files of scikit-learn that are pickles are read where the operator allows it by name.
    server = serve_module(f"--model-store={store}", "--allow-pickles=sklearn", "--exit-on-error=false")
    with Client(server.http, timeout=300) as found:
        yield found, names
    assert sorted(str(path) for path in store.rglob("*")) == before  # nothing was written beside the models


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.extra(row[0])) for name, row in WRITERS.items()])
def test_a_bare_model_of_a_framework_answers(client: tuple[Client, list[str]], name: str) -> None:
    asked, installed = client
    if name not in installed:
        pytest.skip(f"{WRITERS[name][1]} is not installed")
    assert asked.is_ready(name), asked.models()
    config = asked.config(name)
    kind = np.float64 if config["input"][0]["data_type"] == "TYPE_FP64" else np.float32
    answer = asked.infer(name, {config["input"][0]["name"]: ROWS[:3].astype(kind)})
    assert all(len(np.asarray(output)) == 3 for output in (answer[one["name"]] for one in config["output"]))
