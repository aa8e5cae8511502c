import os
import sys

import litserve
import torch


class Mlp(litserve.LitAPI):
    def setup(self, device):
        torch.set_num_threads(1)
        self.module = torch.jit.load(os.environ["MODEL_PATH"], map_location=device)

    def decode_request(self, request):
        return torch.tensor(request["x"])

    def batch(self, inputs):
        return torch.stack(inputs)

    def predict(self, x):
        with torch.inference_mode():
            return self.module(x)

    def unbatch(self, output):
        return list(output)

    def encode_response(self, output):
        return output.tolist()


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    mlp = Mlp(max_batch_size=64, batch_timeout=0.001, api_path="/mlp")
    server = litserve.LitServer(mlp, accelerator="cpu")
    server.run(host="127.0.0.1", port=port, generate_client_file=False, log_level="warning")
