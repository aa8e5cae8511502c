"""Requests for load tests and searches with the data of perf_analyzer's options: files, shapes, texts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from alipes.client import Client
from alipes.compat.perf_analyzer.model import Model
from alipes.compat.perf_analyzer.requests import dataset_of, tensor
from alipes.compat.perf_analyzer.settings import SentData
from alipes.loadtest import ModelRequests

__all__ = ["DataRequests"]


@dataclass(frozen=True)
class DataRequests(ModelRequests):
    """Inference requests whose steps perf_analyzer's data make; `data`, `shapes` and `text_length` count for nothing.

    Attributes:
        sent: The data. Rows are those of `batch`.
        digest: Of the files: requests with another one are others.
    """

    sent: SentData = field(default_factory=SentData)
    digest: str = ""

    @classmethod
    def of(cls, model: str, sent: SentData) -> DataRequests:
        """The requests for a model; the files are read again for each server, whose model says what they mean.

        Raises:
            OSError: If a file cannot be read.
        """
        return cls(model, batch=sent.batch, sent=sent, digest=_digest(sent.source))

    def tensors(self, client: Client) -> list[Sequence[tuple[Any, ...]]]:
        """The inputs of each request.

        Raises:
            Failed: If the data do not fit the model.
            AlipesError: If the server does not know the model.
        """
        metadata, config = client.metadata(self.model, self.version), client.config(self.model, self.version)
        model = Model.read(metadata, config, self.version)
        dataset = dataset_of(model, replace(self.sent, batch=self.batch))
        batches = dataset.batches(self.batch, model.max_batch > 0)
        return [[tensor(model, name, array) for name, array in step.items()] for step, _ in batches]


def _digest(source: str | Sequence[Path]) -> str:
    made = hashlib.sha256()
    for path in [] if isinstance(source, str) else source:
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            if file.is_file():
                made.update(f"{file.name} ".encode() + hashlib.sha256(file.read_bytes()).digest())
    return made.hexdigest()
