"""What `alipes ask` sends for a function that needs no arguments."""

from __future__ import annotations

import json

import pytest
from alipes.cli.arguments import Reader
from alipes.cli.failures import UsageFailed
from alipes.client.signature import Signature, read_signature


def signature(name: str, datatype: str, arguments: list[dict[str, object]], *, optional: bool) -> Signature:
    """That of a function with one input, as its server describes it."""
    result = {"type": "int", "form": "json", "tuple": False}
    function = {"arguments": arguments, "result": result, "rows": False, "stream": False, "summary": ""}
    config = {
        "input": [{"name": name, "optional": optional}],
        "parameters": {"signature": {"string_value": json.dumps(function)}},
    }
    metadata = {"name": "f", "inputs": [{"name": name, "datatype": datatype, "shape": [1]}], "outputs": []}
    return read_signature(metadata, config)


def test_a_function_without_arguments_is_called_with_an_empty_document() -> None:
    sent = Reader(signature("document", "BYTES", [], optional=False)).call([])
    assert [array.ravel().tolist() for array in sent.inputs.values()] == [[b"{}"]]


def test_a_function_whose_argument_has_a_default_is_called_without_it() -> None:
    argument = {"name": "a", "type": "int", "required": False, "default": 3, "input": "a", "form": "scalar"}
    assert Reader(signature("a", "INT64", [argument], optional=True)).call([]).inputs == {}


def test_a_function_that_needs_an_argument_is_not_called_without_one() -> None:
    argument = {"name": "a", "type": "int", "required": True, "input": "a", "form": "scalar"}
    with pytest.raises(UsageFailed, match="there is no value for 'a'"):
        Reader(signature("a", "INT64", [argument], optional=False)).call([])
