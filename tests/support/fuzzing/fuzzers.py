"""The fuzzers: which bytes each begins with, and what must hold of any bytes."""

from __future__ import annotations

import base64
import io
import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from alipes.backends.base import Draft
from alipes.backends.prepare import prepare_version
from alipes.config.load import parse_flags
from alipes.config.override import parse_override
from alipes.config.pbtxt import parse_pbtxt, to_pbtxt
from alipes.config.poll import poll_model
from alipes.config.render import config_json
from alipes.errors import AlipesError, ConfigError
from alipes.server.failures import LoadFailed
from alipes.server.override import OverrideFolders, read_override
from alipes.worker.apps.bodies import Bodies
from alipes.worker.apps.documents import Documents
from alipes.worker.apps.misfit import Misfit
from alipes.worker.apps.options import Options
from alipes.worker.apps.plan import plan_of
from numpy.typing import NDArray
from PIL import Image

from support.configurations import COMPLETE, backend_of
from support.fuzzing.stores import archives, check_archive, check_manifest, manifests

ROOT = Path(__file__).parents[3]
VECTORS = ROOT / "tests" / "vectors" / "fuzz"

# Longest text of an error beside what it quotes of the input, in characters.
LONGEST_TEXT = 2_000

WORDS = (
    "backend",
    "platform",
    "max_batch_size",
    "input",
    "output",
    "data_type",
    "TYPE_FP32",
    "TYPE_STRING",
    "dims",
    "instance_group",
    "KIND_CPU",
    "dynamic_batching",
    "sequence_batching",
    "ensemble_scheduling",
    "version_policy",
    "parameters",
    "string_value",
    "model_warmup",
    "control_input",
    "file:",
    "config",
    "rows",
    "values",
    "array",
    "count",
    "data",
    "multipart/form-data; boundary=b",
    "Content-Disposition: form-data; name=",
)


@dataclass(frozen=True)
class Fuzzer:
    """A reader of bytes from outside.

    Attributes:
        name: Names its vectors, its corpus and its line in the table of `make fuzz`.
        seeds: What inputs are made of at first.
        check: Raises where an input breaks a promise.
    """

    name: str
    seeds: Callable[[], Iterable[bytes]]
    check: Callable[[bytes], None]


def vectors(name: str) -> Sequence[bytes]:
    """The inputs at which a fuzzer failed once."""
    file = VECTORS / f"{name}.json"
    if not file.exists():
        return ()
    return [bytes.fromhex(vector["hex"]) for vector in json.loads(file.read_text(encoding="utf-8"))]


def configurations() -> Iterable[bytes]:
    """The configurations of the recorded models."""
    return [file.read_bytes() for file in sorted((ROOT / "tests" / "golden").rglob("config.pbtxt"))]


def overrides() -> Iterable[bytes]:
    """The same as load requests bring them; some of them are wrong on purpose."""
    for text in configurations():
        with suppress(ConfigError):
            yield config_json(parse_pbtxt(text.decode())).encode()


def loads() -> Iterable[bytes]:
    """Parameters of load requests."""
    encoded = base64.b64encode(b"model").decode()
    requests: list[dict[str, object]] = [
        {"config": '{"backend": "onnxruntime"}'},
        {"config": "{}", "file:1/model.onnx": encoded},
        {"config": "{}", "file:1/a/b/../c": encoded, "file:2/x": "", "file:/2/y": ""},
        {"file:1/model.py": encoded},
        {"config": 1},
    ]
    return [json.dumps(request).encode() for request in requests]


def check_pbtxt(data: bytes) -> None:
    """Any text is a configuration, which survives being written and is planned or refused, or is refused."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    try:
        config = parse_pbtxt(text)
    except ConfigError as error:
        return _check_text(error, data)
    _check_same(parse_pbtxt(to_pbtxt(config)), config)
    _check_plan(config, data)


def check_override(data: bytes) -> None:
    """The same for JSON."""
    text = data.decode(errors="replace")
    try:
        config = parse_override(text)
    except ConfigError as error:
        return _check_text(error, data)
    _check_same(parse_override(config_json(config)), config)
    _check_plan(config, data)


def check_load(data: bytes) -> None:
    """Whatever a load request brings lies in its folder, or is refused."""
    try:
        parameters = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(parameters, dict):
        return
    try:
        override = read_override("m", parameters)
    except LoadFailed as error:
        return _check_text(error, data)
    if override is None:
        return
    with tempfile.TemporaryDirectory() as home:
        _check_files(override.files, Path(home), data)


def app_bodies() -> Iterable[bytes]:
    """Bodies of calls of an app's function, each behind its content type and its query."""
    part = b'--b\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
    form = part % (b"data", b'; filename="a"', b"\x00\xff") + part % (b"count", b"", b"2") + b"--b--\r\n"
    document = b'{"rows": [{"name": "a", "values": [1, 2.5]}], "by": {"a b": [1]}, "array": [[1, 2]], "count": 1}'
    yield b"application/json\n\n" + document
    yield b"\n\n" + document
    yield b"multipart/form-data; boundary=b\n\n" + form
    yield b"application/x-www-form-urlencoded\n\n" + b"count=2&data=x&rows=%5B%5D"
    yield b"application/octet-stream\ncount=3\n\x00\x01"
    file = io.BytesIO()
    Image.new("L", (1, 1)).save(file, "PNG")
    yield b"image/png\n\n" + file.getvalue()


