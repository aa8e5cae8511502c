"""Functions behind JSON endpoints: the README's, and one over numpy that is called for several requests at once."""

import numpy as np

from bench.document import Document
from bench.fleet import ALIPES
from bench.rows.contenders import BENTOML, FASTAPI, LITSERVE, MOSEC
from bench.rows.documents import DocumentRow, Posted, app, program
from bench.rows.load import RATE
from bench.rows.row import Better, Facts, Row, Target

CONNECTIONS = 64
#: The README's request.
LOUDER = Document("louder", "/louder", {"sound": [1, 2, 3]}, (2.0, 4.0, 6.0))


def score_document(name: str = "score", rows: int = 0) -> Document:
    """A row for `score`; with ``rows`` as an array of so many rows, for a server whose batches show in the document."""
    x = np.linspace(0, 1, 16, dtype=np.float32)
    weights = np.linspace(-1, 1, 64, dtype=np.float32).reshape(16, 4)
    content = [x.tolist()] * rows if rows else x.tolist()
    expected = np.tile(np.tanh(x @ weights), rows or 1)
    return Document(name, "/score", {"x": content}, tuple(expected.tolist()))


def function_rows() -> list[Row]:
    """Both rows, in the order of the table."""
    return [_one_at_a_time(), _batched()]


def _one_at_a_time() -> Row:
    title = f"The README's function, JSON in and out, {CONNECTIONS} connections"
    targets = (
        Target(ALIPES, FASTAPI, 6),
        Target(ALIPES, LITSERVE, 20),
        Target(ALIPES, MOSEC, 3),
        Target(ALIPES, BENTOML),
    )
    peers = {"fastapi": FASTAPI, "litserve": LITSERVE, "mosec": MOSEC, "bentoml": BENTOML}
    contenders = (
        Posted(ALIPES, LOUDER, app("louder")),
        *(Posted(label, LOUDER, program(peer, "louder")) for peer, label in peers.items()),
    )
    return DocumentRow(Facts("function", title, RATE, Better.MORE, targets), contenders, CONNECTIONS)


def _batched() -> Row:
    title = f"Batched function over numpy, JSON in and out, {CONNECTIONS} connections"
    targets = (Target(ALIPES, MOSEC, 3), Target(ALIPES, LITSERVE, 20), Target(ALIPES, BENTOML), Target(ALIPES, FASTAPI))
    one = score_document()
    contenders = (
        Posted(ALIPES, one, app("score")),
        Posted(MOSEC, one, program("mosec", "score")),
        Posted(LITSERVE, one, program("litserve", "score")),
        Posted(BENTOML, score_document("score_rows", rows=1), program("bentoml", "score")),
        # It has no batching: each request is a call.
        Posted(FASTAPI, one, program("fastapi", "score")),
    )
    return DocumentRow(Facts("function_batched", title, RATE, Better.MORE, targets), contenders, CONNECTIONS)
