"""The house rules that no compiler holds: who may import whom, and which dependency stands where."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from support.rooms import PACKAGE, imported_rooms, python_files, room_of

ROOT = Path(__file__).parents[2]

# Room -> rooms that it may import, beside itself and `errors`, `types`, `_core`, `datatypes`, `lazily`, `leaving` and
# `process_folder`, which every room may.
ALLOWED = {
    "errors": set(),
    "datatypes": set(),
    "types": set(),
    "lazily": {"synonyms"},
    "leaving": set(),
    "process_folder": set(),
    "disclosure": set(),
    "model_load": set(),
    "periodic": set(),
    "signature": set(),
    "synonyms": set(),
    "row_proof": {"signature"},
    "config": {"row_proof", "signature", "synonyms"},
    "fitting": set(),
    "choices": set(),
    "progress": set(),
    # What exporters copy into a `model.py`, and the options of decorated functions.
    "repository": {"config", "model_load", "progress", "row_proof", "signature", "worker"},
    "streaming": {"repository", "local_ports"},
    "apps": {"config", "repository", "server"},
    "backends": {"config", "disclosure", "model_load", "repository", "row_proof", "signature"},
    "worker": {"attached", "choices", "fitting", "row_proof", "signature", "synonyms"},
    "server": {"config", "disclosure", "model_load", "repository", "backends"},
    "compat": {
        "attached",
        "client",
        "cloud",
        "config",
        "loadtest",
        "local_ports",
        "periodic",
        "repository",
        "serve",
        "worker",
    },
    "quickstart": {"client", "loadtest"},
    "local_ports": set(),
    "handover": {"local_ports"},
    "client": {"config", "fitting", "local_ports", "progress", "synonyms"},
    # On use alone: the table of flags for keywords, the client that a server's own verbs ask with, and what serves
    # functions of the script, which `double.serve()` of a worker's decorator needs too.
    "serve": {"apps", "attached", "local_ports", "progress", "config", "client", "repository", "synonyms"},
    "attached": {"config", "repository", "worker", "serve", "client"},
    "monitor": {"local_ports", "client"},
    "tables": set(),
    "loadtest": {"client", "plots", "tables"},
    "plots": {"monitor"},
    # It takes a client, or a cluster; outcomes of several servers are added up as the client does it.
    "rollout": {"client", "cloud"},
    "predictor": {"client", "worker"},
    "explainers": {"predictor", "worker"},
    # What holds the ports of a server that sleeps: it reads the server's flags and writes its log.
    "activation": {"config", "server"},
    "advise": {"client", "config", "monitor", "periodic", "tables", "tune"},
    # Servers of this machine are started on use alone; jobs are written by `deploy` and sent by `cloud`.
    "batch": {"client", "cloud", "dask", "deploy", "fitting", "local_ports", "progress", "ray", "serve", "tables"},
    "dask": {"client", "serve"},
    "ray": {"client", "serve"},
    # Trials of `tune` are service curves; the page has pictures.
    "autoscale": {"plots", "tune"},
    "deploy": {"autoscale", "choices", "config", "progress", "repository"},
    # The reader of YAML, and how nodes lead to each other.
    "graph": {"config", "deploy"},
    "cloud": {"progress"},
    # What perf_analyzer's flags in Model Analyzer's files mean.
    "tune": {"client", "compat", "config", "loadtest", "periodic", "plots", "serve", "tables"},
}
EVERYBODY = {"errors", "types", "_core", "datatypes", "lazily", "leaving", "process_folder"}
# These may import anything.
FREE = {"cli", "__init__", "__main__"}

CRATES = {
    "clock": set(),
    "testkit": set(),
    "protocol": set(),
    "predict": {"protocol"},
    "graph": set(),
    "scheduler": set(),
    "engine": {"protocol"},
    "steps": {"protocol", "engine", "spec"},
    "link": {"clock", "protocol"},
    "tls": set(),
    "cuda": set(),
    "shared-memory": {"cuda", "protocol"},
    "gpu": {"clock"},
    "spec": {"graph", "protocol"},
    "stats": {"clock", "protocol", "spec"},
    "trace-export": {"clock", "protocol", "spec", "stats", "tls"},
    "request": {"clock", "protocol", "scheduler", "shared-memory", "spec"},
    "runtime": {"clock", "protocol", "scheduler", "engine", "link", "spec", "stats", "request"},
    "driver-native": {"clock", "protocol", "scheduler", "engine", "steps", "spec", "stats", "request", "runtime"},
    "driver-worker": {"clock", "protocol", "scheduler", "link", "spec", "stats", "request", "runtime"},
    "driver-ensemble": {"clock", "protocol", "scheduler", "engine", "spec", "stats", "request", "runtime"},
    "driver-streaming": {"clock", "protocol", "scheduler", "engine", "spec", "stats", "request", "runtime"},
    "service": {
        "clock",
        "gpu",
        "graph",
        "predict",
        "protocol",
        "scheduler",
        "shared-memory",
        "spec",
        "stats",
        "trace-export",
        "request",
        "runtime",
    },
    "net": {"clock", "protocol", "link", "spec", "stats", "tls"},
    "http": {
        "clock",
        "graph",
        "predict",
        "protocol",
        "link",
        "shared-memory",
        "spec",
        "stats",
        "tls",
        "request",
        "service",
        "net",
    },
    "grpc": {"clock", "protocol", "link", "shared-memory", "spec", "stats", "request", "service", "net"},
    "server": {
        "clock",
        "spec",
        "driver-native",
        "driver-worker",
        "driver-ensemble",
        "driver-streaming",
        "runtime",
        "service",
        "net",
        "http",
        "grpc",
    },
    "client": {"clock", "protocol", "tls"},
    "loadtest": {"clock", "client"},
    "python": {
        "clock",
        "protocol",
        "scheduler",
        "engine",
        "gpu",
        "link",
        "tls",
        "spec",
        "runtime",
        "server",
        "client",
        "loadtest",
    },
}


def test_a_room_imports_only_what_lies_beneath_it() -> None:
    rooms = {file: room for file in python_files() if (room := room_of(file)) not in FREE}
    unknown = set(rooms.values()) - ALLOWED.keys()
    assert not unknown, f"the rooms {unknown} have no rule yet: add them here, as ARCHITECTURE.md has it"
    wrong = [
        f"{file.relative_to(PACKAGE)}:{line}: {room} imports {other}"
        for file, room in rooms.items()
        for line, other in imported_rooms(file)
        if other not in ALLOWED[room] | EVERYBODY | {room}
    ]
    assert not wrong, "\n".join(wrong)


def test_nothing_imports_the_command_line() -> None:
    users = [file for file in python_files() if any(room == "cli" for _, room in imported_rooms(file))]
    assert {room_of(file) for file in users} <= {"cli", "__main__"}


def manifest(crate: str) -> dict[str, object]:
    return tomllib.loads((ROOT / "crates" / crate / "Cargo.toml").read_text())


def test_every_crate_has_a_rule() -> None:
    assert {path.parent.name for path in ROOT.glob("crates/*/Cargo.toml")} == set(CRATES)


@pytest.mark.parametrize("crate", sorted(CRATES))
def test_a_crate_depends_only_on_what_lies_beneath_it(crate: str) -> None:
    names: set[str] = set()
    for table in ("dependencies", "build-dependencies"):
        names |= set(manifest(crate).get(table, {}))  # type: ignore[call-overload]
    ours = {name.removeprefix("alipes-") for name in names if name.startswith("alipes-")}
    assert ours <= CRATES[crate]


# Crate -> most lines of its source. `server` is the composition; what decides anything has a crate beneath it.
MOST_LINES = 9_000
MOST_LINES_OF = {"server": 1_000}


def source(crate: str) -> dict[Path, str]:
    files = sorted((ROOT / "crates" / crate / "src").rglob("*.rs"))
    assert files
    return {file: file.read_text(encoding="utf-8") for file in files}


@pytest.mark.parametrize("crate", sorted(CRATES))
def test_a_crate_is_small_enough_to_know(crate: str) -> None:
    lines = sum(len(code.splitlines()) for code in source(crate).values())
    assert lines < MOST_LINES_OF.get(crate, MOST_LINES)


@pytest.mark.parametrize("crate", sorted(CRATES))
def test_a_crate_without_unsafe_code_forbids_it(crate: str) -> None:
    files = source(crate)
    forbidden = any("#![forbid(unsafe_code)]" in code for code in files.values())
    used = any(re.search(r"\bunsafe\b", re.sub(r"//.*", "", code)) for code in files.values())
    assert forbidden != used


def names(code: str, crate_name: str) -> bool:
    """Whether Rust code holds a path that begins with a crate's name; comments do not count."""
    named = re.compile(rf"(?<![\w:.]){crate_name}::|\buse {crate_name}\b")
    return named.search(re.sub(r"//.*", "", code)) is not None


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("use ort::Session;", True),
        ("fn f() -> ort::Result<()> {}", True),
        ("use ort;", True),
        ("// ort::Session", False),
        ("let port = support::start();", False),
        ("crate::ort::run()", False),
    ],
)
def test_the_search_for_a_crate_finds_its_paths_and_no_others(code: str, expected: bool) -> None:
    assert names(code, "ort") == expected


@pytest.mark.parametrize(
    ("crate_name", "homes"),
    [
        ("hyper", ("net/", "http/", "grpc/", "trace-export/src/post.rs")),
        ("hyper_util", ("net/", "http/", "grpc/", "trace-export/src/post.rs")),
        ("tonic", ()),
        ("pyo3", ("python/src/",)),
        ("ort", ("engine/src/onnxruntime",)),
    ],
)
def test_a_third_party_library_is_named_in_one_place(crate_name: str, homes: tuple[str, ...]) -> None:
    files = {str(file.relative_to(ROOT / "crates")): file.read_text() for file in ROOT.glob("crates/*/src/**/*.rs")}
    users = {file for file, code in files.items() if names(code, crate_name)}
    assert {file for file in users if not file.startswith(homes)} == set()
