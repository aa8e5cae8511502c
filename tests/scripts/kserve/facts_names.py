"""Prints signatures, constants, options, texts of exceptions and small functions of the KServe SDK, as JSON."""

from __future__ import annotations

import argparse
import inspect
import json
import os

import numpy as np
from kserve import (
    InferenceGRPCClient,
    InferenceRESTClient,
    InferInput,
    InferOutput,
    InferRequest,
    InferResponse,
    Model,
    ModelRepository,
    ModelServer,
    PredictorConfig,
    RESTConfig,
    constants,
    errors,
    model_server,
)
from kserve import context as kserve_context
from kserve.model import InferenceVerb, append_forwardable_headers, is_v2
from kserve.utils import utils
from noting import fact, print_facts


def parameters(call):
    """Names, kinds and defaults of parameters; objects as defaults are only said to be there."""
    found = {}
    for name, one in inspect.signature(call).parameters.items():
        default = one.default
        plain = isinstance(default, (str, int, float, bool, type(None)))
        shown = "-" if default is one.empty else default if plain else "some"
        found[name] = [str(one.kind), getattr(shown, "value", shown)]
    return found


CLASSES = [
    InferInput, InferOutput, InferRequest, InferResponse, InferenceGRPCClient, InferenceRESTClient, Model,
    ModelRepository, ModelServer, PredictorConfig, RESTConfig,
]  # fmt: skip
PUBLIC = {
    "InferInput": "as_numpy as_string set_data_from_numpy to_dict",
    "InferOutput": "as_numpy set_data_from_numpy to_dict",
    "InferRequest": "as_dataframe from_bytes from_grpc from_inference_request get_input_by_name to_dict to_grpc "
    "to_rest",
    "InferResponse": "from_bytes from_grpc from_rest get_output_by_name to_dict to_grpc to_rest",
    "InferenceGRPCClient": "close infer is_model_ready is_server_live is_server_ready",
    "InferenceRESTClient": "close explain infer is_model_ready is_server_live is_server_ready",
    "Model": "explain get_input_types get_output_types healthy load postprocess predict preprocess start start_engine "
    "stop stop_engine validate",
    "ModelRepository": "get_model get_models is_model_ready load load_model load_models set_models_dir unload update",
    "ModelServer": "default_exception_handler register_exception_handler register_model register_signal_handler "
    "setup_event_loop",
    "PredictorConfig": "",
    "RESTConfig": "",
}
for one in CLASSES:
    fact(f"{one.__name__}()", lambda one=one: parameters(one))
    for name in PUBLIC[one.__name__].split():
        fact(f"{one.__name__}.{name}", lambda one=one, name=name: parameters(getattr(one, name)))
fact("a call of a model", lambda: parameters(Model.__call__))
for name in [
    "get_predict_input",
    "get_predict_response",
    "strtobool",
    "is_structured_cloudevent",
    "create_response_cloudevent",
]:
    fact(f"utils.{name}", lambda name=name: parameters(getattr(utils, name)))

for name in sorted(name for name in dir(constants) if name.isupper()):
    fact(f"constant {name}", lambda name=name: getattr(constants, name))
for kind in (constants.PredictorProtocol, constants.ModelType, InferenceVerb):
    fact(f"members of {kind.__name__}", lambda kind=kind: [[one.name, one.value] for one in kind])

for action in model_server.parser._actions:
    fact(
        f"option {action.option_strings[0]}",
        lambda action=action: [action.dest, action.default, list(action.choices or []), action.nargs],
    )
fact(
    "a script's own options",
    lambda: vars(
        argparse.ArgumentParser(parents=[model_server.parser]).parse_args(
            ["--model_name", "x", "--enable_grpc", "no", "--workers=3", "--predictor_host", "h:1"]
        )
    ),
)


class Named:
    """A model that has only a name."""

    def __init__(self, name):
        self.name = name


for name, made in {
    "InferenceError": ["r"],
    "InferenceError with a status": ["r", "s"],
    "InvalidInput": ["r"],
    "ModelMissingError": ["p"],
    "ModelNotFound": ["m"],
    "ModelNotReady": ["m"],
    "ModelNotReady with a detail": ["m", "d"],
    "NoModelReady": [[Named("a")]],
    "NoModelReady of two": [[Named("a"), Named("b")], "d"],
    "ServerNotReady": [],
    "ServerNotLive": ["d"],
    "UnsupportedProtocol": ["v9"],
    "WorkersShouldBeLessThanMaxWorkersError": [3],
}.items():
    kind = getattr(errors, name.split()[0])
    fact(f"exception {name}", lambda kind=kind, made=made: str(kind(*made)))
    fact(f"bases of {name}", lambda kind=kind: [b.__name__ for b in (ValueError, RuntimeError) if issubclass(kind, b)])

