import sys

import litserve
import numpy as np


class Score(litserve.LitAPI):
    def setup(self, device):
        self.weights = np.linspace(-1, 1, 64, dtype=np.float32).reshape(16, 4)

    def decode_request(self, request):
        return np.asarray(request["x"], np.float32)

    def batch(self, inputs):
        return np.stack(inputs)

    def predict(self, x):
        return np.tanh(x @ self.weights)

    def unbatch(self, output):
        return list(output)

    def encode_response(self, output):
        return output.tolist()


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    score = Score(max_batch_size=64, batch_timeout=0.001, api_path="/score")
    server = litserve.LitServer(score, accelerator="cpu")
    server.run(host="127.0.0.1", port=port, generate_client_file=False, log_level="warning")
