"""What cannot be exported as a Python function: each kind is named in one line, with what to do instead."""

from __future__ import annotations

import functools
import math
import textwrap
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import repository as qv
from alipes.errors import ConfigError, ExportError, NoExporter

COUNT = 0
SEEN: dict[str, int] = {}
WEIGHTS = np.ones(2, np.float32)
BIAS = np.ones(2, np.float32)
OPENED = object()
MODEL_PY = r"write a model\.py \(alipes help python\) and export its path"


class Scaler:
    """A class whose instances can be called."""

    factor = 2.0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return x * self.factor

    def scale(self, x: np.ndarray) -> np.ndarray:
        return x * self.factor


SCALER = Scaler()


class Mute:
    """Nothing of it answers."""


def scaled_by(x: np.ndarray) -> np.ndarray:
    return SCALER(x)


def counted(x: np.ndarray) -> np.ndarray:
    global COUNT  # noqa: PLW0603 - what the test is about
    COUNT += 1
    return x


def remembers(x: np.ndarray) -> np.ndarray:
    SEEN["calls"] = len(x)
    return x


def learns(x: np.ndarray) -> np.ndarray:
    BIAS[:1] += 1.0
    return x


def shifted(x: np.ndarray) -> np.ndarray:
    y = x.copy()
    y[:, 0] += WEIGHTS[0]
    return y


async def awaited(x: np.ndarray) -> np.ndarray:
    return x


def generated(x: np.ndarray) -> Iterator[np.ndarray]:
    yield x


async def streamed(x: np.ndarray) -> AsyncIterator[np.ndarray]:
    yield x


@functools.lru_cache
def cached(x: np.ndarray) -> np.ndarray:
    return x


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(x: np.ndarray) -> Any:
        return function(x)

    return wrapper


@decorated
def wrapped(x: np.ndarray) -> np.ndarray:
    return x


def around(factor: float) -> Callable[[np.ndarray], np.ndarray]:
    def inner(x: np.ndarray) -> np.ndarray:
        return x * factor

    return inner


def opens(x: np.ndarray) -> np.ndarray:
    return x if OPENED else -x


def forgetful(x: np.ndarray) -> None:
    x * 2


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (Scaler, "the annotations of 'Scaler' say its inputs and outputs; leave out input_shapes="),
        (Mute, rf"class 'Mute' needs a method predict or __call__ that answers, or {MODEL_PY}"),
        (SCALER, rf"it is an instance of Scaler, whose state is not written: {MODEL_PY}"),
        (SCALER.scale, rf"'scale' is a method, whose Scaler has a state that is not written: {MODEL_PY}"),
        (Scaler.scale, rf"'scale' is a method of the class Scaler: export the class, or {MODEL_PY}"),
        (awaited, "the annotations of 'awaited' say its inputs and outputs; leave out input_shapes="),
        (generated, "the annotations of 'generated' say its inputs and outputs; leave out input_shapes="),
        (streamed, "the annotations of 'streamed' say its inputs and outputs; leave out input_shapes="),
        (around(2.0), rf"'inner' uses factor of the function around it \(a closure\): .*{MODEL_PY}"),
        (wrapped, "uses function of the function around it"),
        (cached, rf"'cached' is decorated: export the function without its decorator, or {MODEL_PY}"),
        (lambda x: x, "no plain function: neither lambdas"),
        (opens, rf"'opens' uses 'OPENED', a object: only modules, .*{MODEL_PY}"),
        (scaled_by, rf"'scaled_by' uses 'SCALER', a Scaler: only modules, .*{MODEL_PY}"),
        (
            functools.partial(opens, x=1),
            "a partial call has arguments of its own: write a function that makes the call",
        ),
        (np.sqrt, "'sqrt' is not written in Python: write a function that calls it"),
        (3, rf"cannot export a builtins\.int as PYTHON for model 'm': export a function of arrays, or {MODEL_PY}"),
        (math.sqrt, "'sqrt' is not written in Python: write a function that calls it"),
        ("model.txt", r"'model\.txt' is neither the path of a file that ends in \.py"),
        (forgetful, "'forgetful' returns None where an array is expected"),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__) if not isinstance(value, str) else "",
)
def test_what_is_no_plain_function_is_named_with_a_way_out(tmp_path: Path, source: Any, message: str) -> None:
    repo = qv.ModelRepository(tmp_path / "models")
    model = repo.add("m", "python")
    with pytest.raises(ExportError, match=message) as caught:
        model.export_version(source, input_shapes={"x": (None, 1)})
    assert "\n" not in str(caught.value)
    assert len(textwrap.wrap(str(caught.value), 80)) <= 4
    assert (model.versions, model.inputs, list((tmp_path / "models").iterdir())) == ([], {}, [])


