"""Sends parameters and headers, over whichever protocol."""

import sys

import numpy as np
from pytriton.client import ModelClient

with ModelClient(sys.argv[1], "Said") as client:
    answer = client.infer_sample(
        np.array([5]),
        parameters={"number": 5, "text": "t", "truth": True},
        headers={"header1": "value", "header_2": 7, "other": "x"},
    )
print(answer["said"][0].decode(), answer["x"][0])
