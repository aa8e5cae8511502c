"""KServe's agent puts folders into a store and asks for them by load requests, in its own odd order."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import numpy as np
from alipes import Client
from support.models import times
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]


def ask(server: ServerProcess, model: str, verb: str) -> int:
    """The status of what the agent posts."""
    url = f"http://{server.http}/v2/repository/models/{model}/{verb}"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, b"{}")) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            assert json.load(error)["error"]
            return error.code


def download(store: Path, model: str, file: str, factor: float) -> None:
    """What the agent does before it asks: the files, and behind them its marker."""
    (store / model).mkdir(parents=True)
    (store / model / file).write_bytes(times(factor, 2).SerializeToString())
    (store / model / f"SUCCESS.{model.encode().hex()}").write_text("")


def test_models_come_and_go_as_the_agent_asks(serve: Serve, tmp_path: Path) -> None:
    """An empty store at first; a load before its files, twice; files gone before the unload; the same name again."""
    (store := tmp_path / "models").mkdir()
    server = serve(f"--model-store={store}", "--model-name=service", "--model-control-mode=explicit")
    ones = np.ones((1, 2), np.float32)
    with Client(server.http) as client:
        assert client.is_ready() and ask(server, "first", "load") != 200
        download(store, "first", "any.onnx", 2.0)
        download(store, "second", "model.onnx", 3.0)
        assert [ask(server, name, "load") for name in ("first", "first", "second")] == [200] * 3
        assert client.infer("first", {"X": ones})["Y"].tolist() == [[2, 2]]
        shutil.rmtree(store / "first")
        assert client.infer("first", {"X": ones})["Y"].tolist() == [[2, 2]]
        assert (ask(server, "first", "unload"), client.is_ready("first")) == (200, False)
        download(store, "first", "other.onnx", 5.0)
        assert ask(server, "first", "load") == 200
        assert client.infer("first", {"X": ones})["Y"].tolist() == [[5, 5]]
        assert client.infer("second", {"X": ones})["Y"].tolist() == [[3, 3]]
        (store / "broken").mkdir()
        (store / "broken" / "notes.csv").write_text("")
        assert ask(server, "broken", "load") != 200
    server.wait_for_output("holds notes.csv; expected a model's file")