def test_a_function_may_change_arrays_of_its_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = qv.ModelRepository(tmp_path).add("m", "python")
    assert model.export_version(shifted, input_shapes={"x": (None, 2)}) is not None
    assert caplog.text == ""


def test_a_class_without_a_file_is_named(tmp_path: Path) -> None:
    space: dict[str, Any] = {"__name__": "typed"}
    exec("class Typed:\n    def predict(self, x: int) -> int:\n        return x\n", space)
    model = qv.ModelRepository(tmp_path / "models").add("m", "python")
    with pytest.raises(ExportError, match="the source of 'Typed' cannot be found: write it to a file"):
        model.export_version(space["Typed"])


@pytest.mark.parametrize(("source", "name"), [(counted, "COUNT"), (remembers, "SEEN"), (learns, "BIAS")])
def test_what_a_function_changes_of_its_module_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, source: Callable[..., Any], name: str
) -> None:
    model = qv.ModelRepository(tmp_path / "models").add("m", "python")
    model.export_version(source, input_shapes={"x": (None, 2)})
    changed = (
        f"model 'm': '{source.__name__}' changes '{name}' of its module, of which each instance has one of its own"
    )
    assert changed in caplog.text


@pytest.mark.parametrize("shapes", [None, {"x": (None, 2)}])
@pytest.mark.parametrize(
    ("datatype", "message"),
    [
        ("int64", "input 'x' of model 'm' was declared as FP32, the export gives INT64"),
        ("flaot32", "unknown datatype 'flaot32'"),
    ],
)
def test_a_further_version_is_held_to_the_datatypes_of_the_first(
    tmp_path: Path, shapes: Any, datatype: str, message: str
) -> None:
    model = qv.ModelRepository(tmp_path).add("m", "python")
    model.export_version(shifted, input_shapes={"x": (None, 2)})
    for datatypes in ({"x": datatype}, [datatype]):
        with pytest.raises((ConfigError, ExportError), match=message):
            model.export_version(shifted, input_shapes=shapes, input_dtypes=datatypes)
    assert model.versions == [1]


@pytest.mark.parametrize("rows", ["x", 1.5, True])
def test_a_number_of_rows_that_is_none_is_named(tmp_path: Path, rows: Any) -> None:
    repo = qv.ModelRepository(tmp_path)
    text = f"'max_batch_size' of model 'm' cannot be {rows!r}: expected a whole number of rows"
    with pytest.raises(ConfigError, match=text):
        repo.add("m", "python").export_version(shifted, input_shapes={"x": (None, 2)}, max_batch_size=rows)


def test_a_broken_onnx_file_is_named_where_the_user_has_it(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"rubbish")
    with pytest.raises(ExportError, match="ONNX Runtime cannot load the file") as caught:
        qv.ModelRepository(tmp_path / "models").add("m", "onnx").export_version(broken)
    assert str(broken) in str(caught.value)
    assert ".exporting-" not in str(caught.value)


def test_another_platform_that_fits_is_named_alone(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").touch()
    with pytest.raises(NoExporter, match=r"as PYTHON for model 'm'; it can be exported as ONNX, TENSORRT$"):
        qv.ModelRepository(tmp_path).add("m", "python").export_version(tmp_path / "m.onnx")
