"""What a server runs in the place of a model whose functions are in a script beside it: it passes requests on."""

from __future__ import annotations

import json
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any, Final

from alipes._core import InferenceRequest, InferenceResponse, Tensor, TritonError, TritonModelException
from alipes.compat.pytriton import relay

__all__ = ["ADDRESS_FILE", "SOURCE", "TritonPythonModel"]

ADDRESS_FILE: Final = "script.json"
"""Beside the model file: where the script listens, and the key by which both know each other."""

SOURCE: Final = "from alipes.compat.pytriton.stand_in import TritonPythonModel\n"
"""The model file."""

_LAST: Final = 1


class TritonPythonModel:
    """One instance: a connection to the script, over which one batch goes at a time."""

    def initialize(self, args: dict[str, str]) -> None:
        """Connects to the script."""
        self._model = args["model_name"]
        self._decoupled = bool(
            json.loads(args["model_config"]).get("model_transaction_policy", {}).get("decoupled", False)
        )
        file = Path(args["model_repository"]) / args["model_version"] / ADDRESS_FILE
        where = json.loads(file.read_text(encoding="utf-8"))
        self._script: Connection = Client(where["socket"], "AF_UNIX", authkey=bytes.fromhex(where["key"]))
        number = int(args["model_instance_name"].rpartition("_")[2])
        relay.send(self._script, {"instance": number})

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse] | None:
        """Has the script answer the requests."""
        unpacked = [
            {"parameters": request.parameters(), "wanted": sorted(request.requested_output_names())}
            for request in requests
        ]
        inputs = [{tensor.name(): tensor.as_numpy() for tensor in request.inputs()} for request in requests]
        try:
            relay.send(self._script, {"requests": unpacked}, inputs)
            if not self._decoupled:
                return self._answers(len(requests))
            self._stream(requests)
        except (EOFError, OSError, ValueError) as error:
            raise TritonModelException(
                f"the script that serves model '{self._model}' has ended ({type(error).__name__}): start it again"
            ) from None
        return None

    def finalize(self) -> None:
        """Lets go of the script."""
        self._script.close()

    def _answers(self, count: int) -> list[InferenceResponse]:
        """The only answer of the script; what it failed with goes to each of the requests."""
        document, arrays = relay.receive(self._script)
        if "error" in document:
            return [InferenceResponse(error=TritonError(document["error"])) for _ in range(count)]
        return [_response(outputs) for outputs in arrays]

    def _stream(self, requests: list[InferenceRequest]) -> None:
        """Answers one after the other, up to the last."""
        senders = [request.get_response_sender() for request in requests]
        while True:
            document, arrays = relay.receive(self._script)
            if "error" in document:
                for sender in senders:
                    sender.send(InferenceResponse(error=TritonError(document["error"])), _LAST)
                return
            if document.get("end"):
                break
            for sender, outputs in zip(senders, arrays, strict=True):
                sender.send(_response(outputs))
        for sender in senders:
            sender.send(flags=_LAST)


def _response(outputs: dict[str, Any]) -> InferenceResponse:
    return InferenceResponse([Tensor(name, array) for name, array in outputs.items()])
