"""Predictors of KServe's SDK, which its own server runs, and alipes: with a plain handler, and with `async` ones."""

from kserve import Model, ModelServer


class Doubler(Model):
    """Doubles its instances."""

    def __init__(self, name):
        super().__init__(name)
        self.load()

    def predict(self, payload, headers=None):
        return {"predictions": [value * 2 for value in payload["instances"]]}


class Chain(Model):
    """Adds one and multiplies, in three handlers."""

    def __init__(self, name):
        super().__init__(name)
        self.load()

    async def preprocess(self, payload, headers=None):
        return {"instances": [value + 1 for value in payload["instances"]]}

    async def predict(self, payload, headers=None):
        return {"predictions": [value * 10 for value in payload["instances"]]}

    async def postprocess(self, result, headers=None):
        return result


if __name__ == "__main__":
    ModelServer().start([Doubler("double"), Chain("chain")])
