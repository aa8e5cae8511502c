"""The order in which a server starts and stops."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from alipes.config.load import parse_flags
from alipes.errors import RepositoryError, ServerStartError
from alipes.server.server import InProcessServer
from support.data_plane import DataPlane
from support.folders import CONFIG

MakeModel = Callable[..., Path]
TIMEOUT_S = 30


def server(repository: Path, data_plane: DataPlane, *flags: str) -> InProcessServer:
    return InProcessServer(parse_flags([str(repository), *flags], {}), core=data_plane)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def known_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    """Configurations are complete here: no model file is opened."""
    monkeypatch.setattr("alipes.server.server.Planner", _planner)


def _planner(options: object) -> object:
    from alipes.server.planner import Planner
    from support.folders import backend_of

    return Planner(options, backend_of=backend_of)  # type: ignore[arg-type]


def test_models_are_loaded_before_anybody_is_let_in(repository: Path, data_plane: DataPlane, model: MakeModel) -> None:
    model("a")
    made = server(repository, data_plane)
    addresses = made.start()
    assert data_plane.history == ["build a 1", "publish a [1]", "start"]
    assert (addresses.http, addresses.grpc) == ("127.0.0.1:80", None)
    assert data_plane.ready is True
    assert made.stop(TIMEOUT_S)
    assert data_plane.history[-2:] == ["drain", "stop"]
    assert data_plane.ready is False


def test_a_broken_model_stops_neither_the_server_nor_the_others(
    repository: Path, data_plane: DataPlane, model: MakeModel
) -> None:
    model("bad", config="{")
    model("good")
    made = server(repository, data_plane)
    made.start()
    assert [version.name for version in data_plane.published["good"]] == ["good"]
    assert data_plane.ready is False
    made.stop(TIMEOUT_S)


@pytest.mark.parametrize("quiet", [False, True])
def test_a_quiet_start_shows_a_terminal_no_table(
    repository: Path, data_plane: DataPlane, model: MakeModel, capsys: pytest.CaptureFixture[str], quiet: bool
) -> None:
    model("good")
    made = server(repository, data_plane, *(["-q"] if quiet else []))
    with mock.patch.object(sys.stderr, "isatty", return_value=True):
        made.start()
    made.stop(TIMEOUT_S)
    printed = capsys.readouterr().err
    assert printed == "" if quiet else "READY" in printed


def test_a_broken_model_ends_a_server_that_is_to_leave_on_error(
    repository: Path, data_plane: DataPlane, model: MakeModel
) -> None:
    model("bad", config="{")
    made = server(repository, data_plane, "--exit-on-error=true")
    with pytest.raises(ServerStartError, match="creating server: Internal - failed to load all models"):
        made.start()
    assert "start" not in data_plane.history
    assert made.stop(TIMEOUT_S)


@pytest.mark.parametrize(
    ("flags", "loaded"),
    [((), []), (("--load-model=b",), ["b"]), (("--load-model=*",), ["a", "b"])],
)
def test_explicit_mode_loads_what_the_flags_name(
    repository: Path, data_plane: DataPlane, model: MakeModel, flags: tuple[str, ...], loaded: list[str]
) -> None:
    model("a")
    model("b")
    made = server(repository, data_plane, "--model-control-mode=explicit", *flags)
    made.start()
    assert sorted(data_plane.published) == loaded
    made.stop(TIMEOUT_S)


def test_a_model_to_load_that_is_absent_is_shown_as_failed(repository: Path, data_plane: DataPlane) -> None:
    made = server(repository, data_plane, "--model-control-mode=explicit", "--load-model=absent")
    made.start()
    assert data_plane.ready is False
    made.stop(TIMEOUT_S)


def test_an_absent_repository_is_an_error_before_any_bind(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="failed to stat file"):
        InProcessServer(parse_flags([str(tmp_path / "nowhere"), "--http-port=1"], {}))


def test_a_folder_that_holds_no_model_takes_nothing_from_readiness(
    repository: Path, data_plane: DataPlane, model: MakeModel, caplog: pytest.LogCaptureFixture
) -> None:
    model("a")
    (repository / "never_exported").mkdir()
    (repository / "never_exported" / "README.md").write_text("to do")
    made = server(repository, data_plane)
    made.start()
    assert data_plane.ready is True
    assert {entry["name"]: entry["state"] for entry in data_plane.index} == {"a": "READY", "never_exported": ""}
    assert f"folder '{repository}/never_exported' holds neither a configuration nor a version" in caplog.text
    assert made.stop(TIMEOUT_S)


def test_the_log_says_what_a_model_without_a_version_needs(
    repository: Path, data_plane: DataPlane, model: MakeModel, caplog: pytest.LogCaptureFixture
) -> None:
    (repository / "never_exported").mkdir()
    (repository / "never_exported" / "config.pbtxt").write_text(CONFIG)
    made = server(repository, data_plane)
    made.start()
    assert data_plane.ready is False, "as in Triton"
    (entry,) = data_plane.index
    assert entry["reason"].startswith("at least one version must be available under the version policy of model")
    assert f"model 'never_exported' has no version: export one into {repository}/never_exported, into a" in caplog.text
    assert made.stop(TIMEOUT_S)


@pytest.mark.parametrize("mode", ["none", "poll", "explicit"])
def test_an_absent_repository_does_not_keep_another_from_being_served(
    repository: Path, data_plane: DataPlane, model: MakeModel, tmp_path: Path, mode: str
) -> None:
    model("a")
    flags = [f"--model-repository={tmp_path / 'nowhere'}", f"--model-control-mode={mode}"]
    made = server(repository, data_plane, *flags, *(["--load-model=*"] if mode == "explicit" else []))
    made.start()
    assert [version.name for version in data_plane.published["a"]] == ["a"]
    assert data_plane.ready is True
    assert made.stop(TIMEOUT_S)


def test_an_absent_repository_ends_a_server_that_is_to_leave_on_error(
    repository: Path, data_plane: DataPlane, tmp_path: Path
) -> None:
    flags = [f"--model-repository={tmp_path / 'nowhere'}", "--exit-on-error=true"]
    with pytest.raises(ServerStartError, match=f"^creating server: Internal - failed to stat file {tmp_path}/nowhere$"):
        server(repository, data_plane, *flags)
    (tmp_path / "nowhere").write_text("")
    with pytest.raises(ServerStartError, match=r"^creating server: Invalid argument - repository path is not a valid"):
        server(repository, data_plane, *flags)


def test_a_repository_that_goes_before_the_load_counts_as_an_error(
    repository: Path, data_plane: DataPlane, tmp_path: Path
) -> None:
    (tmp_path / "second").mkdir()
    made = server(repository, data_plane, f"--model-repository={tmp_path / 'second'}", "--exit-on-error=true")
    (tmp_path / "second").rmdir()
    with pytest.raises(ServerStartError, match="creating server: Internal - failed to load all models"):
        made.start()
    assert made.stop(TIMEOUT_S)


def test_a_stop_before_the_start_opens_no_listener(repository: Path, data_plane: DataPlane, model: MakeModel) -> None:
    model("a", config=CONFIG)
    made = server(repository, data_plane)
    data_plane.before_build = lambda name, version: None
    made._settled.set()  # what `start` does once the models are settled
    assert made.stop(TIMEOUT_S)
    with pytest.raises(ServerStartError, match="stopped before"):
        made.start()
    assert "start" not in data_plane.history


def test_a_drain_that_does_not_end_in_time_is_reported(repository: Path, data_plane: DataPlane) -> None:
    made = server(repository, data_plane)
    made.start()
    data_plane.drains_in_time = False
    assert not made.stop(TIMEOUT_S)
