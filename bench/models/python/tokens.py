"""Tokenizes in Python what the native step `tokens` of the same repository tokenizes: all requests at once."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils
from tokenizers import Tokenizer


class TritonPythonModel:
    """The model."""

    def initialize(self, args):
        """Reads the tokenizer, and pads as the native step does."""
        parameters = json.loads(args["model_config"])["parameters"]
        self.tokenizer = Tokenizer.from_file(parameters["tokenizer"]["string_value"])
        self.tokenizer.enable_padding(pad_to_multiple_of=int(parameters["pad_to_multiple_of"]["string_value"]))

    def execute(self, requests):
        """One call for the texts of all requests, then each one's rows."""
        texts = [pb_utils.get_input_tensor_by_name(request, "text").as_numpy()[:, 0] for request in requests]
        rows = self.tokenizer.encode_batch([text.decode() for part in texts for text in part])
        ids = np.array([row.ids for row in rows])
        mask = np.array([row.attention_mask for row in rows])
        ends = np.cumsum([len(part) for part in texts])[:-1]
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor("input_ids", of_ids), pb_utils.Tensor("attention_mask", of_mask)]
            )
            for of_ids, of_mask in zip(np.split(ids, ends), np.split(mask, ends), strict=True)
        ]
