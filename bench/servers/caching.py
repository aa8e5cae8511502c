"""alipes that keeps answers: the same models, each asking for the response cache."""

from collections.abc import Mapping
from pathlib import Path

from bench.servers import alipes
from bench.servers.endpoint import Endpoint

#: Room for every request of the bench a thousand times over, so that nothing makes room for anything.
CACHE_BYTES = 1 << 30


def start(repository: Path, name: str, environment: Mapping[str, str] | None = None) -> Endpoint:
    """Starts `alipes serve` with a response cache on a copy of a repository whose models want it.

    Raises:
        StartFailed: If it does not start.
    """
    copy = repository.parent / f"cached_{repository.name}"
    for model in repository.iterdir():
        folder = copy / model.name
        folder.mkdir(parents=True, exist_ok=True)
        config = (model / "config.pbtxt").read_text()
        (folder / "config.pbtxt").write_text(config + "response_cache { enable: true }\n")
        if not (folder / "1").exists():
            (folder / "1").symlink_to((model / "1").resolve(), target_is_directory=True)
    return alipes.start(copy, name, flags=[f"--cache-config=local,size={CACHE_BYTES}"], environment=environment)
