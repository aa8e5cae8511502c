"""Models that keep in the server what their clients would send again and again.

A *snapshotter* turns updates into overlapping windows, an *averager* overlapping predictions into their mean. By
default both are the server's own, which run many streams at a time without any file; `platform=` asks for exported
ones, which give the same bits. `EnsembleModel.add_streaming_inputs` and `add_streaming_output` put them before and
behind other models. `take_states` and `put_states` move a live sequence from one server to another. Names are imported
on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily

__all__ = [
    "OnlineAverager",
    "Snapshotter",
    "add_streaming_model",
    "make_streaming_input_model",
    "make_streaming_output_model",
    "put_states",
    "take_states",
]

if TYPE_CHECKING:
    from alipes.repository.streaming.exported import add_streaming_model
    from alipes.repository.streaming.layers import OnlineAverager, Snapshotter
    from alipes.repository.streaming.make import make_streaming_input_model, make_streaming_output_model
    from alipes.streaming.states import put_states, take_states

_HOMES = {
    "OnlineAverager": "alipes.repository.streaming.layers",
    "Snapshotter": "alipes.repository.streaming.layers",
    "add_streaming_model": "alipes.repository.streaming.exported",
    "make_streaming_input_model": "alipes.repository.streaming.make",
    "make_streaming_output_model": "alipes.repository.streaming.make",
    "put_states": "alipes.streaming.states",
    "take_states": "alipes.streaming.states",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
