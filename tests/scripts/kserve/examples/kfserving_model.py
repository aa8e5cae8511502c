"""A model and a server by the names that the SDK had in 2020."""

from __future__ import annotations

import argparse

import kfserving


class Squares(kfserving.KFModel):
    """Squares numbers."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.ready = False

    def load(self) -> None:
        self.ready = True

    def predict(self, request: dict) -> dict:  # type: ignore[override, type-arg]  # as scripts of that time have it
        return {"predictions": [value**2 for value in request["instances"]]}


if __name__ == "__main__":
    options, _ = argparse.ArgumentParser(parents=[kfserving.kfserver.parser]).parse_known_args()
    model = Squares(options.model_name)
    model.load()
    kfserving.KFServer(workers=1).start([model])
