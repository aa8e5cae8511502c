"""What scripts ask of `client.client`, by the names that `tritonclient` has for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from alipes.client.inference.document import Answered
from alipes.errors import NotFound, NotReady

__all__ = ["TritonNames"]


class TritonNames(ABC):
    """Questions of control under the names of `tritonclient.grpc.InferenceServerClient`; answers are its messages too.

    Whatever else `tritonclient` takes with a question, such as `headers`, is not offered.
    """

    @abstractmethod
    def _call(self, method: str, **fields: Any) -> Any:
        """The answer to a call, as a message; raises what the server says, or `TransportError`."""

    def is_server_live(self) -> bool:
        """Whether the server runs."""
        return bool(self._call("ServerLive").live)

    def is_server_ready(self) -> bool:
        """Whether the server and all of its models can answer."""
        return bool(self._call("ServerReady").ready)

    def is_model_ready(self, model_name: str, model_version: str = "") -> bool:
        """Whether a version can answer. One that is unknown or out of service cannot, an error in Triton after 2.51."""
        try:
            return bool(self._call("ModelReady", name=model_name, version=model_version).ready)
        except (NotFound, NotReady):
            return False

    def get_server_metadata(self, as_json: bool = False) -> Any:
        """The server's name, version and extensions."""
        return _shown(self._call("ServerMetadata"), as_json)

    def get_model_metadata(self, model_name: str, model_version: str = "", as_json: bool = False) -> Any:
        """Names, datatypes and shapes."""
        return _shown(self._call("ModelMetadata", name=model_name, version=model_version), as_json)

    def get_model_config(self, model_name: str, model_version: str = "", as_json: bool = False) -> Any:
        """The configuration, in a message's field `config`."""
        return _shown(self._call("ModelConfig", name=model_name, version=model_version), as_json)

    def get_inference_statistics(self, model_name: str = "", model_version: str = "", as_json: bool = False) -> Any:
        """What models did, and how long it took them."""
        return _shown(self._call("ModelStatistics", name=model_name, version=model_version), as_json)

    def get_model_repository_index(self, as_json: bool = False) -> Any:
        """The models that there are, and the state of each."""
        return _shown(self._call("RepositoryIndex"), as_json)

    def load_model(self, model_name: str) -> None:
        """Loads a model, or raises what the server says."""
        self._call("RepositoryModelLoad", model_name=model_name)

    def unload_model(self, model_name: str, unload_dependents: bool = False) -> None:
        """Unloads a model, and those of its steps where that is asked for."""
        parameters = {"unload_dependents": {"bool_param": unload_dependents}}
        self._call("RepositoryModelUnload", model_name=model_name, parameters=parameters)


def _shown(message: Any, as_json: bool) -> Any:
    """An answer as `tritonclient` gives it: the message, or a document."""
    return dict(Answered(message)) if as_json else message
