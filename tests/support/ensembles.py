"""Ensembles of models that `support.folders` makes, for tests that open no model file."""

from __future__ import annotations

from support.data_plane import DataPlane


def ensemble(*models: str, version: int = -1) -> str:
    """The configuration of an ensemble that calls models one after the other."""
    names = ["A", *(f"t{number}" for number in range(1, len(models))), "R"]
    steps = [
        f'{{ model_name: "{model}" model_version: {version} input_map {{ key: "X" value: "{before}" }} '
        f'output_map {{ key: "Y" value: "{after}" }} }}'
        for model, before, after in zip(models, names[:-1], names[1:], strict=True)
    ]
    return (
        'platform: "ensemble" max_batch_size: 4 input { name: "A" data_type: TYPE_FP32 dims: 2 } '
        f'output {{ name: "R" data_type: TYPE_FP32 dims: 2 }} ensemble_scheduling {{ step [ {", ".join(steps)} ] }}'
    )


def as_model(config: str) -> str:
    """An ensemble whose tensors are named as those of the other models, so that it can be a part of one."""
    return config.replace('"A"', '"X"').replace('"R"', '"Y"')


def serving(data_plane: DataPlane) -> set[str]:
    """The models that serve."""
    return {name for name, versions in data_plane.published.items() if versions}
