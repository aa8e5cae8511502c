"""Which command line is run for which wish."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from alipes.errors import ServeError
from alipes.serve.context import announced
from alipes.serve.endpoints import ServerEndpoint
from alipes.serve.folder import repository_of
from alipes.serve.gpus import visible_devices
from alipes.serve.recipe import TRITONSERVER, Recipe, find_image

ENDPOINTS = {"http": ServerEndpoint("", 8000, 8000, fixed=False), "grpc": ServerEndpoint("", 8001, 4001, fixed=False)}
PORTS = ("--http-port=8000", "--grpc-port=4001")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the PATH: each name in `programs` can be found there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("apptainer", "docker", "podman"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return folder


def recipe(**changes: object) -> Recipe:
    values: dict[str, object] = {
        "name": "n",
        "repository": "/with space",
        "image": None,
        "runtime": "apptainer",
        "devices": None,
        "gpu": False,
        "flags": ("--log-verbose=1",),
    }
    return Recipe(**(values | changes))  # type: ignore[arg-type]


def test_our_own_server_is_this_interpreters() -> None:
    command = recipe().command(ENDPOINTS)
    assert command.words[:4] == (sys.executable, "-m", "alipes", "serve")
    assert command.words[-4:] == ("--model-repository=/with space", "--log-verbose=1", *PORTS)
    assert command.environment == {}


def test_which_gpus_are_seen_reaches_the_server_itself(programs: Path) -> None:
    assert recipe(devices="2").command(ENDPOINTS).environment == {"CUDA_VISIBLE_DEVICES": "2"}
    words = recipe(image="i.sif", devices="2", gpu=True).command(ENDPOINTS).words
    assert words[words.index("--env") + 1] == "CUDA_VISIBLE_DEVICES=2"
    assert words.index("--env") < words.index("i.sif")


def test_apptainer_runs_the_server_with_words_that_no_shell_reads(programs: Path) -> None:
    words = recipe(image="i.sif", gpu=True).command(ENDPOINTS).words
    place = ("--bind", "/with space:/with space", "i.sif", TRITONSERVER)
    flags = ("--model-repository=/with space", "--log-verbose=1", *PORTS)
    assert words == (str(programs / "apptainer"), "exec", "--nv", *place, *flags)


def test_apptainer_is_known_by_its_older_name(programs: Path) -> None:
    (programs / "apptainer").rename(programs / "singularity")
    assert recipe(image="i.sif").command(ENDPOINTS).words[0] == str(programs / "singularity")


def test_without_a_gpu_the_command_names_none(programs: Path) -> None:
    for runtime in ("apptainer", "docker", "podman"):
        words = recipe(image="i", runtime=runtime).command(ENDPOINTS).words
        assert not [word for word in words[1:] if "nv" in word or "gpu" in word]


def test_docker_has_the_machines_network_and_is_removed_by_its_name(programs: Path) -> None:
    plan = recipe(image="triton:24.01", runtime="docker", gpu=True, devices="0,1")
    command = plan.command(ENDPOINTS)
    assert command.words[:6] == (str(programs / "docker"), "run", "--rm", "--init", "--name", "n")
    assert "--network=host" in command.words
    assert command.words[command.words.index("--gpus") + 1] == '"device=0,1"'
    assert command.words[command.words.index("triton:24.01") + 1] == TRITONSERVER
    assert plan.removal == ("docker", "rm", "--force", "n")


def test_podman_names_devices_in_its_own_way(programs: Path) -> None:
    words = recipe(image="i", runtime="podman", gpu=True, devices="0,1").command(ENDPOINTS).words
    assert "--device=nvidia.com/gpu=0" in words
    assert "--device=nvidia.com/gpu=1" in words
    assert "--device=nvidia.com/gpu=all" in recipe(image="i", runtime="podman", gpu=True).command(ENDPOINTS).words


def test_a_bucket_is_not_shown_to_a_container_as_a_folder(programs: Path) -> None:
    words = recipe(image="i.sif", repository="gs://bucket").command(ENDPOINTS).words
    assert "--bind" not in words


def test_an_engine_that_is_not_installed_is_named(programs: Path) -> None:
    (programs / "docker").unlink()
    with pytest.raises(ServeError, match="docker is not on the PATH"):
        recipe(image="i", runtime="docker").command(ENDPOINTS)


def test_an_image_is_found_here_before_the_shared_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, shared = tmp_path / "here", tmp_path / "shared"
    for folder in (here, shared):
        folder.mkdir()
    monkeypatch.chdir(here)
    (shared / "a.sif").touch()
    assert find_image("a.sif", "apptainer", shared) == str(shared / "a.sif")
    (here / "a.sif").touch()
    assert find_image("a.sif", "apptainer", shared) == str(here / "a.sif")
    assert find_image(here / "a.sif", "apptainer", shared) == str(here / "a.sif")
    assert find_image("docker://x/y:z", "apptainer", shared) == "docker://x/y:z"
    assert find_image("x/y:z", "docker", shared) == "x/y:z"
    assert find_image(None, "apptainer", shared) is None


def test_a_missing_image_is_an_error_that_lists_its_paths(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"there is no {tmp_path}/none.sif"):
        find_image(tmp_path / "none.sif", "apptainer")
    with pytest.raises(ServeError, match=f"or {tmp_path}/none.sif"):
        find_image("none.sif", "apptainer", tmp_path)


def test_a_repository_is_known_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    assert repository_of("models") == str(tmp_path / "models")
    assert repository_of("gs://bucket/models") == "gs://bucket/models"
    with pytest.raises(ServeError, match="there is no model repository at"):
        repository_of("none")


def test_gpus_are_positions_in_the_environments_list() -> None:
    assert visible_devices(None, {"CUDA_VISIBLE_DEVICES": "4,5"}) is None
    assert visible_devices([1], {"CUDA_VISIBLE_DEVICES": "4,5"}) == "5"
    assert visible_devices([1], {"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"}) == "GPU-b"
    assert visible_devices([1, 0], {}) == "1,0"
    assert visible_devices(3, {}) == "3"
    assert visible_devices([], {"CUDA_VISIBLE_DEVICES": "4"}) == ""


@pytest.mark.parametrize(("gpus", "named"), [([2], "4,5"), ([-1], "4,5"), ([-1], "")])
def test_a_gpu_that_is_not_there_is_a_value_error(gpus: list[int], named: str) -> None:
    with pytest.raises(ValueError, match=f"there is no GPU {gpus[0]}"):
        visible_devices(gpus, {"CUDA_VISIBLE_DEVICES": named})


@pytest.mark.parametrize("flag", ["-q", "--quiet", "--log-info=false", "--log_info=false", "--log-file=log"])
def test_a_server_with_a_short_log_announces_no_endpoint(flag: str) -> None:
    assert announced(recipe(flags=(flag,))) == ()
    assert announced(recipe(flags=("-v",))) == {"http", "grpc", "metrics"}
