"""Who takes part: the labels of the contenders, and rows in which all of them do the same work."""

from bench.fleet import ALIPES, FLOOR
from bench.rows.load import Contender
from bench.work import Work

HYPER = "hyper floor"
TONIC = "tonic floor"
MOSEC = "Mosec"
FASTAPI = "FastAPI"
LITSERVE = "LitServe"
BENTOML = "BentoML"
MLSERVER = "MLServer"
TORCHSERVE = "TorchServe"
TRITON = "Triton, Python backend"


def beside(piece: Work, floor: str, **peers: str) -> tuple[Contender, ...]:
    """alipes, its floor and peers (server name to label), all with the same work."""
    others = [Contender(label, server, piece) for server, label in peers.items()]
    return (Contender(ALIPES, ALIPES, piece), Contender(floor, FLOOR, piece), *others)
