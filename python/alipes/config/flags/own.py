"""Flags of `alipes serve` alone; those without an option stand for others.

`tritonserver` does not have them: it takes the beginning of a name, and `--host` is Triton's `--host-policy` there.
"""

from __future__ import annotations

from typing import Final

from alipes.config.flags.flag import MAX_PORT, Flag

__all__ = ["OWN", "PORT_OFFSETS"]

PORT_OFFSETS: Final = {"http": 0, "grpc": 1, "metrics": 2}
"""How far behind `--port` the port of each endpoint is."""

OWN: Final[tuple[Flag, ...]] = (
    Flag(
        "host",
        "str",
        "0.0.0.0",
        "Address of HTTP, gRPC and metrics; 127.0.0.1 serves this machine alone. The default is every address of it.",
        common=True,
    ),
    Flag(
        "port",
        "int",
        8000,
        "Port of HTTP; gRPC and metrics follow, one and two behind it. 0 asks the system for three.",
        high=MAX_PORT - max(PORT_OFFSETS.values()),
        common=True,
    ),
    Flag(
        "model-name",
        "str",
        "",
        "Name of the model of --model-store, where that is one model alone; else models have the names of their "
        "folders. Left out, INFERENCE_SERVICE_NAME or the name of the folder. Of an app with one model, its name.",
        option="repository.model_name",
    ),
    Flag(
        "model-list",
        "str",
        "",
        "File that lists models, each with where it lies, in the form of KServe's `models.json`. It is followed: "
        "--model-control-mode=poll, and --repository-poll-secs says how often it is looked at.",
        option="repository.model_list",
        path="file",
    ),
    Flag(
        "model-dir",
        "list",
        (),
        "Another name of --model-store.",
        alias="model-store",
        option="repository.stores",
        path="folder",
    ),
    Flag(
        "enable-docs-url",
        "bool",
        False,
        "Describe the models of repositories at /openapi.json, and show that at /docs. Functions are described in any "
        "case, and all other models beside them.",
        option="describes_models",
    ),
    Flag(
        "config",
        "str",
        "alipes.toml",
        "File with values for flags, read where the current folder has it. An empty name reads none.",
        common=True,
        path="file",
    ),
    Flag("verbose", "level", 0, "Say more: -v stands for --log-verbose 1, -vv for 2.", high=16, short="v", common=True),
    Flag("quiet", "bool", False, "Say less: warnings and errors alone.", short="q", common=True),
)