def check_app_body(data: bytes) -> None:
    """Any body becomes arguments of their kinds, or is refused with one error that says why."""
    kind, _, rest = data.partition(b"\n")
    query, _, body = rest.partition(b"\n")
    for reader in _app_readers():
        try:
            found = reader.read(body, kind.decode("latin-1"), query.decode("latin-1"))
        except Misfit as error:
            assert error.status in (400, 413, 415, 422)
            # A path may name a key of the document, and a message quote one.
            assert 0 < len(str(error)) <= LONGEST_TEXT + 12 * len(data), len(str(error))
            continue
        kinds = {"rows": list, "by": dict, "array": np.ndarray, "count": int, "data": bytes}
        assert all(value is None or isinstance(value, kinds.get(name, object)) for name, value in found.items())


@dataclass
class _Row:
    name: str
    values: list[float]


def _takes(
    rows: list[_Row] | None = None,
    by: dict[str, list[int]] | None = None,
    array: NDArray[np.int8] | None = None,
    count: int = 1,
    data: bytes = b"",
) -> None: ...


def _pictures(image: Image.Image, count: int = 1) -> None: ...


@cache
def _app_readers() -> tuple[Bodies, ...]:
    plans = [plan_of(function, Options(name="m")) for function in (_takes, _pictures)]
    return tuple(Bodies(plan, Documents(plan, "m")) for plan in plans)


def _check_files(files: Any, home: Path, data: bytes) -> None:
    before, tempfile.tempdir = tempfile.tempdir, str(home)
    folders = OverrideFolders()
    try:
        made = folders.make("m", files)
        written = {path for path in made.path.rglob("*") if path.is_file()}
        assert len(written) <= len(files)
        assert {path.read_bytes() for path in written} <= set(files.values())
        everything = {path for path in home.rglob("*") if path.is_file()}
        assert {path.name for path in everything - written} <= {".lock"}, "a file beside the folder"
    except LoadFailed as error:
        _check_text(error, data)
    finally:
        folders.close()
        tempfile.tempdir = before


def _check_text(error: AlipesError, data: bytes) -> None:
    # What is quoted may be escaped, six characters for one.
    assert 0 < len(str(error)) <= LONGEST_TEXT + 12 * len(data), len(str(error))


def _check_same(again: Any, config: Any) -> None:
    # As bytes, because NaN differs from itself.
    assert again.SerializeToString(deterministic=True) == config.SerializeToString(deterministic=True)


def _check_plan(config: Any, data: bytes) -> None:
    """A configuration of a model becomes what the data plane reads, or is refused with a reason."""
    config.name = "m"
    try:
        polled = poll_model(_model_folder(), "m", _options(), config)
        plan = prepare_version(Draft(polled, _model_folder(), 1, _options()), backend_of=backend_of)
    except AlipesError as error:
        return _check_text(error, data)
    json.dumps(plan.spec)


@cache
def _options() -> Any:
    return parse_flags(["models"], {})


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="alipes-fuzz-")


@cache
def _model_folder() -> Path:
    folder = Path(_folder().name) / "m"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.onnx").write_bytes(b"")
    return folder


FUZZERS = (
    Fuzzer("config-pbtxt", lambda: [*configurations(), COMPLETE.encode()], check_pbtxt),
    Fuzzer("config-json", overrides, check_override),
    Fuzzer("load-request", loads, check_load),
    Fuzzer("app-body", app_bodies, check_app_body),
    Fuzzer("store-archive", archives, check_archive),
    Fuzzer("store-manifest", manifests, check_manifest),
)
