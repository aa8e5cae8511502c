"""Sentences in: the tokenizer beside its Python form, and the question matcher beside its network alone.

The models are those of `examples/questions`; the network alone is sent the tokens of the same sentence.
"""

import json
import shutil
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from bench.fleet import Fleet
from bench.load import wrk
from bench.models.python_models import SOURCES
from bench.paths import PROJECT, WORK
from bench.rows.load import RATE
from bench.rows.row import CPU_US, Better, Cell, Facts, Row, Sample, Target
from bench.servers.endpoint import Endpoint
from bench.work import WrongAnswer

QUESTIONS = PROJECT / "examples" / "questions"
EXAMPLE = QUESTIONS / "models"
TOKENIZER = EXAMPLE / "tokens" / "1" / "tokenizer.json"
SENTENCE = "is it possible to switch my mobile number?"
MEANT = "How do I change my phone number?"
CONNECTIONS = 64
#: Of the length of rows, as the native step is configured.
MULTIPLE = 16
WIDTH = 64

NATIVE = "alipes, tokenizer"
IN_PYTHON = "alipes, tokenizer in Python"
WHEEL = "tokenizers in Python"
WHOLE = "alipes, ensemble"
ALONE = "alipes, network alone"

HEADERS = {"Content-Type": "application/json"}
#: The step of the same name in Python, in the example's repository.
TOKENS_IN_PYTHON = "tokens_in_python"
PYTHON_CONFIG = f"""\
backend: "python"
max_batch_size: 64
input [ {{ name: "text" data_type: TYPE_STRING dims: [ 1 ] }} ]
output [
  {{ name: "input_ids" data_type: TYPE_INT64 dims: [ -1 ] }},
  {{ name: "attention_mask" data_type: TYPE_INT64 dims: [ -1 ] }}
]
instance_group [ {{ kind: KIND_CPU count: 1 }} ]
dynamic_batching {{ }}
parameters {{ key: "tokenizer" value {{ string_value: "{TOKENIZER}" }} }}
parameters {{ key: "pad_to_multiple_of" value {{ string_value: "{MULTIPLE}" }} }}
"""


@dataclass(frozen=True)
class Request:
    """A request in JSON to a model, and the file that holds it."""

    model: str
    document: dict[str, Any]
    #: What it brings, for the name of the file.
    brings: str = "sentence"

    @property
    def path(self) -> str:
        """Where it is posted."""
        return f"/v2/models/{self.model}/infer"

    def file(self) -> Path:
        """Writes it for the load tool."""
        path = WORK / "bodies" / f"{self.model}_{self.brings}.request"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.document), encoding="utf-8")
        return path

    def ask(self, endpoint: Endpoint) -> dict[str, Any]:
        """The outputs of one answer by name, as JSON has them; of one in binary the tensors without their data."""
        body = json.dumps(self.document).encode()
        asked = urllib.request.Request(f"http://127.0.0.1:{endpoint.http_port}{self.path}", body, HEADERS)
        with urllib.request.urlopen(asked, timeout=30) as answer:
            content = answer.read()
            length = int(answer.headers.get("Inference-Header-Content-Length", len(content)))
        return {output["name"]: output for output in json.loads(content[:length])["outputs"]}


