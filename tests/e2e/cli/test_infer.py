"""`alipes infer` and `alipes ask` against a real server: what is typed, what is printed, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.command import Done, alipes, alipes_process, check_readable
from support.models import add_model, times
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

# WORD, times N, and how long that is.
_REPEAT = """
import numpy
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        word, number = (pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("WORD", "N"))
        text = word[0] * int(number[0])
        if not text:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("nothing was asked for"))
        tensors = [
            pb_utils.Tensor("TEXT", numpy.array([text], object)),
            pb_utils.Tensor("LENGTH", numpy.array([len(text)], numpy.int64)),
        ]
        return pb_utils.InferenceResponse(tensors)
"""
# Counts down from N, a response for each number.
_COUNT = """
import numpy
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for number in range(int(pb_utils.get_input_tensor_by_name(request, "N").as_numpy()[0]), 0, -1):
                tensor = pb_utils.Tensor("LEFT", numpy.array([number], numpy.int64))
                sender.send(pb_utils.InferenceResponse([tensor]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
_COUNT_CONFIG = """
backend: "python"
model_transaction_policy { decoupled: true }
input [ { name: "N" data_type: TYPE_INT64 dims: [ 1 ] } ]
output [ { name: "LEFT" data_type: TYPE_INT64 dims: [ 1 ] } ]
"""
_REPEAT_CONFIG = """
backend: "python"
input [
  { name: "WORD" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "N" data_type: TYPE_INT64 dims: [ 1 ] }
]
output [
  { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "LENGTH" data_type: TYPE_INT64 dims: [ 1 ] }
]
"""


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double", times(2.0))
    add_model(repository, "wide", times(1.0, columns="any"))
    for name, program, config in (("repeat", _REPEAT, _REPEAT_CONFIG), ("count", _COUNT, _COUNT_CONFIG)):
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "1" / "model.py").write_text(program)
        (repository / name / "config.pbtxt").write_text(config)
    return serve_module(repository)


@pytest.fixture
def infer(server: ServerProcess, tmp_path: Path) -> Callable[..., Done]:
    def run(model: str, *words: str, text: str | bytes = "", verb: str = "infer") -> Done:
        return alipes(verb, "--url", server.http, model, *words, text=text, folder=tmp_path)

    return run


@pytest.fixture
def ask(infer: Callable[..., Done]) -> Callable[..., Done]:
    def run(function: str, *words: str, text: str | bytes = "") -> Done:
        return infer(function, *words, text=text, verb="ask")

    return run


def outputs(done: Done) -> dict[str, object]:
    """What `--json` printed."""
    assert done.code == 0, done.err
    document: dict[str, object] = json.loads(done.out)["outputs"]
    return document


def test_numbers_in_a_row_are_the_only_input(infer: Callable[..., Done]) -> None:
    done = infer("double", "1.5", "-2")
    assert (done.code, done.rows) == (
        0,
        [["output", "datatype", "shape", "value"], ["Y", "FP32", "[1,2]", "[[", "3.", "-4.]]"]],
    )
    assert done.err == "note: input 'X' was given as [2] and is sent as [1,2]\n"


@pytest.mark.parametrize("word", ["[[1, 2], [3, 4]]", "X=[[1, 2], [3, 4]]", '{"X": [[1, 2], [3, 4]]}'])
def test_json_arrays_are_sent_as_they_are(word: str, infer: Callable[..., Done]) -> None:
    done = infer("double", word, "--json")
    assert (outputs(done), done.err) == ({"Y": [[2.0, 4.0], [6.0, 8.0]]}, "")


def test_an_array_of_numpy_is_read_from_a_file(infer: Callable[..., Done], tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.array([[0.1, 0.2]]))
    done = infer("double", "@rows.npy", "--json")
    assert outputs(done) == {"Y": [[0.2, 0.4]]}
    assert done.err == "note: input 'X' was given as float64 and is sent as FP32\n"


def test_standard_input_may_be_json_or_an_array_of_numpy(infer: Callable[..., Done], tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.array([[1, 2]], np.float32))
    content = (tmp_path / "rows.npy").read_bytes()
    assert [outputs(infer("double", "-", "--json", text=text)) for text in ("[[1, 2]]", content)] == [
        {"Y": [[2.0, 4.0]]}
    ] * 2


def test_a_body_of_the_v2_protocol_is_sent_as_it_stands(infer: Callable[..., Done], tmp_path: Path) -> None:
    tensors = [
        {"name": "WORD", "datatype": "BYTES", "shape": [1], "data": ["ab"]},
        {"name": "N", "datatype": "INT64", "shape": [1], "data": [2]},
    ]
    body = {"id": "seven", "inputs": tensors, "outputs": [{"name": "LENGTH"}]}
    (tmp_path / "body.json").write_text(json.dumps(body))
    for done in (infer("repeat", "@body.json", "--json"), infer("repeat", "-", "--json", text=json.dumps(body))):
        assert json.loads(done.out) == {"model": "repeat", "version": "1", "id": "seven", "outputs": {"LENGTH": [4]}}


def test_text_is_sent_as_it_is_typed(infer: Callable[..., Done]) -> None:
    done = infer("repeat", "WORD=it's 1=1 ", "N=1", "--json")
    assert outputs(done) == {"TEXT": ["it's 1=1 "], "LENGTH": [9]}


def test_bytes_that_are_no_text_stay_what_they_are(infer: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "word").write_bytes(b"\xff\n")
    assert outputs(infer("repeat", "WORD=a\udcff", "N=1", "--output=LENGTH", "--json")) == {"LENGTH": [2]}
    assert outputs(infer("repeat", "WORD=@word", "N=1", "--json")) == {"TEXT": ["\\xff\n"], "LENGTH": [2]}


def test_one_output_can_be_requested_alone(infer: Callable[..., Done]) -> None:
    done = infer("repeat", "WORD=ab", "N=3", "--output", "TEXT")
    assert done.rows[1:] == [["TEXT", "BYTES", "[1]", "['ababab']"]]


def test_long_arrays_are_summarised_for_people_and_whole_in_json(infer: Callable[..., Done]) -> None:
    numbers = json.dumps([list(range(1000))])
    done = infer("wide", numbers)
    assert done.rows[1][:3] == ["Y", "FP32", "[1,1000]"]
    assert "..." in done.out
    assert len(done.out.splitlines()) == 2
    assert outputs(infer("wide", numbers, "--json")) == {"Y": [list(range(1000))]}


def test_numbers_that_json_lacks_are_text(infer: Callable[..., Done]) -> None:
    assert outputs(infer("double", "nan", "-inf", "--json")) == {"Y": [["NaN", "-Infinity"]]}


def test_ask_prints_the_value_alone(ask: Callable[..., Done]) -> None:
    assert ask("double", "[1, 2]").out == "[2.0, 4.0]\n"
    assert ask("double", "[[1, 2]]").out == "[[2.0, 4.0]]\n"


def test_ask_takes_arguments_by_position_and_by_name(ask: Callable[..., Done]) -> None:
    expected = {"TEXT": "haha", "LENGTH": 4}
    for words in (("ha", "2"), ("ha", "N=2"), ("N=2", "WORD=ha")):
        done = ask("repeat", *words)
        assert (json.loads(done.out), done.err) == (expected, "")
    assert json.loads(ask("repeat", "-", "2", text="ha\n").out) == expected


@pytest.mark.parametrize(
    ("model", "words", "code", "message"),
    [
        ("double", [], 2, "takes X=FP32[-1,2]"),
        ("repeat", ["3"], 2, "takes WORD=BYTES[1] N=INT64[1]"),
        ("repeat", ["WORD=a"], 2, "there is no value for 'N'"),
        ("repeat", ["WORD=a", "WORD=b", "N=1"], 2, "give 'WORD' once"),
        ("repeat", ["WORD=a", "M=1"], 1, "it has no input 'M'"),
        ("repeat", ["WORD=a", "N=1.5"], 1, "takes INT64"),
        ("repeat", ["WORD=a", "N=many"], 1, "write a number"),
        ("repeat", ["WORD=a", "N=0"], 1, "nothing was asked for"),
        ("repeat", ['WORD=["\\ud800"]', "N=1"], 1, "text that UTF-8 can write"),
        ("repeat", ["WORD=[1]", "N=1"], 1, "a JSON array of strings"),
        ("double", ["1", "2", "3"], 1, "takes the shape [-1,2]"),
        ("double", ["[[1, 2], [3]]"], 1, "make all rows equally long"),
        ("double", ["@absent.npy"], 1, "absent.npy: No such file"),
        ("double", ["1", "2", "--output", "Z"], 1, "its outputs are 'Y'"),
        ("double", ["1", "2", "--jsn"], 2, "did you mean --json?"),
        ("doubel", ["1", "2"], 1, "'double'"),
    ],
)
def test_a_mistake_is_named_with_its_mend(
    model: str, words: list[str], code: int, message: str, infer: Callable[..., Done]
) -> None:
    done = infer(model, *words)
    assert done.code == code
    assert message in " ".join(done.err.split())
    assert done.out == ""
    check_readable(done)


def test_a_file_without_its_mark_is_pointed_at(infer: Callable[..., Done], tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.zeros((1, 2)))
    assert "@rows.npy reads the file" in infer("double", "rows.npy").err


def test_more_arguments_than_inputs_are_refused(ask: Callable[..., Done]) -> None:
    done = ask("repeat", "a", "1", "2")
    assert done.code == 2
    assert "there are 3 values for 2 inputs" in " ".join(done.err.split())


@pytest.mark.parametrize("protocol", ["http", "grpc", "bare"])
def test_the_address_may_name_its_protocol_or_not(protocol: str, server: ServerProcess) -> None:
    addresses = {"http": f"http://{server.http}", "grpc": f"grpc://{server.grpc}", "bare": server.grpc}
    assert alipes("ask", "--url", addresses[protocol], "double", "1,2").out == "[2.0, 4.0]\n"


def test_ask_takes_the_object_of_arguments_that_curl_sends(ask: Callable[..., Done]) -> None:
    done = ask("repeat", '{"WORD": "ab", "N": 2}')
    assert (done.code, done.out) == (0, ask("repeat", "ab", "2").out)
    assert ask("repeat", '{"WORD": "ab"}').message.endswith("there is no value for 'N'")
    assert ask("repeat", '{"other": 1}', "2").out == ask("repeat", 'WORD={"other": 1}', "N=2").out


def test_a_process_of_its_own_prints_the_same(server: ServerProcess) -> None:
    done = alipes_process("ask", "--url", server.http, "double", "1", "2")
    assert (done.code, done.out) == (2, "")
    assert alipes_process("ask", "--url", server.http, "double", "1,2").out == "[2.0, 4.0]\n"


def test_a_metrics_port_is_no_inference_server(server: ServerProcess) -> None:
    done = alipes("infer", "--url", server.metrics, "double", "1,2")
    assert (done.code, "HTTP or gRPC port" in done.message) == (1, True)
    check_readable(done)


def test_a_decoupled_model_prints_each_response(server: ServerProcess) -> None:
    url = ("--url", server.grpc)
    assert alipes("ask", *url, "count", "3").out == "3\n2\n1\n"
    assert alipes("ask", *url, "count", "0").out == ""
    lines = alipes("infer", *url, "count", "2", "--json").out.splitlines()
    assert [json.loads(line)["outputs"] for line in lines] == [{"LEFT": [2]}, {"LEFT": [1]}]
    assert alipes("infer", *url, "count", "2").rows[1::2] == [
        ["LEFT", "INT64", "[1]", "[2]"],
        ["LEFT", "INT64", "[1]", "[1]"],
    ]


def test_a_decoupled_model_over_http_leads_to_grpc(server: ServerProcess) -> None:
    done = alipes("ask", "--url", server.http, "count", "3")
    assert (done.code, "gRPC" in done.message) == (1, True)
    check_readable(done)
