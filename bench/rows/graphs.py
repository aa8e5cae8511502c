"""A graph of three steps: in one process by `alipes graph`, and by KServe's own router with alipes behind it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from bench.document import Document
from bench.fleet import ALIPES, Fleet
from bench.models.graph_models import COLUMNS, FACTORS, chain, chain_file, written
from bench.rows.documents import measured_cell
from bench.rows.load import RATE
from bench.rows.row import Better, Cell, Facts, Target
from bench.servers import alipes, kserve_router
from bench.servers.process import StartFailed

ROUTER = "KServe's router, alipes behind it"
CONNECTIONS = 64
TIMES_THE_ROUTER = 5


@cache
def _document() -> Document:
    row = [0.25 * number for number in range(COLUMNS)]
    product = 1.0
    for factor in FACTORS.values():
        product *= factor
    expected = tuple(product * value for value in row)
    return Document("graph", "/", {"instances": [row]}, expected, lambda answer: answer["predictions"])


@dataclass
class GraphRow:
    """The rate of a sequence of three models."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            "graph",
            f"A graph of three models, V1 JSON, {CONNECTIONS} connections",
            RATE,
            Better.MORE,
            (Target(ALIPES, ROUTER, TIMES_THE_ROUTER),),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """The graph with its models in one process, and the router with the same server behind it."""
        document = _document()
        ours = fleet.of_row(alipes.start(written(), "alipes_graph", [f"--graph={chain_file()}"]))
        cells = [measured_cell(ALIPES, ours, document, CONNECTIONS)]
        behind = fleet.of_row(alipes.start(written(), "alipes_behind_router"))
        try:
            spec = chain(f"127.0.0.1:{behind.http_port}")
            router = fleet.of_row(kserve_router.start(spec, behind, document))
        except StartFailed as error:
            fleet.skipped[kserve_router.PROGRAM] = str(error)
            return cells
        return [*cells, measured_cell(ROUTER, router, document, CONNECTIONS)]
