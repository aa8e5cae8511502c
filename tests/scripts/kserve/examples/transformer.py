"""A transformer of the KServe SDK in front of a predictor, which `--predictor_host` names."""

from __future__ import annotations

import argparse
from typing import Any

from kserve import InferRequest, Model, ModelServer, model_server
from kserve.model import PredictorProtocol


class Shift(Model):
    """Adds one to what it sends, and a mark to what comes back."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.ready = True

    def preprocess(self, payload: Any, headers: dict[str, str] | None = None) -> Any:
        if isinstance(payload, InferRequest):
            for tensor in payload.inputs:
                tensor.set_data_from_numpy(tensor.as_numpy() + 1, binary_data=False)
            return payload
        return {"instances": [[value + 1 for value in row] for row in payload["instances"]]}

    def postprocess(self, result: Any, headers: dict[str, str] | None = None) -> Any:
        return {**result, "shifted": True} if isinstance(result, dict) else result


if __name__ == "__main__":
    options = argparse.ArgumentParser(parents=[model_server.parser]).parse_args()
    assert options.predictor_protocol in {protocol.value for protocol in PredictorProtocol}
    ModelServer().start([Shift(options.model_name)])