for word in ["y", "Yes", "TRUE", "on", "1", "n", "F", "off", "0", "maybe"]:
    fact(f"truth of {word}", lambda word=word: utils.strtobool(word))
fact(
    "protocols",
    lambda: [[utils.is_v1(p), utils.is_v2(p)] for p in ("v1", "V2", "grpc-v2", constants.PredictorProtocol.REST_V2)],
)
fact("another than V1", lambda: [is_v2(p) for p in constants.PredictorProtocol])
fact("headers for a predictor", lambda: append_forwardable_headers({"x-request-id": "1", "cookie": "c"}, {"a": "b"}))
fact("no headers for a predictor", lambda: append_forwardable_headers(None))
fact("a namespace", utils.get_default_target_namespace)

for name, payload in {
    "rows": {"instances": [[1, 2], [3, 4]]},
    "columns": {"inputs": [[1.5]]},
    "texts": {"instances": ["a", "b"]},
    "nothing": {"instances": []},
    "a request": InferRequest("m", [InferInput("x", [2], "INT32", [1, 2])]),
    "a request of texts": InferRequest("m", [InferInput("x", [1], "BYTES", ["a"])]),
    "a wrong object": {"wrong": 1},
}.items():
    fact(f"input of {name}", lambda payload=payload: utils.get_predict_input(payload))

REQUEST = InferRequest("m", [InferInput("x", [2], "INT32", [1, 2])], request_id="7")
BINARY = InferRequest("m", [], request_id="7", parameters={"binary_data_output": True})
for name, payload, result in [
    ("an array for V1", {}, np.array([[1, 2]])),
    ("a list for V1", {}, [1, 2]),
    ("an array for V2", REQUEST, np.array([[1.5, 2]])),
    ("a list for V2", REQUEST, [1.5, 2]),
    ("texts for V2", REQUEST, ["a", "b"]),
    ("an array for V2 as bytes", BINARY, np.array([[1.5, 2]])),
    ("nothing known", 3, [1]),
]:
    fact(
        f"response with {name}",
        lambda payload=payload, result=result: (
            answer
            if isinstance(answer := utils.get_predict_response(payload, result, "m"), dict)
            else [answer.to_dict(), answer.outputs[0]._raw_data]
        ),
    )

EVENT = {"time": "t", "type": "k", "source": "s", "id": "i", "specversion": "1.0", "data": {}}
fact("an event", lambda: [utils.is_structured_cloudevent(e) for e in (EVENT, {**EVENT, "x": 1}, {"data": 1})])


def event(binary, **environment):
    """The answer to an event, without what is new in each."""
    os.environ.update(environment)
    try:
        headers, body = utils.create_response_cloudevent("m", {"a": [1]}, {**EVENT, "mine": "1"}, binary)
    finally:
        for name in environment:
            del os.environ[name]
    body = json.loads(body)
    changing = ("ce-id", "ce-time", "id", "time")
    return [
        {name: value for name, value in headers.items() if name not in changing},
        {name: value for name, value in body.items() if name not in changing},
    ]


EVENT.pop("data")
fact("an answer of headers", lambda: event(True))
fact("an answer of one object", lambda: event(False))
fact("an answer with attributes of the request", lambda: event(True, CE_MERGE="true", CE_SOURCE="here", CE_TYPE="mine"))

CONFIG = PredictorConfig("h:1", "v2", True, 5, 2, True)
fact(
    "a predictor", lambda: [CONFIG.predictor_base_url, CONFIG.protocol, CONFIG.timeout, CONFIG.retries, CONFIG.use_ssl]
)


class Plain(Model):
    """A model."""


fact(
    "what a model has",
    lambda: [Plain("m").name, Plain("m").ready, Plain("m").load(), Plain("m").required_response_headers],
)
for protocol, payload in (
    ("v1", {"instances": 1}),
    ("v2", {"inputs": 1}),
    ("v1", {"inputs": 1}),
    ("v1", {"instances": []}),
):

    def validated(protocol=protocol, payload=payload):
        kserve_context.set_predictor_config(PredictorConfig("h", protocol))
        try:
            return Plain("m").validate(payload)
        finally:
            kserve_context.set_predictor_config(None)

    fact(f"validated {protocol} {payload}", validated)

MODELS = ModelRepository()
MODELS.update(Plain("m"))
MODELS.update(Plain("m"), "n")
fact("a repository", lambda: [sorted(MODELS.get_models()), MODELS.get_model("q"), MODELS.models_dir])
fact("unloaded", lambda: MODELS.unload("q"))
print_facts()
