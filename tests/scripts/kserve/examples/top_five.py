"""A custom predictor in the form of the SDK's pages: a picture in base64, the five largest values, a header."""

from __future__ import annotations

import argparse
import base64
import time
from typing import Any

import numpy as np
from kserve import Model, ModelServer, logging, model_server


class TopFive(Model):
    """Tells how often the most frequent bytes of a picture are in it."""

    def __init__(self, name: str) -> None:
        super().__init__(name, return_response_headers=True)
        self.load()

    def load(self) -> bool:
        self.ready = True
        return self.ready

    async def predict(self, payload: Any, headers: Any = None, response_headers: Any = None) -> Any:
        begin = time.monotonic()
        picture = base64.b64decode(payload["instances"][0]["image"]["b64"])
        counts = np.bincount(np.frombuffer(picture, np.uint8), minlength=256)
        if response_headers is not None:
            response_headers["prediction-time-latency"] = f"{(time.monotonic() - begin) * 1000:.9f}"
        return {"predictions": np.sort(counts)[::-1][:5].tolist()}


parser = argparse.ArgumentParser(parents=[model_server.parser])
args, _ = parser.parse_known_args()

if __name__ == "__main__":
    if args.configure_logging:
        logging.configure_logging(args.log_config_file)
    model = TopFive(args.model_name)
    model.load()
    ModelServer().start([model])
