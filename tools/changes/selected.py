"""Which crates and which test files a change concerns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from support.rooms import importers, python_files, room_of

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"

# What a change of anything may break, and takes seconds.
ALWAYS = ("tests/meta",)

# Folders of units that have another name than their room, and files in the folders of other rooms.
UNITS: Mapping[str, Sequence[str]] = {
    "worker": ("tests/unit/worker", "tests/property/test_joint_rows.py"),
    "cli": ("tests/unit/cli",),
    "cloud": ("tests/unit/cloud", "tests/property/test_random_wildcards.py"),
    "compat": ("tests/unit/compat", "tests/unit/perf_analyzer"),
    "config": ("tests/unit/config", "tests/property/test_config_round_trip.py", "tests/property/test_fuzzed_*.py"),
    "client": ("tests/unit/client", "tests/property/test_client_memory.py"),
    "apps": ("tests/unit/apps", "tests/property/test_row_reader.py"),
    "row_proof": ("tests/unit/test_row_proof.py", "tests/property/test_random_*.py"),
    "handover": ("tests/unit/serve",),
    "local_ports": ("tests/unit/serve",),
    "lazily": ("tests/meta/test_imports.py",),
    "leaving": ("tests/unit/cli/test_waiting.py",),
    "types": ("tests/unit/config",),
    "signature": ("tests/unit/test_row_proof.py", "tests/unit/backends"),
    "fitting": ("tests/unit/client/test_signature.py", "tests/unit/apps/test_app_tensors.py"),
    "streaming": ("tests/unit/repository/test_streaming_*.py",),
}

# Rooms and crates (`crates/NAME`) -> what asks them from outside.
END_TO_END: Mapping[str, Sequence[str]] = {
    "advise": ("tests/e2e/cli/test_advise.py",),
    "apps": ("tests/e2e/apps", "tests/e2e/test_private_paths.py", "tests/e2e/test_temporary_folders.py"),
    "attached": ("tests/e2e/attached",),
    "backends": (
        "tests/e2e/test_*framework*.py",
        "tests/e2e/test_independent_rows*.py",
        "tests/e2e/test_damaged_models.py",
        "tests/e2e/test_mixed_ensemble.py",
    ),
    "batch": ("tests/e2e/batch",),
    "bench": (
        "tests/unit/bench",
        "tests/e2e/bench",
        "tests/e2e/test_load_generator.py",
        "tests/e2e/test_serving_lab_run.py",
    ),
    "cli": ("tests/e2e/cli", "tests/e2e/test_quickstart.py", "tests/e2e/test_start.py"),
    "client": ("tests/e2e/clients/test_*client*.py", "tests/e2e/inference", "tests/e2e/clients/test_[adgisw]*.py"),
    "cloud": ("tests/e2e/cloud", "tests/e2e/notebooks/test_lecture_cloud.py"),
    "deploy": ("tests/e2e/deploy",),
    "dask": ("tests/e2e/engines",),
    "ray": ("tests/e2e/engines",),
    "compat": (
        "tests/e2e/perf_analyzer",
        "tests/e2e/pytriton_scripts",
        "tests/e2e/kserve_scripts",
        "tests/e2e/clients/test_*perf_analyzer*.py",
        "tests/e2e/clients/test_*triton*.py",
        "tests/e2e/clients/test_model_analyzer.py",
        "tests/e2e/test_triton_names.py",
        "tests/e2e/test_hermes_*.py",
        "tests/e2e/clients/test_hermes_peer.py",
    ),
    "config": ("tests/e2e/test_repository_mistakes.py", "tests/e2e/test_releases_grpc.py"),
    "docs": ("tests/docs", "tests/e2e/notebooks"),
    "examples": ("tests/e2e/test_*example.py", "tests/e2e/test_serving_lab*.py", "tests/e2e/test_text_recognition.py"),
    "graph": ("tests/e2e/graph",),
    "loadtest": ("tests/e2e/loadtest", "tests/e2e/cli/test_loadtest*.py", "tests/e2e/cli/test_sweep_recording.py"),
    "monitor": ("tests/e2e/monitor", "tests/e2e/cli/test_monitor.py"),
    "quickstart": ("tests/e2e/test_quickstart.py",),
    "repository": (
        "tests/e2e/kserve",
        "tests/e2e/test_export_*.py",
        "tests/e2e/test_serve_buckets.py",
        "tests/e2e/cli/test_repo.py",
    ),
    "predictor": ("tests/e2e/apps/test_predictor_calls.py", "tests/e2e/clients/test_predictor_peers.py"),
    "explainers": ("tests/e2e/apps/test_explainer_app.py",),
    "activation": ("tests/e2e/activation",),
    "rollout": ("tests/e2e/rollout",),
    "serve": ("tests/e2e/serve", "tests/e2e/cli/test_status.py"),
    "server": (
        "tests/e2e/test_*load*.py",
        "tests/e2e/test_poll.py",
        "tests/e2e/test_explicit.py",
        "tests/e2e/test_namespaces.py",
        "tests/e2e/test_updates_in_place.py",
        "tests/e2e/cli/test_models.py",
        "tests/e2e/payloads",
    ),
    "streaming": ("tests/e2e/streaming", "tests/e2e/test_gravitational_waves.py"),
    "tools": ("tests/unit/soak", "tests/e2e/test_soak.py", "tests/e2e/test_distributions.py"),
    "tune": ("tests/e2e/cli/test_tune*.py",),
    "worker": ("tests/e2e/workers", "tests/e2e/test_python_*.py", "tests/e2e/test_py*.py", "tests/e2e/test_mlflow.py"),
    "worker/frameworks": (
        "tests/e2e/test_serve_*.py",
        "tests/e2e/test_openvino.py",
        "tests/e2e/test_tensorflow.py",
        "tests/e2e/clients/test_switch_*.py",
    ),
    "crates/driver-ensemble": ("tests/e2e/test_ensembles.py",),
    "crates/driver-native": ("tests/e2e/test_serving.py", "tests/e2e/test_instances.py"),
    "crates/driver-streaming": ("tests/e2e/streaming",),
    "crates/driver-worker": ("tests/e2e/workers", "tests/e2e/test_python_senders.py"),
    "crates/gpu": ("tests/e2e/gpus",),
    "crates/graph": ("tests/e2e/graph",),
    "crates/grpc": ("tests/conformance", "tests/e2e/clients/test_[gkr]*.py"),
    "crates/http": ("tests/conformance", "tests/e2e/http", "tests/e2e/clients/test_curl.py"),
    "crates/net": ("tests/e2e/listeners", "tests/e2e/hostile", "tests/e2e/test_drain.py", "tests/e2e/test_farewell.py"),
    "crates/predict": ("tests/e2e/http/test_v1_*.py",),
    "crates/protocol": ("tests/conformance", "tests/e2e/test_input_validation.py", "tests/e2e/test_two_gigabytes.py"),
    "crates/python": ("tests/unit/worker", "tests/property/test_joint_rows.py"),
    "crates/runtime": (
        "tests/e2e/test_*cache*.py",
        "tests/e2e/test_equal_requests.py",
        "tests/e2e/test_explain_model.py",
        "tests/e2e/test_self_tuning.py",
    ),
    "crates/scheduler": (
        "tests/e2e/sequences",
        "tests/e2e/test_fairness.py",
        "tests/e2e/test_ragged_batches.py",
        "tests/e2e/levers/test_queue_timeouts.py",
    ),
    "crates/service": (
        "tests/e2e/payloads",
        "tests/e2e/test_request_numbers.py",
        "tests/e2e/test_updates_in_place.py",
    ),
    "crates/shared-memory": ("tests/e2e/shared_memory",),
    "crates/stats": ("tests/e2e/levers",),
    "crates/steps": ("tests/e2e/steps",),
    "crates/trace-export": ("tests/e2e/levers/test_trace_*.py",),
}


def crates_of(changed: Iterable[str]) -> list[str]:
    """The packages of Cargo in which something changed."""
    names = {path.split("/")[1] for path in changed if path.startswith("crates/")}
    there = [name for name in names if (ROOT / "crates" / name / "Cargo.toml").exists()]
    return sorted("alipes-core" if name == "python" else f"alipes-{name}" for name in there)


def tests_of(changed: Iterable[str]) -> list[str]:
    """The folders and files of Python's tests that a change concerns, for pytest."""
    found = set(_existing(ALWAYS))
    for path in changed:
        found.update(_tests_of(path))
    return sorted(path for path in found if not any(path.startswith(f"{other}/") for other in found))


