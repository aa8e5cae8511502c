"""`tools/new` writes skeletons that compile, are free of lints and pass their tests; or it writes nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.checkout import ROOT, Checkout, cargo_environment

RECIPES = {
    "backend": ["backend", "mine"],
    "flag": ["flag", "late-start"],
    "flag of the data plane": ["flag", "grace-secs", "--kind=seconds", "--group=connections", "--data-plane"],
    "route": ["route", "v2/uptime"],
    "route of a model": ["route", "v2/models/{model}/age", "--group=statistics"],
    "counter": ["metric", "alipes_late_answers_total"],
    "gauge": ["metric", "alipes_open_files"],
}
CRATES = ("alipes-http", "alipes-service", "alipes-spec", "alipes-stats")
PACKAGES = [argument for crate in CRATES for argument in ("--package", crate)]


def new(checkout: Checkout, *arguments: str) -> subprocess.CompletedProcess[str]:
    return checkout.run(sys.executable, "tools/new", *arguments)


def added(checkout: Checkout, *arguments: str) -> str:
    """The report of a recipe that ran."""
    done = new(checkout, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def files(report: str) -> list[str]:
    """The files that a report names as written or changed."""
    return [line.split()[1] for line in report.splitlines() if line.startswith(("wrote ", "changed "))]


def tool(name: str) -> str | None:
    """A tool of the lints: of this checkout, else on the path."""
    own = ROOT / ".venv-tools" / "bin" / name
    return str(own) if own.exists() else shutil.which(name)


@dataclass(frozen=True)
class Full:
    """A copy with what every recipe has written: their reports, and the files that each of them changed."""

    checkout: Checkout
    reports: dict[str, str]
    changed: dict[str, set[str]]

    def python(self) -> list[str]:
        """The files in Python."""
        return sorted({name for names in self.changed.values() for name in names if name.endswith(".py")})


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A copy of the checkout that every test leaves as it was."""
    return Checkout.copy_to(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Full:
    """A copy in which every recipe has run."""
    full = Full(Checkout.copy_to(tmp_path_factory.mktemp("full")), {}, {})
    for recipe, arguments in RECIPES.items():
        before = full.checkout.state()
        full.reports[recipe] = added(full.checkout, *arguments)
        after = full.checkout.state()
        full.changed[recipe] = {name for name in after if after[name] != before.get(name)}
    return full


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_reports_what_it_wrote_and_what_is_left_to_fill_in(full: Full, recipe: str) -> None:
    report = full.reports[recipe]
    assert set(files(report)) == full.changed[recipe]
    marked = {line.split(":")[0].strip() for line in report.splitlines() if "todo:" in line}
    assert marked
    assert marked <= full.changed[recipe]


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_name_that_exists_is_refused_and_nothing_is_written(full: Full, recipe: str) -> None:
    before = full.checkout.state()
    done = new(full.checkout, *RECIPES[recipe])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("already. Nothing was written.\n")
    assert full.checkout.state() == before


@pytest.mark.parametrize("recipe", RECIPES)
def test_where_a_place_is_missing_nothing_is_written(checkout: Checkout, full: Full, recipe: str) -> None:
    for name in sorted(full.changed[recipe] & checkout.state().keys()):
        file = checkout.folder / name
        text = file.read_text()
        file.write_text("Nothing is left here.\n")
        before = checkout.state()
        done = new(checkout, *RECIPES[recipe])
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"tools/new: {name}: ")
        assert checkout.state() == before
        file.write_text(text)


@pytest.mark.parametrize(
    "arguments",
    [
        ["backend", "class"],
        ["backend", "Mine"],
        ["backend", "python"],
        ["backend", "prepare"],
        ["flag", "a" * 29],
        ["flag", "http-port"],
        ["route", "v3/uptime"],
        ["route", "v2/models/digits"],
        ["route", "v2/a/b/c"],
        ["route", "v2/health/live"],
        ["route", "v2/models/{model}/config"],
        ["route", "v2/health/start", "--group=logging"],
        ["route", "v2/start", "--group=unknown"],
        ["route", "v2/lookup"],
        ["metric", "late_answers"],
        ["metric", "alipes_inference_count"],
    ],
    ids=" ".join,
)
def test_a_name_that_does_not_fit_is_refused_and_nothing_is_written(checkout: Checkout, arguments: list[str]) -> None:
    before = checkout.state()
    done = new(checkout, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("Nothing was written.\n")
    assert checkout.state() == before


def test_what_is_written_in_python_is_free_of_lints(full: Full) -> None:
    ruff = tool("ruff")
    if ruff is None:
        pytest.skip("ruff is not installed: `make tools` does it")
    for command in (["check", "--no-cache"], ["format", "--no-cache", "--check"]):
        done = full.checkout.run(ruff, *command, *full.python())
        assert done.returncode == 0, done.stdout


def test_what_is_written_in_python_passes_its_tests(full: Full) -> None:
    done = full.checkout.pytest(
        "tests/unit/backends/test_mine_backend.py",
        "tests/unit/config/test_flag_late_start.py",
        "tests/unit/config/test_flag_grace_secs.py",
        "tests/unit/config/test_config_flags.py",
        "tests/unit/config/test_config_reference.py",
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not on the PATH")
def test_what_is_written_in_rust_is_formatted_and_can_be_read(full: Full) -> None:
    done = full.checkout.run("cargo", "fmt", "--check", *PACKAGES)
    assert done.returncode == 0, done.stdout


@pytest.mark.proof  # compiles four crates and those beneath them
@pytest.mark.timeout(600)  # with their dependencies, where none was compiled before
@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not on the PATH")
def test_what_is_written_in_rust_compiles_without_a_warning(full: Full) -> None:
    if not (ROOT / ".cargo" / "config.toml").exists():
        pytest.skip("there are no build settings: tools/settings writes them")
    done = full.checkout.run(
        *("cargo", "clippy", "--offline", "--locked", "--all-targets", *PACKAGES, "--", "-D", "warnings"),
        environment=cargo_environment(),
    )
    assert done.returncode == 0, done.stderr


def install(package: Path) -> Path:
    """Does what an installer does for an editable package, from its pyproject.toml; gives the folder of its sources."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    about = package / "src" / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (about / "entry_points.txt").write_text("\n".join(points))
    return package / "src"


def test_a_package_of_its_own_is_found_by_its_entry_point(checkout: Checkout, tmp_path: Path) -> None:
    package = tmp_path / "package"
    before = checkout.state()
    added(checkout, "backend", "mine", f"--package={package}")
    assert checkout.state() == before
    tests = f"--rootdir={package}", "-c", str(package / "pyproject.toml"), str(package / "tests")
    done = checkout.pytest(*tests)
    assert done.returncode != 0, "a package that is not installed is not found"
    done = checkout.pytest(*tests, path=(install(package),))
    assert (done.returncode, "3 passed" in done.stdout) == (0, True), done.stdout
    refused = new(checkout, "backend", "mine", f"--package={package}")
    assert (refused.returncode, refused.stdout) == (1, "")
