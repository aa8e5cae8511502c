"""What KServe's users serve, beside KServe's own server: a classifier of scikit-learn, and predictors of its SDK."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.document import Document
from bench.fleet import ALIPES, Fleet
from bench.models.scripts import written_by
from bench.rows.documents import measured_cell
from bench.rows.load import RATE
from bench.rows.row import Better, Cell, Facts, Row, Target
from bench.servers import kserve
from bench.servers.endpoint import Endpoint
from bench.servers.interpreters import advice, python_with

PEER = "kserve"
IRIS = "iris"
PREDICTORS = "predictors"
CONNECTIONS = 64
#: A request of KServe's documentation, and the classes that its model gives.
FLOWERS = ((6.8, 2.8, 4.8, 1.4), (6.0, 3.4, 4.5, 1.6))
CLASSES = (1, 1)

#: How a transformer of the SDK asks its predictor.
PROTOCOLS = ("v1", "grpc-v2")
ROW = [1.0, 2.0, 3.0, 4.0]

#: Starts a contender for a document, in an environment of the SDK or in ours.
Start = Callable[[Document], Endpoint]


def kserve_rows() -> list[Row]:
    """All of them, in the order of the table."""
    asked = {"V1": (_v1(IRIS, [list(row) for row in FLOWERS], CLASSES), 12), "V2": (_v2(), 15)}
    iris = [
        _IrisRow(_facts(f"kserve_iris_{protocol.lower()}", f"scikit-learn, two flowers, {protocol}", bound), document)
        for protocol, (document, bound) in asked.items()
    ]
    plain = _v1("double", [1, 2, 3, 4], (2, 4, 6, 8))
    chain = _v1("chain", [1, 2, 3, 4], (20, 30, 40, 50))
    scripts = [
        _ScriptRow(_facts("kserve_sdk", "A predictor of KServe's SDK, V1", 6), plain),
        _ScriptRow(_facts("kserve_sdk_async", "A predictor of KServe's SDK with async handlers, V1", 6), chain),
    ]
    pairs = [
        _PairRow(_pair_facts("kserve_pair", "A transformer and its predictor", 8), "shifter"),
        _PairRow(_pair_facts("kserve_pair_rows", "A transformer of rows and its predictor", 8), "shifter_of_rows"),
    ]
    return [*iris, *scripts, *pairs]


def label(workers: int) -> str:
    """The SDK's own server with so many processes."""
    return f"KServe SDK, {workers} worker{'s' if workers > 1 else ''}"


def several_workers() -> tuple[int, ...]:
    """One process, and one a core: which is best depends on what shares the cores."""
    return tuple(sorted({1, os.cpu_count() or 1}))


def _pair_facts(name: str, title: str, over_grpc: float) -> Facts:
    """What a row of pairs says; the SDK's transformer asks over V1 unless it is told otherwise."""
    bounds = dict(zip(PROTOCOLS, (8.0, over_grpc), strict=True))
    targets = tuple(Target(ALIPES, pair_label(protocol), bound) for protocol, bound in bounds.items())
    return Facts(name, f"{title}, V1, {CONNECTIONS} connections", RATE, Better.MORE, targets)


def pair_label(protocol: str) -> str:
    """A transformer and a predictor of the SDK, by how the one asks the other."""
    return f"KServe SDK, {protocol}"


def _facts(name: str, title: str, bound: float) -> Facts:
    targets = tuple(Target(ALIPES, label(workers), bound) for workers in several_workers())
    return Facts(name, f"{title}, {CONNECTIONS} connections", RATE, Better.MORE, targets)


def _v1(model: str, instances: object, expected: tuple[float, ...]) -> Document:
    path = f"/v1/models/{model}:predict"
    return Document(f"{model}_v1", path, {"instances": instances}, expected, _predictions)


def _predictions(answer: dict[str, object]) -> object:
    return answer["predictions"]


def _v2() -> Document:
    """The flowers in a tensor of the name and the type that alipes gives it; the SDK's server takes any."""

    def numbers(answer: dict[str, list[dict[str, object]]]) -> object:
        return answer["outputs"][0]["data"]

    values = [value for row in FLOWERS for value in row]
    tensor = {"name": "input", "datatype": "FP64", "shape": [len(FLOWERS), len(FLOWERS[0])], "data": values}
    return Document(f"{IRIS}_v2", f"/v2/models/{IRIS}/infer", {"inputs": [tensor]}, CLASSES, numbers)


@dataclass(frozen=True)
class _IrisRow:
    facts: Facts
    document: Document

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """alipes on the model's file, and the SDK's server of the same file."""
        python = python_with("sklearn", "sklearn")
        if python is None:
            fleet.skipped[IRIS] = advice("scikit-learn", "sklearn")
            return []
        files = written_by(IRIS, python)
        ours = fleet.of_row(kserve.start_store(files, IRIS, self.document, python))

        def sdk(folder: Path, workers: int) -> Endpoint:
            # The file of another release of scikit-learn may not open.
            store = written_by(IRIS, folder / "bin" / "python", mark="-kserve")
            return kserve.start_sdk(folder, IRIS, workers, self.document, ["--model_name=iris", f"--model_dir={store}"])

        return [_cell(ALIPES, ours, self.document), *_sdk_cells(fleet, self.document, sdk)]


@dataclass(frozen=True)
class _ScriptRow:
    facts: Facts
    document: Document

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """The same script, run by alipes and by the SDK."""
        ours = fleet.of_row(kserve.start_script(PREDICTORS, self.document))

        def sdk(folder: Path, workers: int) -> Endpoint:
            return kserve.start_sdk(folder, PREDICTORS, workers, self.document)

        return [_cell(ALIPES, ours, self.document), *_sdk_cells(fleet, self.document, sdk)]


@dataclass(frozen=True)
class _PairRow:
    facts: Facts
    #: The transformer's file in `bench/apps`.
    transformer: str

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """A transformer and its predictor, both ours; and both the SDK's, over V1 and over gRPC."""
        doubled = tuple(2 * value for value in ROW)
        shifted = tuple(2 * (value + 1) for value in ROW)
        # Rows are the argument of one transformer, and the document of the other.
        document = _v1("shift", [ROW], shifted)
        if self.transformer == "shifter":
            document = Document("shift", "/shift", {"instances": [ROW]}, shifted, _predictions)
        ours = fleet.of_row(kserve.start_pair(self.transformer, document, _v1("double", [ROW], doubled)))
        cells = [_cell(ALIPES, ours, document)]
        theirs, behind = _v1("shift", [ROW], shifted), _v1("shift", [ROW], doubled)
        for protocol in PROTOCOLS:
            found = fleet.peer_of_row(
                PEER, PEER, lambda folder, protocol=protocol: kserve.start_sdk_pair(folder, protocol, theirs, behind)
            )
            if found is not None:
                cells.append(_cell(pair_label(protocol), found, theirs))
        return cells


def _sdk_cells(fleet: Fleet, document: Document, start: Callable[[Path, int], Endpoint]) -> list[Cell]:
    cells = []
    for workers in several_workers():
        found = fleet.peer_of_row(PEER, PEER, lambda folder, workers=workers: start(folder, workers))
        if found is not None:
            cells.append(_cell(label(workers), found, document))
    return cells


def _cell(title: str, endpoint: Endpoint, document: Document) -> Cell:
    return measured_cell(title, endpoint, document, CONNECTIONS)
