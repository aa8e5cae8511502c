"""Predictors and an explainer of the KServe SDK: plain and `async` handlers, V1 and V2, headers, failures."""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

import numpy as np
from kserve import InferOutput, InferRequest, InferResponse, Model, ModelServer, model_server
from kserve.errors import InferenceError, InvalidInput, ModelNotReady
from kserve.utils.utils import get_predict_input, get_predict_response


class Doubler(Model):
    """Doubles numbers, in plain handlers; explains them too."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.load()

    def predict(self, payload: Any, headers: dict[str, str] | None = None) -> Any:
        return get_predict_response(payload, get_predict_input(payload) * 2, self.name)

    def explain(self, payload: Any, headers: dict[str, str] | None = None) -> Any:
        return {"explanations": [{"share": value} for value in payload["instances"]]}


class Chain(Model):
    """Runs three `async` handlers, one after the other."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.load()

    async def preprocess(self, payload: Any, headers: dict[str, str] | None = None) -> Any:
        return {"instances": [value + 1 for value in payload["instances"]]}

    async def predict(self, payload: Any, headers: dict[str, str] | None = None) -> Any:
        await asyncio.sleep(0)
        return {"predictions": [value * 10 for value in payload["instances"]]}

    async def postprocess(self, result: Any, headers: dict[str, str] | None = None) -> Any:
        return {**result, "caller": (headers or {}).get("x-caller")}


class Pair(Model):
    """Answers two requests together: the first waits for the second."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.waiting: list[asyncio.Future[int]] = []
        self.load()

    async def predict(self, payload: Any, headers: dict[str, str] | None = None) -> Any:
        if self.waiting:
            self.waiting.pop().set_result(payload["instances"][0])
            return {"predictions": ["second"]}
        other: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.waiting.append(other)
        return {"predictions": ["first", await other]}


class Speaker(Model):
    """Gives its answers headers."""

    def __init__(self, name: str) -> None:
        super().__init__(name, return_response_headers=True)
        self.load()

    async def predict(self, payload: Any, headers: Any = None, response_headers: Any = None) -> Any:
        response_headers["x-model"] = "speaker"
        return {"predictions": sorted(headers)}


class Constant(Model):
    """Says the same to everybody."""

    def __init__(self, name: str, value: int) -> None:
        super().__init__(name)
        self.value = value
        self.load()

    def predict(self, payload: Any, headers: dict[str, str] | None = None) -> Any:
        return {"predictions": [self.value]}


class Register(Model):
    """Has its server serve one more model."""

    def __init__(self, name: str, server: ModelServer) -> None:
        super().__init__(name)
        self.server = server
        self.load()

    def predict(self, payload: Any, headers: dict[str, str] | None = None) -> Any:
        name, value = payload["instances"]
        self.server.register_model(Constant(name, value))
        return {"predictions": [name]}


class Resting(Model):
    """Is loaded, and never healthy."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.load()

    async def healthy(self) -> bool:
        return False

    def predict(self, payload: Any, headers: dict[str, str] | None = None) -> Any:
        raise AssertionError("it is never ready")


class Failing(Model):
    """Fails as its request says."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.load()

    def predict(self, payload: Any, headers: dict[str, str] | None = None) -> Any:
        kinds = {
            "input": InvalidInput("this cannot be used"),
            "inference": InferenceError("it broke"),
            "ready": ModelNotReady(self.name, "It warms up."),
            "missing": NotImplementedError("no such thing"),
            "other": KeyError("key"),
        }
        kind = payload.inputs[0].data[0] if isinstance(payload, InferRequest) else payload["instances"][0]
        raise kinds[kind.decode() if isinstance(kind, bytes) else kind]


class Storyteller(Model):
    """Yields what it is asked to say, piece by piece, and fails where it is asked to."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.load()

    async def predict(self, payload: Any, headers: dict[str, str] | None = None) -> Any:
        for piece in payload["instances"]:
            if piece == "fail":
                raise InferenceError("the story ends here")
            await asyncio.sleep(0)
            yield piece


class Endless(Model):
    """Yields until its reader leaves; says whether one has left."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.has_ended = False
        self.load()

    def get_input_types(self) -> list[dict[str, Any]]:
        return [{"name": "a", "datatype": "FP32", "shape": [-1]}]

    async def predict(self, payload: Any, headers: dict[str, str] | None = None) -> Any:
        if payload["instances"] == ["has it ended?"]:
            yield str(self.has_ended)
            return
        try:
            while True:
                yield "and so on, " * 1000
                await asyncio.sleep(0)
        finally:
            self.has_ended = True


class Tables(Model):
    """Seats four requests at a table: alipes joins them, where the SDK calls it for each."""

    alipes_max_batch_size = 4
    # They are joined when the fourth has come, however slow the machine is.
    alipes_max_latency_ms = 60_000

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.load()

    def get_input_types(self) -> list[dict[str, Any]]:
        return [{"name": "a", "datatype": "FP32", "shape": [-1, 1]}]

    def predict(self, payload: Any, headers: dict[str, str] | None = None) -> Any:
        guests = payload["instances"]
        if "late" in guests:
            raise InferenceError("somebody is late")
        return {"predictions": [[guest, len(guests)] for guest in guests], "caller": (headers or {}).get("x-caller")}


class AsyncTables(Tables):
    """The same in an `async` handler."""

    async def predict(self, payload: Any, headers: dict[str, str] | None = None) -> Any:
        await asyncio.sleep(0)
        return super().predict(payload, headers)


class Adder(Model):
    """Adds all inputs of a V2 request, whatever their names; gives their sum and how many there were."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.load()

    def get_input_types(self) -> list[dict[str, Any]]:
        return [{"name": "a", "datatype": "FP32", "shape": [-1]}]

    def get_output_types(self) -> list[dict[str, Any]]:
        return [{"name": "sum", "datatype": "FP32", "shape": [-1]}]

    def predict(self, payload: InferRequest, headers: dict[str, str] | None = None) -> InferResponse:
        arrays = [tensor.as_numpy() for tensor in payload.inputs]
        total = np.sum(arrays, axis=0, dtype=np.float32)
        count = InferOutput("count", [1], "INT64", [len(arrays)])
        made = InferOutput("sum", list(total.shape), "FP32")
        made.set_data_from_numpy(total, binary_data=payload.use_binary_outputs)
        return InferResponse(
            payload.id or "none",
            self.name,
            [made, count],
            use_binary_outputs=payload.use_binary_outputs,
            requested_outputs=payload.request_outputs,
        )


if __name__ == "__main__":
    options = argparse.ArgumentParser(parents=[model_server.parser]).parse_args()
    server = ModelServer()
    models = [Doubler(options.model_name), Chain("chain"), Pair("pair"), Speaker("speaker"), Failing("failing")]
    models += [Storyteller("storyteller"), Endless("endless"), Tables("tables"), AsyncTables("async-tables")]
    models += [Resting("resting"), Register("register", server), Adder("adder")]
    server.register_model(models[0], "alias")
    server.start(models)
