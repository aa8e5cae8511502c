"""The network: an encoder as of BERT, small enough to be trained in minutes on a laptop."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

WIDTH = 64
HEADS = 4
LAYERS = 3
#: Tokens of the longest sentence; the tokenizer truncates longer ones.
LONGEST = 48


class Attention(nn.Module):
    """Each token looks at all tokens that the mask leaves."""

    def __init__(self) -> None:
        """Random weights."""
        super().__init__()
        self.queries_keys_values = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, vectors: Tensor, bias: Tensor) -> Tensor:
        """Takes vectors `[batch, tokens, WIDTH]`, and what is added to their affinities `[batch, 1, 1, tokens]`."""
        heads = self.queries_keys_values(vectors).unflatten(-1, (3, HEADS, WIDTH // HEADS))
        queries, keys, values = heads.permute(2, 0, 3, 1, 4).unbind(0)
        affinities = queries @ keys.transpose(-1, -2) / math.sqrt(WIDTH // HEADS) + bias
        return self.output((affinities.softmax(-1) @ values).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Attention, then a small network for each token; both beside what goes around them."""

    def __init__(self) -> None:
        """Random weights."""
        super().__init__()
        self.attention, self.before_attention = Attention(), nn.LayerNorm(WIDTH)
        self.token = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )
        self.dropout = nn.Dropout(0.1)

    def forward(self, vectors: Tensor, bias: Tensor) -> Tensor:
        """Gives vectors of the same shape."""
        vectors = vectors + self.dropout(self.attention(self.before_attention(vectors), bias))
        return vectors + self.dropout(self.token(vectors))


class Encoder(nn.Module):
    """A vector for each token of a sentence; their mean is the sentence's."""

    def __init__(self, vocabulary: int) -> None:
        """Takes how many different tokens there are."""
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, WIDTH)
        self.positions = nn.Embedding(LONGEST, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.last = nn.LayerNorm(WIDTH)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Takes two INT64 `[batch, tokens]`, of at most `LONGEST` tokens, and gives FP32 `[batch, tokens, WIDTH]`."""
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        vectors = self.tokens(input_ids) + self.positions(places)
        bias = (1.0 - attention_mask[:, None, None, :].to(vectors.dtype)) * -1e4
        for layer in self.layers:
            vectors = layer(vectors, bias)
        return self.last(vectors)


class Cosine(nn.Module):
    """How alike two sentences are: the cosine of the angle between their vectors, which have the length 1."""

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        """Takes two FP32 `[batch, WIDTH]` and gives FP32 `[batch, 1]`."""
        return (one * other).sum(-1, keepdim=True)


def mean(vectors: Tensor, attention_mask: Tensor) -> Tensor:
    """What the backend `mean_pooling` does: the mean of the tokens that the mask leaves, with the length 1."""
    mask = attention_mask[:, :, None].to(vectors.dtype)
    return nn.functional.normalize((vectors * mask).sum(1) / mask.sum(1), dim=-1)
