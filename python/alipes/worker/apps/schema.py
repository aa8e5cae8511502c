"""A function as OpenAPI describes it: media types, schemas, and examples that its own reader has read."""

from __future__ import annotations

import inspect
import json
from typing import Any, Final

import msgspec
import numpy as np

from alipes.errors import ConfigError
from alipes.worker.apps.annotations import readable
from alipes.worker.apps.custom import ArrayOf, is_picture, is_pydantic
from alipes.worker.apps.documents import Documents, encode
from alipes.worker.apps.examples import example_of
from alipes.worker.apps.misfit import Misfit
from alipes.worker.apps.options import Options
from alipes.worker.apps.plan import Plan
from alipes.worker.apps.records import RecordOf
from alipes.worker.apps.tensor_types import array_spec, without_none
from alipes.worker.apps.unions import FirstOf

__all__ = ["schema_of"]

_JSON: Final = "application/json"
_REFS: Final = "#/components/schemas/"


def schema_of(served: Any, plan: Plan, documents: Documents, options: Options) -> dict[str, Any]:
    """What the API page says of a function.

    Args:
        served: The function or class.
        plan: What it takes and gives.
        documents: Reads its documents.
        options: Its options.

    Raises:
        ConfigError: If its `example=` does not fit its annotations.
    """
    schemas = _Schemas(options.name)
    text = inspect.getdoc(served) or ""
    example = _example(plan, documents, options)
    request = _request(plan, schemas.of_arguments(documents, plan), example)
    result, response = _response(plan, schemas)
    summary, _, rest = text.partition("\n")
    return {
        "summary": summary.rstrip("."),
        "description": rest.strip(),
        "parameters": _query(plan, schemas) if plan.file is not None else [],
        "request": request,
        "result": result,
        "response": response,
        "tensors": _tensors(plan, example) if plan.has_tensors else None,
        "components": schemas.components,
    }


class _Schemas:
    """Schemas of types; those with a name of their own stand once, below the model's name."""

    def __init__(self, model: str) -> None:
        self._refs = f"{_REFS}{model}."
        self._prefix = f"{model}."
        self.components: dict[str, Any] = {}
        # What is being described, which may hold itself.
        self._begun: set[Any] = set()

    def of(self, kind: Any) -> dict[str, Any]:
        """The schema of a type; of any value where none can be said."""
        try:
            (schema,), components = msgspec.json.schema_components(
                (kind,), schema_hook=self._custom, ref_template=self._refs + "{name}"
            )
        except Exception:  # a result of any type can be returned, if only its values can be answered
            return {}
        self.components |= {self._prefix + name: one for name, one in components.items()}
        return dict(schema)

    def of_arguments(self, documents: Documents, plan: Plan) -> dict[str, Any]:
        """The schema of the document that holds the arguments."""
        self.of(documents.type)
        schema = dict(self.components.pop(f"{self._prefix}Arguments", {}))
        schema.pop("title", None)
        for one in plan.arguments:
            if not one.required and one.name in schema.get("properties", {}):
                try:
                    schema["properties"][one.name] |= {"default": json.loads(encode(one.default))}
                except TypeError:
                    continue
        return schema

    def _custom(self, kind: Any) -> dict[str, Any]:
        if is_picture(kind):
            return {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/*"}
        if is_pydantic(kind):
            schema = dict(kind.model_json_schema(ref_template=self._refs + "{model}"))
            inner = schema.pop("$defs", {})
            self.components |= {self._prefix + name: one for name, one in inner.items()}
            return schema
        if isinstance(kind, type) and issubclass(kind, FirstOf):
            return {"anyOf": [self.of(member) for member in kind.members]}
        if isinstance(kind, type) and issubclass(kind, RecordOf):
            return self._record(kind)
        spec = kind.spec if isinstance(kind, type) and issubclass(kind, ArrayOf) else array_spec(kind)
        if spec is None:
            raise NotImplementedError
        item = {"b": "boolean", "i": "integer", "u": "integer", "f": "number"}
        name = item.get(spec.dtype.kind, "string") if spec.dtype is not None else "number"
        schema = {"type": name}
        if spec.shape is None:
            return {"type": ["array", name], "description": "An array of any number of axes.", "items": {}}
        for size in reversed(spec.shape):
            sizes = {} if size is None else {"minItems": size, "maxItems": size}
            schema = {"type": "array", "items": schema, **sizes}
        return schema

    def _record(self, kind: type[RecordOf]) -> dict[str, Any]:
        """A reference to the fields of a dataclass."""
        if kind not in self._begun:
            self._begun.add(kind)
            return self.of(kind.struct)
        return {"$ref": f"{self._refs}{kind.struct.__name__}"}


def _example(plan: Plan, documents: Documents, options: Options) -> dict[str, Any] | None:
    """An example that the function's reader takes; None where none is known."""
    found = options.example if options.example is not None else example_of(plan.arguments)
    try:
        body = encode(found)
        documents.read(body)
    except (Misfit, TypeError) as error:
        if options.example is not None:
            raise ConfigError(f"model '{options.name}': its example= does not fit: {error}") from error
        return None  # such as a number with a least value of its own
    read: dict[str, Any] = json.loads(body)
    return read


def _request(plan: Plan, schema: dict[str, Any], example: dict[str, Any] | None) -> dict[str, Any]:
    content: dict[str, Any] = {_JSON: {"schema": schema}}
    if example is not None:
        content[_JSON]["example"] = example
    files = {one.name for one in plan.arguments if one.is_file}
    if files:
        properties = {
            name: {"type": "string", "format": "binary"} if name in files else one
            for name, one in schema.get("properties", {}).items()
        }
        form = {"type": "object", "properties": properties, "required": schema.get("required", [])}
        content = {"multipart/form-data": {"schema": form}, **content}
    if plan.file is not None:
        kind = without_none(plan.file.annotation)[0]
        media = "image/*" if is_picture(kind) else "application/octet-stream"
        content[media] = {"schema": {"type": "string", "format": "binary"}}
    return content


def _query(plan: Plan, schemas: _Schemas) -> list[dict[str, Any]]:
    """Arguments that stand in the query where the body is a file as it is."""
    return [
        {"name": one.name, "in": "query", "required": False, "schema": schemas.of(readable(one.annotation))}
        for one in plan.arguments
        if not one.is_file
    ]


def _response(plan: Plan, schemas: _Schemas) -> tuple[str, dict[str, Any]]:
    """What the result is, in words, and its media types."""
    schema = schemas.of(readable(plan.result))
    if plan.is_stream:
        return "Each value as it comes.", {
            "text/event-stream": {"schema": schema},
            "application/x-ndjson": {"schema": schema},
        }
    if plan.result is bytes:
        return "The bytes.", {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    if is_picture(plan.result):
        return "The picture.", {"image/png": {"schema": {"type": "string", "format": "binary"}}}
    return "What the function returns.", {_JSON: {"schema": schema}}


def _tensors(plan: Plan, example: dict[str, Any] | None) -> dict[str, Any] | None:
    """The example as the inputs of the V2 protocol."""
    if example is None:
        return None
    inputs = []
    for one in plan.arguments:
        if one.name in example and one.tensor is not None:
            array = np.asarray(example[one.name], object)
            sizes = list(array.shape) if array.ndim else [1]
            shape = [1, *(sizes if len(sizes) == len(one.tensor.dims) else one.tensor.dims)] if plan.batched else sizes
            inputs.append(
                {
                    "name": one.input or one.name,
                    "datatype": one.tensor.datatype,
                    "shape": shape,
                    "data": array.reshape(-1).tolist(),
                }
            )
    return {"inputs": inputs}
