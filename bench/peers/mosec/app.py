"""The model behind Mosec: its JSON, its dynamic batching, one worker."""

import os

import numpy as np
import onnxruntime
from mosec import Runtime, Server, Worker

MAX_BATCH_SIZE = 64
#: Milliseconds to wait for company; the least that Mosec takes, as alipes waits for none.
MAX_WAIT_MS = 1


class Mlp(Worker):
    """One instance of the model."""

    def __init__(self) -> None:
        """Loads the session in the worker's process."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            os.environ["MODEL_PATH"], options, providers=["CPUExecutionProvider"]
        )

    def forward(self, data: list[dict]) -> list[dict]:
        """Runs the requests as one batch."""
        rows = [np.asarray(request["inputs"][0]["data"], np.float32).reshape(1, -1) for request in data]
        outputs = self._session.run(["y"], {"x": np.concatenate(rows)})[0]
        return [_answer(row) for row in outputs]


def _answer(row: np.ndarray) -> dict:
    output = {"name": "y", "datatype": "FP32", "shape": [1, len(row)], "data": row.tolist()}
    return {"model_name": "mlp", "outputs": [output]}


if __name__ == "__main__":
    server = Server()
    runtime = Runtime(Mlp, num=1, max_batch_size=MAX_BATCH_SIZE, max_wait_time=MAX_WAIT_MS)
    server.register_runtime({"/v2/models/mlp/infer": [runtime]})
    server.run()