def text_request(model: str) -> Request:
    """The sentence for a model with an input `text`."""
    return Request(model, {"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1, 1], "data": [SENTENCE]}]})


def sentences() -> list[str]:
    """The known questions, and what was written by hand to be matched with them: all of them different."""
    known = (EXAMPLE / "nearest" / "questions.txt").read_text(encoding="utf-8").splitlines()
    written = (QUESTIONS / "held_out.tsv").read_text(encoding="utf-8").splitlines()
    return known + [line.split("\t")[0] for line in written]


def texts_request(texts: Sequence[str]) -> Request:
    """Several texts for the tokenizer, as one batch."""
    text = {"name": "text", "datatype": "BYTES", "shape": [len(texts), 1], "data": list(texts)}
    return Request("tokens", {"inputs": [text]}, "sentences")


def network_request(tokens: dict[str, Any]) -> Request:
    """Tokens for the network, whose vectors come back in binary: a thousand numbers in JSON would cost more than it."""
    inputs = [
        {"name": name, "datatype": "INT64", "shape": output["shape"], "data": output["data"]}
        for name, output in tokens.items()
    ]
    return Request("encoder", {"inputs": inputs, "parameters": {"binary_data_output": True}})


@dataclass(frozen=True)
class TokensRow:
    """The step alone."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="tokens",
            title=f"Sentence in, tokens out, HTTP JSON, {CONNECTIONS} connections",
            unit=RATE,
            better=Better.MORE,
            targets=(Target(NATIVE, IN_PYTHON),),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """Both forms, on one server; the native one alone where the package `tokenizers` is not installed."""
        has_package = find_spec("tokenizers") is not None
        endpoint = _endpoint(fleet, in_python=has_package)
        requests = {NATIVE: text_request("tokens")}
        if has_package:
            requests[IN_PYTHON] = text_request(TOKENS_IN_PYTHON)
        else:
            fleet.skipped["tokenizers"] = "the package is not installed: pip install 'alipes[examples]'"
        found = [
            {name: output["data"] for name, output in request.ask(endpoint).items()} for request in requests.values()
        ]
        if any(tokens != found[0] for tokens in found) or len(found[0]["input_ids"]) != MULTIPLE:
            raise WrongAnswer(f"the tokens differ: {found}")
        return [_cell(label, endpoint, request) for label, request in requests.items()]


@dataclass(frozen=True)
class StepRow:
    """Sentences to tokens: by the step, with all that its server does for a request, and by the wheel in a loop.

    Their CPU is compared, for the reason that `pictures_decode` gives.
    """

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="tokens_step",
            title="A sentence to tokens, the step alone",
            unit="texts for each second of CPU",
            better=Better.MORE,
            targets=(Target(NATIVE, WHEEL, 5),),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """The step, and the wheel where it is installed."""
        endpoint, texts = _endpoint(fleet), sentences()
        request = texts_request(texts)
        step = Cell(NATIVE, partial(_texts, endpoint, request, len(texts)))
        if find_spec("tokenizers") is None:
            fleet.skipped["tokenizers"] = "the package is not installed: pip install 'alipes[examples]'"
            return [step]
        wheel = Wheel()
        check_tokens(request.ask(endpoint), [wheel.tokens(text) for text in texts])
        return [step, Cell(WHEEL, partial(wheel.loop, texts))]


class Wheel:
    """The package `tokenizers`, as a `model.py` uses it for one text."""

    def __init__(self) -> None:
        """Reads the tokenizer, and pads as the step does."""
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(TOKENIZER))
        self._tokenizer.enable_padding(pad_to_multiple_of=MULTIPLE)

    def tokens(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of tokens, and 1 where there is one: INT64 `[1, tokens]` each."""
        row = self._tokenizer.encode(text)
        return np.array([row.ids]), np.array([row.attention_mask])

    def loop(self, texts: Sequence[str], seconds: float) -> Sample:
        """One text after the other."""
        count, begin_s, end = 0, time.process_time(), time.perf_counter() + seconds
        while time.perf_counter() < end:
            for text in texts:
                self.tokens(text)
            count += len(texts)
        return Sample(count / (time.process_time() - begin_s), {"texts": count})


def check_tokens(answer: dict[str, Any], expected: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
    """Compares the rows of a batch with those of single texts, which may be filled up less.

    Raises:
        WrongAnswer: If a text has other tokens.
    """
    ids, mask = (np.array(answer[name]["data"]).reshape(len(expected), -1) for name in ("input_ids", "attention_mask"))
    for row, (own_ids, own_mask) in enumerate(expected):
        found, wanted = ids[row][mask[row] == 1], own_ids[own_mask == 1]
        if not np.array_equal(found, wanted):
            raise WrongAnswer(f"text {row} has the tokens {found}, expected {wanted}")


@dataclass(frozen=True)
class SentencesRow:
    """The ensemble from sentence to scores."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="sentences",
            title=f"Sentence in, nearest questions out, {CONNECTIONS} connections",
            unit=RATE,
            better=Better.MORE,
            targets=(Target(WHOLE, ALONE, 0.9),),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """The whole and its network, on one server."""
        endpoint = _endpoint(fleet)
        whole = text_request("matcher")
        nearest = whole.ask(endpoint)["questions"]["data"]
        if nearest[0] != MEANT:
            raise WrongAnswer(f"{SENTENCE!r} is taken for {nearest}, expected {MEANT!r} first")
        alone = network_request(text_request("tokens").ask(endpoint))
        shape = alone.ask(endpoint)["vectors"]["shape"]
        if shape != [1, MULTIPLE, WIDTH]:
            raise WrongAnswer(f"the network answers in the shape {shape}, expected {[1, MULTIPLE, WIDTH]}")
        return [_cell(WHOLE, endpoint, whole), _cell(ALONE, endpoint, alone)]


def sentence_rows() -> list[Row]:
    """The rows, in the order of the table."""
    return [TokensRow(), StepRow(), SentencesRow()]


def _cell(label: str, endpoint: Endpoint, request: Request) -> Cell:
    return Cell(label, partial(_measure, endpoint, request, request.file()))


def _measure(endpoint: Endpoint, request: Request, body: Path, seconds: float) -> Sample:
    before_s = endpoint.process.cpu_seconds()
    measurement = wrk.post_file(endpoint.http_port, request.path, body, HEADERS, CONNECTIONS, seconds)
    cpu_us = (endpoint.process.cpu_seconds() - before_s) / measurement.requests * 1e6
    return Sample(measurement.rate, {**measurement.as_json(), CPU_US: cpu_us})


def _texts(endpoint: Endpoint, request: Request, count: int, seconds: float) -> Sample:
    sample = _measure(endpoint, request, request.file(), seconds)
    # The rate and its CPU are of requests, each with all of the texts.
    cpu_us = float(str(sample.detail[CPU_US]))
    return Sample(count / cpu_us * 1e6, {**sample.detail, "texts_in_a_request": count})


def _endpoint(fleet: Fleet, *, in_python: bool = False) -> Endpoint:
    """The example's models, with the tokenizer in Python beside them or without."""
    if not in_python:
        return fleet.alipes_on("questions", EXAMPLE)
    folder = WORK / "tokens"
    version = folder / TOKENS_IN_PYTHON / "1"
    version.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(SOURCES / "tokens.py", version / "model.py")
    (version.parent / "config.pbtxt").write_text(PYTHON_CONFIG, encoding="utf-8")
    link = folder / "tokens"
    if not link.exists():
        link.symlink_to(EXAMPLE / "tokens", target_is_directory=True)
    return fleet.alipes_on("tokens", folder)
