import json

import numpy as np
import pytest
from alipes.errors import TransportError
from alipes.quickstart import digits
from alipes.quickstart.http_client import HttpClient, binary_parts, json_body

SCAN = np.arange(64, dtype=np.uint8).reshape(8, 8) % 17


def test_the_json_body_holds_the_scan_as_it_is() -> None:
    (tensor,) = json.loads(json_body(SCAN))["inputs"]
    assert (tensor["name"], tensor["datatype"], tensor["shape"]) == (digits.INPUT, "FP32", [1, 8, 8])
    assert np.array_equal(tensor["data"], SCAN)


def test_the_binary_body_says_how_many_bytes_follow() -> None:
    header, tensor = binary_parts(SCAN)
    (described,) = json.loads(header)["inputs"]
    assert described["parameters"]["binary_data_size"] == len(tensor) == 4 * 64
    assert np.array_equal(np.frombuffer(tensor, "<f4").reshape(8, 8), SCAN)


def test_the_shipped_request_is_a_held_out_scan() -> None:
    (tensor,) = json.loads(digits.REQUEST.read_text())["inputs"]
    assert json.loads(json_body(np.array(tensor["data"], np.uint8)))["inputs"] == [tensor]
    assert (digits.held_out().scans == tensor["data"]).all(axis=(1, 2)).any()


def test_an_address_without_a_server_is_an_error() -> None:
    with HttpClient("127.0.0.1:1") as client, pytest.raises(TransportError, match="GET /v2/models/digits/ready"):
        client.ready("digits")
