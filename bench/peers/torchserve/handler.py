import torch
from ts.torch_handler.base_handler import BaseHandler


class Handler(BaseHandler):
    def preprocess(self, data):
        torch.set_num_threads(1)
        return torch.tensor([request["body"]["x"] for request in data])

    def postprocess(self, data):
        return data.tolist()
