"""The stages of the gate: one row each, with what it proves and the time that it may take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

LINT, TEST, GATE, PROOF = "lint", "test", "gate", "proof"
ALL = (LINT, TEST, GATE, PROOF)
CHECKED = (LINT, GATE, PROOF)
TESTED = (TEST, GATE, PROOF)
WHOLE = (GATE, PROOF)

# How much of the machine a stage takes; two run at a time whose sum is at most `WHOLE_MACHINE`.
ONE_CORE = 1
EVERY_CORE = 2
WHOLE_MACHINE = 3

ENVIRONMENT = "$PYTHON tools/environment"
PYTEST = "-q -p no:cacheprovider --dist loadgroup"
MAIN = "tools/run-pytest .venv-$VERSION/bin/python"
# What a user meets on the wire, whichever way of execution the server takes.
ON_THE_WIRE = (
    f'{PYTEST} -n $PROCESSES -m "not proof and not slow and not alone" tests/golden tests/e2e tests/conformance'
)
POOL = "ALIPES_EXECUTION_THREADS=pool ALIPES_ENSEMBLE_STEPS=single ALIPES_WORKER_MEMORY=small"
UNDER_ATTACK = "tests/e2e/hostile/test_under_attack.py"
NETWORK = "ALIPES_EXECUTION_THREADS=network"
# To collect all tests takes as long as many of these run.
WITH_EXTRAS = r"$(grep -rlE 'mark\.extra\(' tests --include='test_*.py')"
ALL_BUT_TORCH = (
    "--extra sklearn --extra xgboost --extra lightgbm --extra catboost --extra keras --extra openvino --extra mlflow"
    " --extra batch --extra plots --extra tune --extra tables --extra hf --group test --group buckets"
)
FLEET = "--extra deploy --extra google --group fleet"
EVERY_EXTRA = (
    f"{ALL_BUT_TORCH} {FLEET} --extra examples --extra notebook --extra explain --extra torch --torch --group browser"
)
BOUND_EXTRAS = f"{ALL_BUT_TORCH} --extra azure --extra gcs --extra s3"
OF_BOUND_EXTRAS = (
    "tests/unit/worker tests/e2e/test_serve_sklearn.py tests/e2e/test_serve_trees.py tests/e2e/test_tensorflow.py"
    " tests/e2e/test_export_keras.py tests/e2e/test_openvino.py tests/e2e/test_mlflow.py"
    " tests/e2e/test_export_buckets.py tests/e2e/test_serve_buckets.py"
)


@dataclass(frozen=True)
class Stage:
    """One step of the gate.

    Attributes:
        name: What is printed, and what `--only` takes.
        proves: What holds when it has passed.
        command: Run by bash in the root of the checkout, with the variables that `runner.variables` lists.
        budget_s: What its processes may take of the cores at most, user and system, with nothing compiled or downloaded
            before, in seconds. Beyond it the stage fails. Other load on a machine moves this time little, but a machine
            whose cores are shared with others took 1.65 of a quiet one's: it is two to three times what was seen there.
        needs: Stages that have to pass first. A failure elsewhere does not keep a stage from running.
        runs_in: The commands that it belongs to.
        long_s: What the long forms of its tests may take besides, in the proof.
        after: Stages that end first, whether or not they pass: cargo would wait in both of them for the same folder.
        takes: `ONE_CORE` where it waits or computes on one, so that others may run beside it; `EVERY_CORE` where it
            compiles, or runs tests in processes of its own, so that two of them would be in each other's way;
            `WHOLE_MACHINE` where it measures, and nothing may run beside it.
    """

    name: str
    proves: str
    command: str
    budget_s: int
    needs: Sequence[str] = ()
    runs_in: Sequence[str] = WHOLE
    takes: int = EVERY_CORE
    after: Sequence[str] = ()
    long_s: int = 0

    def within(self, command: str) -> Stage:
        """The stage with the budget that it has in a command."""
        return replace(self, budget_s=self.budget_s + self.long_s) if command == PROOF else self


def _extra(name: str, proves: str, more: str = "", budget_s: int = 400) -> Stage:
    """What an extra promises, with what that extra brings alone: a requirement that it forgot is not there."""
    environment = f"{ENVIRONMENT} .venv-{name} --group test --wheel $WHEELS {more or f'--extra {name}'}"
    tests = f"tools/run-pytest .venv-{name}/bin/python extra-{name} {PYTEST} -n $PROCESSES"
    command = f'{environment} && {tests} --extra={name} -m "$EXTENT" {WITH_EXTRAS}'
    return Stage(f"extra {name}", proves, command, budget_s, ("wheel",), (PROOF,))


def _bounds(which: str, proves: str) -> Stage:
    """The versions at one end of what the requirements allow. Torch has a wheel for CPUs at its newest alone."""
    folder = f".venv-{which}"
    environment = f"{ENVIRONMENT} {folder} {BOUND_EXTRAS} --wheel $WHEELS --bounds {which}"
    # Releases of other ages warn of each other, which is no fault of ours.
    pytest = f"{PYTEST} -n $PROCESSES -W ignore::DeprecationWarning"
    run = f"tools/run-pytest {folder}/bin/python"
    base = (
        f'{run} {which} {pytest} -m "not proof and not slow and not alone"'
        " tests/unit/cli tests/unit/config tests/e2e/test_serving.py tests/e2e/test_quickstart.py"
    )
    extras = f'{run} {which}-extras {pytest} --extra=every -m "not proof and not alone" {OF_BOUND_EXTRAS}'
    return Stage(f"bounds {which}", proves, f"{environment} && {base} && {extras}", 900, ("wheel",), (PROOF,))


STAGES: Sequence[Stage] = (
    Stage(
        "tools",
        "the tools and the build settings are there",
        f"{ENVIRONMENT} .venv-tools --group lint",
        180,
        (),
        ALL,
        ONE_CORE,
    ),
    Stage("format", "every file is formatted", "tools/lint format", 60, ("tools",), CHECKED, ONE_CORE),
    Stage("ruff", "Python's lints", "tools/lint ruff", 60, ("tools",), CHECKED, ONE_CORE),
    Stage("types", "Python's types, strictly", "tools/lint types", 240, ("tools",), CHECKED, ONE_CORE),
    Stage(
        "dependencies",
        "licences and sources, and who may use what",
        "tools/lint dependencies",
        60,
        ("tools",),
        CHECKED,
        ONE_CORE,
    ),
    Stage(
        "wheel",
        "the extension builds, and the wheel installs",
        f"tools/build-wheel $WHEEL && {ENVIRONMENT} .venv-$VERSION --group test --wheel $WHEELS",
        1800,
        ("tools",),
        TESTED,
    ),
    Stage(
        "site",
        "the documentation builds as a site, and its links and anchors lead somewhere",
        f"{ENVIRONMENT} .venv-docs --group docs && .venv-docs/bin/python tools/site",
        120,
        ("tools",),
        takes=ONE_CORE,
    ),
    Stage("rust", "the crates, each by itself", "tools/test-rust $NEXTEST", 1800, ("wheel",), TESTED),
    Stage(
        "clippy",
        "Rust's lints",
        "CARGO_BUILD_JOBS=1 tools/lint clippy",
        600,
        ("tools",),
        CHECKED,
        ONE_CORE,
        ("wheel", "rust"),
    ),
    Stage(
        "documentation",
        "Rust's documentation builds, and its links lead somewhere",
        "CARGO_BUILD_JOBS=1 tools/lint docs",
        300,
        ("tools",),
        takes=ONE_CORE,
        after=("wheel", "rust", "clippy"),
    ),
    Stage(
        "python",
        "units, protocol, recorded exchanges, end to end, every page",
        f'{MAIN} python {PYTEST} -n $PROCESSES -m "$EXTENT and not alone"',
        2700,
        ("wheel",),
        TESTED,
        long_s=1200,
    ),
    Stage(
        "python alone",
        "what measures memory, and needs the machine for itself",
        f'{MAIN} alone {PYTEST} -m "$EXTENT and alone" --ignore {UNDER_ATTACK}',
        420,
        ("wheel",),
        TESTED,
        WHOLE_MACHINE,
        long_s=900,
    ),
    Stage(
        "interpreters",
        "what Python itself runs, on the newest Python that is found; in the proof all units, on each",
        "tools/test-interpreters $INTERPRETERS",
        480,
        ("wheel",),
    ),
    Stage(
        "extras",
        "what needs extras, with all in one environment; its long forms and the heavy frameworks' pages: in the proof",
        f"{ENVIRONMENT} .venv-extras {EVERY_EXTRA} --wheel $WHEELS"
        f" && tools/run-pytest .venv-extras/bin/python extras {PYTEST} -n $PROCESSES --extra=every"
        f' -m "$EXTENT" {WITH_EXTRAS}',
        1200,
        ("wheel",),
        (GATE,),
    ),
    _extra(
        "sklearn", "models of scikit-learn, served and exported", "--extra sklearn --extra notebook", 600
    ),  # with pandas
    _extra(
        "trees",
        "models of XGBoost, LightGBM and CatBoost, served",
        "--extra xgboost --extra lightgbm --extra catboost",
        600,
    ),
    _extra("examples", "the folder `examples`", "--extra examples --extra notebook --group browser"),
    _extra("tune", "searches by optuna, Model Analyzer's files, pictures of trials", "--extra tune --extra plots"),
    _extra("plots", "pictures of records, streams and load tests", "--extra plots --extra tables --group browser"),
    _extra("batch", "batch runs over HDF5 and Parquet; files for HTCondor", "--extra batch --group engines"),
    _extra("dask", "batch runs on a cluster of Dask, servers beside its workers"),
    _extra("ray", "batch runs on Ray, servers in its actors and behind Ray Serve", "--extra ray --group engines"),
    _extra("buckets", "repositories in emulated buckets", "--group buckets"),
    _extra("hf", "a model of the Hugging Face Hub, by its own client"),
    _extra(
        "deploy",
        "what deploys a server, written, checked and sent to Kubernetes; its pods on a real node",
        "--extra deploy --group fleet",
        800,
    ),
    _extra(
        "google",
        "clusters of Google Cloud, by its own client against a simulator; a talk's cells on one",
        f"{FLEET} --extra notebook --extra torch --torch --group buckets",
    ),
    _extra("keras", "exports of Keras models; SavedModels and Keras files served", budget_s=600),
    _extra("openvino", "OpenVINO's models served"),
    _extra(
        "explain",
        "explainers by SHAP and captum; the example with KServe's pieces",
        "--extra explain --extra torch --torch --extra examples --extra deploy",
    ),
    _extra(
        "mlflow",
        "MLflow's folders served by the frameworks that they name; an ensemble of several frameworks",
        "--extra mlflow --extra sklearn --extra keras --extra xgboost --extra lightgbm --extra torch --torch",
        900,
    ),
    _extra(
        "torch",
        "models of PyTorch, served and exported, and the pages about them",
        "--extra torch --extra notebook --extra examples --extra plots --group buckets --torch",
        900,
    ),
    _bounds("lowest", "the lowest versions that the requirements allow serve, and what people type works"),
    _bounds("newest", "so do the newest"),
    Stage(
        "ways pool",
        "the same answers from the pool, step by step, with little memory for workers",
        f"{POOL} {MAIN} pool {ON_THE_WIRE}",
        900,
        ("wheel",),
        (PROOF,),
    ),
    Stage(
        "ways network",
        "the same answers from the network threads",
        f"{NETWORK} {MAIN} network {ON_THE_WIRE}",
        900,
        ("wheel",),
        (PROOF,),
    ),
    Stage(
        "under attack",
        "clients that behave well hardly notice others that do not",
        f"{MAIN} under-attack {PYTEST} {UNDER_ATTACK}",
        900,
        ("wheel",),
        (PROOF,),
        WHOLE_MACHINE,
    ),
    Stage(
        "sdist",
        "the source distribution builds, and what it builds passes the units",
        "tools/test-sdist",
        900,
        ("tools",),
        (PROOF,),
    ),
    Stage(
        "manylinux",
        "the wheel for older systems builds, and serves",
        f"{ENVIRONMENT} .venv-tools --group lint --group manylinux && tools/build-wheel manylinux"
        f" && {ENVIRONMENT} .venv-manylinux --group test --wheel dist/manylinux"
        " && tools/run-pytest .venv-manylinux/bin/python manylinux -q -p no:cacheprovider tests/e2e/test_serving.py",
        1500,
        ("tools",),
        (PROOF,),
    ),
    Stage(
        "guided",
        "the wheel that is compiled with a profile builds, and answers as recorded",
        "tools/profile dist/profile.profdata && tools/build-wheel release dist/profile.profdata"
        f" && {ENVIRONMENT} .venv-guided --group test --wheel dist/guided"
        " && tools/run-pytest .venv-guided/bin/python guided"
        f' {PYTEST} -n $PROCESSES -m "not proof and not alone" tests/conformance tests/e2e/test_serving.py',
        3000,
        ("tools",),
        (PROOF,),
        WHOLE_MACHINE,  # the profile is one of the bench
    ),
    Stage(
        "soak",
        "a server with faults, streams and workers for long",
        "tools/soak 210",
        1800,
        ("wheel",),
        (PROOF,),
        WHOLE_MACHINE,
    ),
)
