"""Scripts of hermes' users find the names that they import, and whoever has hermes keeps it."""

from __future__ import annotations

import logging
import queue
import subprocess
import sys
import textwrap
import threading
from importlib import import_module
from pathlib import Path

import pytest
from alipes import repository
from alipes.compat.finder import AliasModule
from alipes.compat.names import MODULES, ROOTS
from alipes.compat.rows import Absent
from alipes.errors import NotOffered, Unsupported
from support.hermes_names import hermes
from support.waiting import TIMEOUT_S

__all__ = ["hermes"]  # fixtures are found where they are imported

NAMES = [(module, name) for module, row in MODULES.items() for name in (row.names if isinstance(row, Absent) else row)]
NEED_TORCH = ("Snapshotter", "OnlineAverager")
ABSENT = [
    (module, name)
    for module, name in NAMES
    if isinstance(row := MODULES[module], Absent) or isinstance(row[name], Absent)
]


def run(code: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A script in a folder of its own, started by its path, or with `arguments` in front of it."""
    script = folder / "script.py"
    script.write_text(textwrap.dedent(code))
    return subprocess.run(
        [sys.executable, *arguments, str(script), "one", "two"], capture_output=True, text=True, check=False, cwd=folder
    )


@pytest.mark.parametrize(
    ("module", "name"),
    [pytest.param(*pair, marks=pytest.mark.extra("torch") if pair[1] in NEED_TORCH else ()) for pair in NAMES],
    ids=lambda value: value,
)
def test_every_name_is_there(hermes: None, module: str, name: str) -> None:
    assert getattr(import_module(module), name) is not None
    assert name in dir(import_module(module))


@pytest.mark.parametrize("module", MODULES)
def test_every_module_is_imported_the_way_scripts_do(hermes: None, module: str) -> None:
    parent, _, last = module.rpartition(".")
    space: dict[str, object] = {}
    exec(f"from {parent} import {last}" if parent else f"import {last}", space)
    assert last in space
    assert not parent or parent in MODULES, "what is above a module must be answered to as well"


def test_the_names_are_those_of_the_repository(hermes: None) -> None:
    space: dict[str, object] = {}
    exec("from hermes import quiver as qv; from gravswell import quiver as older", space)
    qv, older = space["qv"], space["older"]
    for name in ("Model", "Platform", "conventions", "ModelConfig"):
        assert getattr(qv, name) is getattr(repository, name)
        assert getattr(older, name) is getattr(repository, name)
    assert issubclass(qv.ModelRepository, repository.ModelRepository)  # type: ignore[attr-defined]
    assert older.ModelRepository is qv.ModelRepository  # type: ignore[attr-defined]


def test_a_second_add_of_a_name_is_an_error_in_scripts_of_hermes(hermes: None, tmp_path: Path) -> None:
    qv = import_module("hermes.quiver")
    repo = qv.ModelRepository(str(tmp_path))
    model = repo.add("m", platform=qv.Platform.ONNX)
    assert (tmp_path / "m").is_dir()
    with pytest.raises(ValueError, match=r"^Model m already exists in "):
        repo.add("m", platform=qv.Platform.ONNX)
    assert repo.add("m", platform=qv.Platform.ONNX, force=True).name == "m_0"
    assert repository.ModelRepository(tmp_path).add("m", "onnx").name == model.name


@pytest.mark.parametrize(("module", "name"), ABSENT, ids=lambda value: value)
def test_what_is_not_offered_can_be_imported_and_says_so_on_use(hermes: None, module: str, name: str) -> None:
    stand_in = getattr(import_module(module), name)
    assert not isinstance("anything", stand_in)
    with pytest.raises(
        NotOffered, match=rf"{module}\.{name} is not offered: .*(yet|left hermes|`serve`|InferenceClient| here|module)"
    ):
        stand_in(project="p", zone="z")
    with pytest.raises(NotOffered):
        stand_in.from_file("key.json")
    assert issubclass(NotOffered, NotImplementedError)


def test_an_unknown_name_says_what_there_is(hermes: None) -> None:
    with pytest.raises(ImportError):
        exec("from hermes.quiver import ModelRepositry")
    with pytest.raises(
        AttributeError, match=r"'hermes.quiver' is answered by alipes and has no 'nothing'; it has: Model"
    ):
        import_module("hermes.quiver").nothing  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        import_module("hermes.nothing")
    with pytest.raises(AttributeError):
        import_module("hermes.gwftools").__wrapped__  # noqa: B018


def test_names_are_absent_until_they_are_installed(tmp_path: Path) -> None:
    done = run("import alipes, alipes.compat, alipes.repository\nimport hermes", tmp_path)
    assert done.returncode == 1
    assert "No module named 'hermes'" in done.stderr


def test_uninstall_removes_the_names(tmp_path: Path) -> None:
    done = run(
        """
        from alipes.compat import hermes
        hermes.install()  # a second time does no more than the first
        from hermes import quiver
        hermes.uninstall()
        print(quiver.Platform.ONNX.value)
        import hermes
        """,
        tmp_path,
    )
    assert done.stdout == "onnxruntime_onnx\n"
    assert "No module named 'hermes'" in done.stderr


@pytest.mark.parametrize("order", ["before", "after"])
def test_an_installed_hermes_is_never_hidden(tmp_path: Path, order: str) -> None:
    theirs = tmp_path / "site" / "hermes"
    (theirs / "quiver").mkdir(parents=True)
    (theirs / "__init__.py").write_text("who = 'theirs'\n")
    (theirs / "quiver" / "__init__.py").write_text("who = 'theirs'\n")
    path = f"import sys; sys.path.append({str(theirs.parent)!r})"
    ours = "import alipes.compat.hermes"
    first, second = (path, ours) if order == "before" else (ours, path)
    done = run(
        f"{first}\n{second}\nimport hermes.quiver\nprint(hermes.who, hermes.quiver.who)\nimport hermes.stillwater",
        tmp_path,
    )
    assert done.stdout == "theirs theirs\n"
    # Nor is what it lacks mixed with ours.
    assert "No module named 'hermes.stillwater'" in done.stderr
    assert (order == "before") == (
        f"RuntimeWarning: a package 'hermes' is installed ({theirs / '__init__.py'}): imports of it go there"
        in done.stderr
    )


def folder_without_a_package(folder: Path, *below: str) -> Path:
    """A folder `hermes` that is no package by itself, with packages below it, as distributions share one."""
    for name in below:
        (folder / "site" / "hermes" / name).mkdir(parents=True)
        (folder / "site" / "hermes" / name / "__init__.py").write_text("typeo = who = 'theirs'\n")
    return folder / "site"


@pytest.mark.parametrize("below", ["typeo", "docs"])
def test_a_folder_of_that_name_hides_nothing(tmp_path: Path, below: str) -> None:
    site = folder_without_a_package(tmp_path, below)
    done = run(
        f"""
        import sys
        sys.path.append({str(site)!r})
        import alipes.compat.hermes
        from hermes import quiver
        from hermes.aeriel.serve import serve
        from hermes.{below} import who
        print(quiver.Platform.ONNX.value, serve.__module__, who)
        """,
        tmp_path,
    )
    assert (done.stdout, done.stderr) == ("onnxruntime_onnx alipes.compat.serve theirs\n", "")


def test_a_part_of_hermes_that_is_installed_is_not_mixed_with_ours(tmp_path: Path) -> None:
    site = folder_without_a_package(tmp_path, "quiver", "typeo")
    code = f"import sys; sys.path.append({str(site)!r})\nimport alipes.compat.hermes\nimport hermes.aeriel"
    done = run(code, tmp_path)
    assert "RuntimeWarning: a package 'hermes' is installed" in done.stderr
    assert "No module named 'hermes.aeriel'" in done.stderr


@pytest.mark.parametrize("theirs", ["typeo", "scriptify"])
def test_typeo_is_the_installed_one(tmp_path: Path, theirs: str) -> None:
    (tmp_path / "typeo").mkdir()
    (tmp_path / "typeo" / "__init__.py").write_text(
        f"def {theirs}(function):\n    return lambda: function('typeo')\n\n\nspoof = 'spoof'\n"
    )
    code = """
        from hermes.typeo import spoof, typeo

        @typeo
        def main(who):
            print(who, spoof)

        main()
    """
    done = run(code, tmp_path, "-m", "alipes.compat", "hermes")
    assert (done.stdout, done.stderr) == ("typeo spoof\n", "")


def test_without_typeo_its_use_says_what_to_install(hermes: None) -> None:
    typeo = import_module("hermes.typeo").typeo
    with pytest.raises(NotOffered, match=r"hermes\.typeo\.typeo is not offered: .*`pip install hermes\.typeo`"):
        typeo(print)
    with pytest.raises(AttributeError):
        import_module("alipes.compat.typeo").other  # noqa: B018


def test_a_script_runs_unchanged(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("value = 7\n")
    code = """
        import sys
        from hermes import quiver as qv
        from gravswell import quiver
        import beside
        if __name__ == "__main__":
            print(qv.ModelRepository is quiver.ModelRepository, sys.argv[1:], beside.value)
            raise SystemExit(3)
    """
    done = run(code, tmp_path, "-m", "alipes.compat", "hermes")
    assert (done.returncode, done.stdout, done.stderr) == (3, "True ['one', 'two'] 7\n", "")


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_children_of_a_script_find_the_names(tmp_path: Path, method: str) -> None:
    code = f"""
        import multiprocessing
        from hermes import quiver as qv

        def tell(found):
            found.put(qv.Platform.ONNX.value)

        if __name__ == "__main__":
            context = multiprocessing.get_context("{method}")
            found = context.Queue()
            child = context.Process(target=tell, args=(found,))
            child.start()
            child.join()
            print(child.exitcode, found.get() if child.exitcode == 0 else "")
    """
    done = run(code, tmp_path, "-m", "alipes.compat", "hermes")
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 onnxruntime_onnx\n", "")


def test_a_module_runs_unchanged(tmp_path: Path) -> None:
    (tmp_path / "tool.py").write_text("import sys, hermes.quiver.model\nprint(sys.argv[1:], __name__)\n")
    command = [sys.executable, "-m", "alipes.compat", "hermes", "-m", "tool", "one"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "['one'] __main__\n", "")


@pytest.mark.parametrize(
    ("arguments", "code", "output"),
    [
        ([], 2, "usage: python -m alipes.compat TOOLKIT SCRIPT"),
        (["hermes"], 2, "usage:"),
        (["hermes", "-m"], 2, "usage:"),
        (["zeus", "script.py"], 2, "usage:"),
        (["hermes", "no-such.py"], 2, "there is no script 'no-such.py'"),
        (["--help"], 0, "usage:"),
    ],
)
def test_the_command_says_how_it_is_used(tmp_path: Path, arguments: list[str], code: int, output: str) -> None:
    command = [sys.executable, "-m", "alipes.compat", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == code
    assert output in done.stdout + done.stderr


def test_a_name_that_a_package_and_its_module_share_stays_the_package_s() -> None:
    package = AliasModule("package")
    object.__setattr__(package, "_row", {"serve": "os:sep"})
    package.serve = AliasModule("package.serve")
    package.other = AliasModule("package.other")
    assert package.serve == "/"
    assert isinstance(package.other, AliasModule)


def test_what_is_added_to_the_log_of_monitors_hears_them(hermes: None, caplog: pytest.LogCaptureFixture) -> None:
    log = import_module("hermes.aeriel.monitor.logging")
    assert import_module("hermes.stillwater.logging").logger is log.logger
    import_module("alipes.monitor.pipeline")._log.warning("slow")
    assert [record.name for record in caplog.records] == [log.logger.name]


def test_processes_write_to_the_handlers_of_the_log_or_through_its_queue(hermes: None) -> None:
    records = queue.SimpleQueue[str]()

    class Recorder(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.put(f"{threading.current_thread().name}: {record.getMessage()}")

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

    log = import_module("hermes.aeriel.monitor.logging")
    listener = log.LogListener(log.log_q, Recorder())
    listener.add_process(Named("direct")).warning("here")
    assert records.get(timeout=TIMEOUT_S) == f"{threading.current_thread().name}: here"
    listener.start()
    try:
        listener.add_process(Named("queued")).warning("there")
        assert records.get(timeout=TIMEOUT_S) == f"{listener._thread.name}: there"
    finally:
        listener.end()
    listener.end()
    log.shutdown()


def test_importing_the_log_starts_no_thread(tmp_path: Path) -> None:
    done = run(
        """
        import threading
        import hermes.aeriel.monitor.logging, hermes.aeriel.monitor.logging as log
        print(threading.active_count(), log.listener._thread)
        """,
        tmp_path,
        "-m",
        "alipes.compat",
        "hermes",
    )
    assert (done.stdout, done.stderr) == ("1 None\n", "")


class Server:
    """Is ready once it has loaded, if it loads."""

    def __init__(self, loads: bool, refuses: bool = False) -> None:
        self.ready, self._loads, self._refuses = False, loads, refuses

    def is_model_ready(self, model_name: str, model_version: str) -> bool:
        return self.ready

    def load_model(self, model_name: str) -> None:
        if self._refuses:
            raise Unsupported("explicit model load / unload is not allowed if polling is enabled")
        self.ready = self._loads


def test_a_model_that_is_not_ready_is_loaded_or_refused(hermes: None) -> None:
    check_ready = import_module("hermes.aeriel.client.client")._check_ready
    server = Server(loads=True)
    check_ready(server, "m", "1")
    assert server.ready
    with pytest.raises(RuntimeError, match="Model m is available but not version 2"):
        check_ready(Server(loads=False), "m", "2")
    with pytest.raises(RuntimeError, match=r"Model m, version 2 isn't ready, and cannot be loaded: .* polling is enab"):
        check_ready(Server(loads=False, refuses=True), "m", "2")


def test_the_roots_are_those_of_the_table() -> None:
    assert {module.partition(".")[0] for module in MODULES} == ROOTS
