"""What a model cannot be that a graph calls."""

from __future__ import annotations

from alipes.config.options import GraphOptions
from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError

__all__ = ["check_graph_step"]


def check_graph_step(config: ModelConfig, graph: GraphOptions) -> None:
    """A decoupled model can only end a graph: nothing follows on any number of responses.

    Args:
        config: The configuration of the model.
        graph: The graph of the server.

    Raises:
        ConfigError: If the graph needs one response of the model, and the model is decoupled.
    """
    place = graph.single_responses.get(config.name)
    if place is not None and config.model_transaction_policy.decoupled:
        raise ConfigError(
            f"model {config.name} is decoupled, and the graph needs one response of it at {place}. "
            "Let it end the graph: as the last step of a Sequence, or as a step of a Splitter or Switch that does.",
            key="model_transaction_policy.decoupled",
        )
