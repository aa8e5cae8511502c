"""A transformer of KServe's SDK in front of a predictor, which `--predictor_host` names: adds one to its instances."""

import argparse

import numpy as np
from kserve import InferInput, InferRequest, Model, ModelServer, model_server
from kserve.model import PredictorProtocol


class Shift(Model):
    """Adds one, and asks the predictor; over gRPC with a tensor of FP64."""

    def __init__(self, name, protocol):
        super().__init__(name)
        self.protocol = protocol
        self.ready = True

    async def preprocess(self, payload, headers=None):
        if self.protocol == PredictorProtocol.REST_V1.value:
            return {"instances": [[value + 1 for value in row] for row in payload["instances"]]}
        rows = np.array(payload["instances"], np.float64) + 1
        tensor = InferInput("x", list(rows.shape), "FP64")
        tensor.set_data_from_numpy(rows, binary_data=True)
        return InferRequest(self.name, [tensor])

    async def postprocess(self, result, headers=None):
        if isinstance(result, dict):
            return result
        return {"predictions": result.outputs[0].as_numpy().tolist()}


if __name__ == "__main__":
    options = argparse.ArgumentParser(parents=[model_server.parser]).parse_args()
    ModelServer().start([Shift(options.model_name, options.predictor_protocol)])
