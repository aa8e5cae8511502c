"""The names that tritonclient has for what our clients do: scripts that use them find them here, too.

The names are tritonclient's; what they return is what our own names return, and is awaited where those are awaited.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from alipes.client.arguments import Version

__all__ = ["TritonAliases"]

_FILE: Final = "file:"
"""What stands in front of a file's path in tritonclient."""


class TritonAliases:
    """The one table of the names. The methods that they stand for are those of the class that inherits them."""

    def is_server_live(self: Any, **options: Any) -> Any:
        """As `is_live`, under tritonclient's name."""
        return self.is_live(**_ours(options))

    def is_server_ready(self: Any, **options: Any) -> Any:
        """As `is_ready`, under tritonclient's name."""
        return self.is_ready(**_ours(options))

    def get_server_metadata(self: Any, **options: Any) -> Any:
        """As `server_metadata`, under tritonclient's name."""
        return self.server_metadata(**_ours(options))

    def get_model_metadata(self: Any, model_name: str, model_version: Version = None, **options: Any) -> Any:
        """As `metadata`, under tritonclient's name."""
        return self.metadata(model_name, model_version, **_ours(options))

    def get_model_config(self: Any, model_name: str, model_version: Version = None, **options: Any) -> Any:
        """As `config`, under tritonclient's name."""
        return self.config(model_name, model_version, **_ours(options))

    def get_inference_statistics(self: Any, model_name: str = "", model_version: Version = None, **options: Any) -> Any:
        """As `statistics`, under tritonclient's name."""
        return self.statistics(model_name, model_version, **_ours(options))

    def get_model_repository_index(self: Any, **options: Any) -> Any:
        """As `models`, under tritonclient's name."""
        return self.models(**_ours(options))

    def load_model(self: Any, model_name: str, *, files: Mapping[str, bytes] | None = None, **options: Any) -> Any:
        """As `load`, under tritonclient's name."""
        if isinstance(files, Mapping):
            files = {path.removeprefix(_FILE): content for path, content in files.items()}
        return self.load(model_name, files=files, **_ours(options))

    def unload_model(self: Any, model_name: str, *, unload_dependents: bool = False, **options: Any) -> Any:
        """As `unload`, under tritonclient's name."""
        return self.unload(model_name, dependents=unload_dependents, **_ours(options))


def _ours(options: dict[str, Any]) -> dict[str, Any]:
    """Options of tritonclient's methods under our names."""
    options = dict(options)
    options.pop("as_json", None)  # what our methods return is a document in any case
    if "client_timeout" in options:
        options["timeout_s"] = options.pop("client_timeout")
    return options
