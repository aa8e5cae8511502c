import json

import numpy as np
from alipes.quickstart import digits
from alipes.quickstart.protocols import json_body

SCAN = np.arange(64, dtype=np.uint8).reshape(8, 8) % 17


def test_the_json_body_holds_the_scan_as_it_is() -> None:
    (tensor,) = json.loads(json_body(SCAN))["inputs"]
    assert (tensor["name"], tensor["datatype"], tensor["shape"]) == (digits.INPUT, "FP32", [1, 8, 8])
    assert np.array_equal(tensor["data"], SCAN)


def test_the_shipped_request_is_a_held_out_scan() -> None:
    (tensor,) = json.loads(digits.REQUEST.read_text())["inputs"]
    assert json.loads(json_body(np.array(tensor["data"], np.uint8)))["inputs"] == [tensor]
    assert (digits.held_out().scans == tensor["data"]).all(axis=(1, 2)).any()
