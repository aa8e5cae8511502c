"""A predictor of KServe's SDK, behind a transformer: doubles rows, over V1 and over gRPC."""

import numpy as np
from kserve import InferOutput, InferResponse, Model, ModelServer


class Doubler(Model):
    """Doubles its instances, or its tensor."""

    def __init__(self, name):
        super().__init__(name)
        self.load()

    async def predict(self, payload, headers=None):
        if isinstance(payload, dict):
            return {"predictions": (np.array(payload["instances"]) * 2).tolist()}
        rows = payload.inputs[0].as_numpy() * 2
        tensor = InferOutput("y", list(rows.shape), "FP64")
        tensor.set_data_from_numpy(rows, binary_data=True)
        return InferResponse(payload.id, self.name, [tensor])


if __name__ == "__main__":
    ModelServer().start([Doubler("shift")])
