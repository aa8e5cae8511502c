"""A model that is bound by its arithmetic, beside a raw loop over the same engine with the same batches."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.fleet import ALIPES, Fleet
from bench.load import wrk
from bench.models.repository import MODELS, repository
from bench.rows.batches import Batches, Engine
from bench.rows.row import Better, Cell, Facts, Target
from bench.work import BINARY, work

#: Twice the largest batch: the next one is complete when the instance becomes free.
CONNECTIONS = 16
RAW = "raw ONNX Runtime loop"


@dataclass
class ConvRow:
    """Rows of the convolution net in a second."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="conv",
            title=f"Compute-bound convolution net, HTTP binary, {CONNECTIONS} connections",
            unit="requests/s",
            better=Better.MORE,
            targets=(Target(ALIPES, RAW, 0.97),),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """alipes first, as the loop repeats its batches."""
        piece = work("conv", BINARY)
        endpoint = fleet.endpoint(ALIPES, piece)
        if endpoint is None:
            return []
        batches = Batches("conv")
        engine = Engine("onnx", repository() / "conv" / "1" / "model.onnx", MODELS["conv"].input_dims)
        return [
            Cell(
                ALIPES,
                lambda seconds: batches.served(
                    endpoint, lambda: wrk.post(endpoint.http_port, piece, CONNECTIONS, seconds)
                ),
            ),
            Cell(RAW, lambda seconds: batches.raw(engine, seconds)),
        ]
