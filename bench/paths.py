"""Where the bench finds and leaves its files."""

from pathlib import Path

BENCH = Path(__file__).resolve().parent
PROJECT = BENCH.parent
#: What is written again where it is missing: models, bodies, logs.
WORK = BENCH / ".work"
#: An environment for each peer.
ENVIRONMENTS = BENCH / ".envs"
#: Raw data, one file a run.
RESULTS = BENCH / "results"
#: Published figures.
DOCS = PROJECT / "docs"
FLOORS = BENCH / "floors"


def compiled(program: str) -> Path:
    """A program of the floors' workspace, which `bench.servers.floors` compiles."""
    return FLOORS / "target" / "release" / program
