"""`alipes serve FILE` for a file of each framework: it has its own name, and the numbers of its library."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import Client
from support.framework_models import reason
from support.server import ServerProcess

X = np.arange(24, dtype=np.float64).reshape(12, 2)
Y = X @ [2.0, -1.0]
ROWS = X[:3].astype(np.float32)

Saved = tuple[str, np.ndarray[Any, Any]]
"""The name of a file, and what its model answers to `ROWS`."""


def skops(folder: Path) -> Saved:
    io = import_module("skops.io")
    model = import_module("sklearn.linear_model").LinearRegression().fit(X, Y)
    io.dump(model, folder / "line.skops")
    return "line.skops", model.predict(ROWS)


def joblib(folder: Path) -> Saved:
    model = import_module("sklearn.tree").DecisionTreeRegressor().fit(X, Y)
    import_module("joblib").dump(model, folder / "tree.joblib")
    return "tree.joblib", model.predict(ROWS)


def xgboost(folder: Path, name: str = "boosted.ubj") -> Saved:
    model = import_module("xgboost").XGBRegressor(n_estimators=3).fit(X, Y)
    model.save_model(folder / name)
    return name, model.predict(ROWS)


def xgboost_json(folder: Path) -> Saved:
    return xgboost(folder, "model-of-xgboost.json")


def lightgbm(folder: Path) -> Saved:
    library = import_module("lightgbm")
    model = library.LGBMRegressor(n_estimators=3, min_child_samples=1, verbose=-1).fit(X, Y)
    model.booster_.save_model(folder / "leaves.txt")
    return "leaves.txt", model.predict(ROWS)


def catboost(folder: Path) -> Saved:
    library = import_module("catboost")
    model = library.CatBoostRegressor(iterations=3, verbose=False, allow_writing_files=False).fit(X, Y)
    model.save_model(folder / "cats.cbm")
    return "cats.cbm", model.predict(ROWS)


def exported(folder: Path) -> Saved:
    torch = import_module("torch")
    network = torch.nn.Linear(2, 1).eval()
    rows = torch.export.Dim("rows", min=1, max=64)
    program = torch.export.export(network, (torch.ones(4, 2),), dynamic_shapes={"input": {0: rows}})
    torch.export.save(program, folder / "net.pt2")
    return "net.pt2", network(torch.from_numpy(ROWS)).detach().numpy()


def traced(folder: Path) -> Saved:
    torch = import_module("torch")
    network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1)).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch advises torch.export for new models
        torch.jit.save(torch.jit.trace(network, torch.zeros(4, 2)), folder / "net.pt")
    return "net.pt", network(torch.from_numpy(ROWS)).detach().numpy()


def scripted(folder: Path) -> Saved:
    torch = import_module("torch")
    network = torch.nn.Linear(2, 1).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(network), folder / "net.pt")
    return "net.pt", network(torch.from_numpy(ROWS)).detach().numpy()


def weights(folder: Path) -> Saved:
    torch = import_module("torch")
    network = torch.nn.Linear(2, 1).eval()
    torch.save(network.state_dict(), folder / "parts.pt")
    return "parts.pt", network(torch.from_numpy(ROWS)).detach().numpy()


def keras(folder: Path) -> Saved:
    library = import_module("keras")
    model = library.Sequential([library.Input((2,), name="x"), library.layers.Dense(1, "tanh", name="y")])
    model.save(folder / "dense.keras")
    return "dense.keras", model.predict(ROWS, verbose=0)


FILES = {
    skops: "sklearn",
    joblib: "sklearn",
    xgboost: "xgboost",
    xgboost_json: "xgboost",
    lightgbm: "lightgbm",
    catboost: "catboost",
    exported: "torch",
    traced: "torch",
    keras: "keras",
}


def marked(save: Callable[[Path], Saved], library: str) -> Any:
    marks = [pytest.mark.extra(library)]
    if library == "keras":
        marks.append(pytest.mark.slow("imports TensorFlow in three processes"))
    return pytest.param(save.__name__, library, marks=marks, id=save.__name__)


def saved(save: str, folder: Path) -> Saved:
    """The file that a function of this module writes, in a process of its own: some of these libraries wait for each
    other in one."""
    child = [sys.executable, __file__, save, str(folder)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(child, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1], np.load(folder / "expected.npy")


@pytest.mark.parametrize(("save", "library"), [marked(save, library) for save, library in FILES.items()])
def test_one_file_of_a_framework_is_served_with_its_numbers(
    save: str, library: str, tmp_path: Path, serve: Callable[..., ServerProcess]
) -> None:
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    name, expected = saved(save, tmp_path)
    server = serve(tmp_path / name)
    with Client(server.http) as client:
        signature = client.signature(Path(name).stem)
        [spec] = signature.inputs.values()
        rows = ROWS.astype(np.float64 if spec.datatype == "FP64" else np.float32)
        answer = next(iter(client.infer(signature.model, {spec.name: rows}).values()))
    assert np.allclose(answer.reshape(len(ROWS)), expected.reshape(len(ROWS)), rtol=1e-5)


@pytest.mark.extra("torch")
def test_a_script_without_shapes_says_how_to_save_it(tmp_path: Path, serve: Callable[..., ServerProcess]) -> None:
    if find_spec("torch") is None:
        pytest.skip("torch is not installed")
    name, _ = saved("scripted", tmp_path)
    server = serve(tmp_path / name)
    assert reason(server, "net").endswith(
        "cannot be loaded from 'net.pt': the file does not say which datatypes and shapes the model has; save it by "
        "torch.jit.trace, which records them, or copy it to models/net/1/model.pt, list input and output in "
        "models/net/config.pbtxt, each with name, data_type and dims, and serve the folder models: the arguments of "
        "its forward are input"
    )


@pytest.mark.extra("torch")
def test_weights_alone_say_where_to_put_their_module(tmp_path: Path, serve: Callable[..., ServerProcess]) -> None:
    if find_spec("torch") is None:
        pytest.skip("torch is not installed")
    name, _ = saved("weights", tmp_path)
    server = serve(tmp_path / name)
    assert (
        "cannot be loaded from 'parts.pt': it holds weights alone: copy it to models/parts/1/model.pt, put a model.py "
        "beside it, whose function make() gives the module that they belong to, and serve the folder models"
    ) in reason(server, "parts")


if __name__ == "__main__":
    called, expected = globals()[sys.argv[1]](Path(sys.argv[2]))
    np.save(Path(sys.argv[2], "expected.npy"), expected)
    print(called)
