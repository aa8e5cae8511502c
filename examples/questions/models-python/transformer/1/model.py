"""The tokenizer in Python, in front of the same network: a transformer, as KServe calls it.

It tokenizes with the Python package `tokenizers`, calls the model `encoder` on the same server, and compares the means
of what that answers. It reads the tokenizer of the model `tokens`, which stands beside in `models`.
"""

from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from tokenizers import Tokenizer

TOKENIZER = Path(__file__).parents[3] / "models" / "tokens" / "1" / "tokenizer.json"


class TritonPythonModel:
    """Two sentences in, their similarity out."""

    def initialize(self, args):
        """Reads the tokenizer."""
        self.tokenizer = Tokenizer.from_file(str(TOKENIZER))

    def execute(self, requests):
        """Answers one request after the other."""
        return [self.answer(request) for request in requests]

    def answer(self, request):
        """The score of each row: FP32 `[batch, 1]`."""
        sides = [pb_utils.get_input_tensor_by_name(request, name).as_numpy()[:, 0] for name in ("one", "other")]
        ids, mask = self.tokens([text.decode() for text in np.concatenate(sides)])
        call = pb_utils.InferenceRequest(
            model_name="encoder",
            requested_output_names=["vectors"],
            inputs=[pb_utils.Tensor("input_ids", ids), pb_utils.Tensor("attention_mask", mask)],
        )
        answer = call.exec()
        if answer.has_error():
            return pb_utils.InferenceResponse(error=answer.error())
        vectors = pb_utils.get_output_tensor_by_name(answer, "vectors").as_numpy()
        one, other = np.split(self.mean(vectors, mask), 2)
        return pb_utils.InferenceResponse([pb_utils.Tensor("score", (one * other).sum(axis=1, keepdims=True))])

    def tokens(self, texts):
        """Numbers of tokens, and 1 where there is one: INT64 `[texts, tokens]` each."""
        rows = self.tokenizer.encode_batch(texts)
        return np.array([row.ids for row in rows]), np.array([row.attention_mask for row in rows])

    def mean(self, vectors, mask):
        """The mean of the tokens of each text, with the length 1."""
        means = (vectors * mask[:, :, None].astype(np.float32)).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return (means / np.linalg.norm(means, axis=1, keepdims=True)).astype(np.float32)
