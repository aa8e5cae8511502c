import os

import torch
from mosec import Runtime, Server, Worker


class Mlp(Worker):
    def __init__(self):
        torch.set_num_threads(1)
        self.module = torch.jit.load(os.environ["MODEL_PATH"])

    def forward(self, data: list[dict]) -> list[list[float]]:
        with torch.inference_mode():
            return self.module(torch.tensor([request["x"] for request in data])).tolist()


if __name__ == "__main__":
    server = Server()
    server.register_runtime({"/mlp": [Runtime(Mlp, num=1, max_batch_size=64, max_wait_time=1)]})
    server.run()