def _tests_of(path: str) -> set[str]:
    match path.split("/"):
        case ["tests", *_, name] if name.startswith("test_") and (ROOT / path).exists():
            return {path}
        case ["crates", name, *_]:
            return _existing(END_TO_END.get(f"crates/{name}", ()))
        case ["python", "alipes", *rest]:
            return _of_room(rest)
        case [name, *_] if name.split(".")[0] in END_TO_END:
            return _existing(END_TO_END[name])
        case ["README.md"]:
            return _existing(("tests/docs",))
    return set()


def _of_room(rest: Sequence[str]) -> set[str]:
    room = rest[0].removesuffix(".py")
    units = {room, *(importers(room) - {"cli", "__init__", "__main__"})}
    found = _existing(pattern for name in units for pattern in units_of(name))
    inner = "/".join(rest[:2])
    return found | _existing((f"tests/unit/cli/test_*{room}*.py", *END_TO_END.get(inner, END_TO_END.get(room, ()))))


def units_of(room: str) -> Sequence[str]:
    """Patterns of the files with a room's units."""
    return UNITS.get(room, (f"tests/unit/{room}", f"tests/unit/test_{room}.py"))


def rooms() -> set[str]:
    """Every room of the package."""
    return {room_of(file) for file in python_files()}


def _existing(patterns: Iterable[str]) -> set[str]:
    return {str(path.relative_to(ROOT)) for pattern in patterns for path in ROOT.glob(pattern)}


def files_of(paths: Iterable[str]) -> set[Path]:
    """The test files beneath folders and files."""
    found: set[Path] = set()
    for path in paths:
        whole = ROOT / path
        found.update(whole.rglob("test_*.py") if whole.is_dir() else [whole])
    return found
