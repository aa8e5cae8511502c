"""A file for Docker Compose and podman-compose: one server on one machine."""

from __future__ import annotations

from typing import Any, Final

from alipes.deploy.app_place import APP_FOLDER, app_file
from alipes.deploy.description import Description, Resources
from alipes.deploy.image.settings import MODELS, USER
from alipes.deploy.quantities import bytes_of, cores_of
from alipes.deploy.repository_place import BUCKETS, check_machine
from alipes.deploy.serving import KEY_VARIABLE, TLS_FOLDER, arguments, stop_s
from alipes.errors import ConfigError

__all__ = ["compose_document"]

_FILES: Final = 65_536
"""Open files of a server: a connection is one."""


def compose_document(description: Description) -> dict[str, Any]:
    """The document.

    Raises:
        ConfigError: If the description says what one machine does not have.
    """
    _check(description)
    return {"services": {description.name: _service(description)}}


def _check(description: Description) -> None:
    if description.replicas != 1 or description.scaling.kind != "none":
        raise ConfigError(
            "compose starts one server, which takes all cores that it is allowed: leave out replicas and scaling, or "
            "use `alipes deploy kubernetes`",
            key="replicas",
        )
    check_machine(description.repository)


def _service(description: Description) -> dict[str, Any]:
    ports = description.ports
    bucket = description.repository.startswith(BUCKETS)
    app = app_file(description.repository)
    mounted = {str(app.parent): APP_FOLDER} if app else {} if bucket else {description.repository: MODELS}
    volumes = [f"{_folder(path)}:{place}:ro" for path, place in mounted.items()]
    served = f"{APP_FOLDER}/{app.name}" if app else description.repository if bucket else MODELS
    if description.tls.secret:
        volumes.append(f"{_folder(description.tls.secret)}:{TLS_FOLDER}:ro")
    service: dict[str, Any] = {
        "image": description.image,
        "entrypoint": ["alipes", "serve"],
        "command": _command(description, served),
        "ports": [f"{port}:{port}" for port in (ports.http, ports.grpc, ports.metrics)],
        "environment": _environment(description),
        "env_file": list(description.secrets),
        "volumes": volumes,
        "user": f"{USER}:{USER}",
        "read_only": True,
        "tmpfs": ["/tmp"],
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "ulimits": {"nofile": _FILES},
        "stop_grace_period": f"{stop_s(description)}s",
        "restart": "unless-stopped",
        "healthcheck": _health(description),
    }
    if resources := _resources(description):
        service["deploy"] = {"resources": resources}
    if description.resources.shared_memory:
        service["shm_size"] = bytes_of(description.resources.shared_memory)
    if description.labels:
        service["labels"] = dict(description.labels)
    return {name: value for name, value in service.items() if value not in ([], {})}


def _folder(path: str) -> str:
    """A folder as Compose tells it from the name of a volume."""
    return path if path.startswith(("/", "./", "../")) else f"./{path}"


def _command(description: Description, repository: str) -> list[str]:
    """The arguments. Compose takes `$$` for a dollar."""
    return [word.replace("$", "$$") for word in (repository, *arguments(description)[1:])]


def _environment(description: Description) -> dict[str, str]:
    """The variables. Compose puts the key in, and stops where nobody gave one."""
    variables = dict(description.environment)
    if description.key.secret:
        variables[KEY_VARIABLE] = f"${{{KEY_VARIABLE}:?the key that clients send}}"
    return variables


def _health(description: Description) -> dict[str, Any]:
    probes = description.probes
    encrypted = bool(description.tls.secret)
    url = f"{'https' if encrypted else 'http'}://localhost:{description.ports.http}/v2/health/ready"
    context = ", context=__import__('ssl')._create_unverified_context()" if encrypted else ""
    ask = f"import urllib.request as u; u.urlopen('{url}', timeout={probes.timeout_s}{context})"
    return {
        "test": ["CMD", "python", "-c", ask],
        "interval": f"{probes.period_s}s",
        "timeout": f"{probes.timeout_s + 1}s",
        "retries": 3,
        "start_period": f"{probes.startup_s}s",
    }


def _resources(description: Description) -> dict[str, Any]:
    """Limits. A machine of one's own has room for the server, so memory has one only where another was said."""
    resources = description.resources
    limits: dict[str, Any] = {}
    if resources.memory != Resources().memory:
        limits["memory"] = bytes_of(resources.memory)
    if resources.cpu_limit:
        limits["cpus"] = str(cores_of(resources.cpu_limit))
    gpus = {"driver": "nvidia", "count": resources.gpus, "capabilities": ["gpu"]}
    reservations = {"devices": [gpus]} if resources.gpus else {}
    return {name: part for name, part in (("limits", limits), ("reservations", reservations)) if part}
