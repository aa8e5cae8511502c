"""Subtracts noise that witness channels explain from a strain, as DeepClean does with hermes.

One snapshotter feeds two networks, the one in production and the one that is tried, and behind each an aggregator
averages the predictions that overlap. What they give is in `cleaned.npz`, beside what it was computed from.
"""

import sys
import time

import numpy as np
import torch
from hermes import quiver as qv
from hermes.aeriel.client import InferenceClient
from hermes.aeriel.serve import serve
from hermes.quiver.streaming import make_streaming_input_model, make_streaming_output_model

CHANNELS = ["PEM-1", "PEM-2", "PEM-3"]
KERNEL = 64
STRIDE = 8
NUM_UPDATES = 4
BATCH_SIZE = 2
STEPS = 30
NETWORKS = {"production": 1, "canary": 2}


class Network(torch.nn.Module):
    """Weights of the witnesses, and less trust in samples at the edges of a window."""

    def __init__(self, seed: int):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.register_buffer("weights", torch.randn(len(CHANNELS), 1, generator=generator))
        self.register_buffer("trust", torch.hann_window(KERNEL))

    def forward(self, witnesses):
        return (witnesses * self.weights).sum(dim=1) * self.trust


def export(repository: str):
    repo = qv.ModelRepository(repository, clean=True)
    ensemble = repo.add("deepclean-stream", platform=qv.Platform.ENSEMBLE)
    networks = {}
    for name, seed in NETWORKS.items():
        networks[name] = repo.add(f"deepclean-{name}", platform=qv.Platform.ONNX)
        networks[name].export_version(
            Network(seed), input_shapes={"witness": (BATCH_SIZE, len(CHANNELS), KERNEL)}, output_names=["noise"]
        )

    witnesses = [network.inputs["witness"] for network in networks.values()]
    snapshotter = make_streaming_input_model(repo, witnesses[:1], STRIDE, BATCH_SIZE, name="snapshotter")
    ensemble.add_input(snapshotter.inputs["snapshot_update"])
    (windows,) = snapshotter.outputs.values()
    for name, network in networks.items():
        ensemble.pipe(windows, network.inputs["witness"])
        aggregator = make_streaming_output_model(
            repo,
            input=network.outputs["noise"],
            update_size=STRIDE,
            num_updates=NUM_UPDATES,
            batch_size=BATCH_SIZE,
            name=f"aggregator-{name}",
        )
        ensemble.pipe(network.outputs["noise"], aggregator.inputs["update"], key=f"noise-{name}")
        ensemble.add_output(aggregator.outputs["output_stream"], key=f"aggregator-{name}")
    ensemble.export_version(None)

    for model in repo.models.values():
        if model.name.startswith(("snapshotter", "aggregator")):
            model.config.sequence_batching.max_sequence_idle_microseconds = int(60e6)
            model.config.write()


def clean(client: InferenceClient, witnesses: np.ndarray, strain: np.ndarray):
    """The strain without the noise that each network finds, as late as an average is complete."""
    size = STRIDE * BATCH_SIZE
    # what is complete comes so many steps later, so that the end of the stream needs as many more
    late = (NUM_UPDATES - 1) * STRIDE
    more = -(-late // size)
    padded = np.pad(witnesses, ((0, 0), (0, more * size)))
    noise = {}
    for i in range(STEPS + more):
        client.infer(
            padded[:, i * size : (i + 1) * size],
            request_id=i,
            sequence_id=1001,
            sequence_start=i == 0,
            sequence_end=i == STEPS + more - 1,
        )
    while len(noise) < STEPS + more:
        for response, request_id, _ in client.get(until_empty=True):
            noise[request_id] = response
        time.sleep(1e-3)
    cleaned = {}
    for name in NETWORKS:
        found = np.concatenate([noise[i][f"aggregator-{name}"][0] for i in range(STEPS + more)])
        cleaned[name] = strain - found[late : late + len(strain)]
    return cleaned


def main(repository: str, image: str):
    export(repository)
    rng = np.random.default_rng(2)
    witnesses = rng.normal(size=(len(CHANNELS), STEPS * STRIDE * BATCH_SIZE)).astype("float32")
    strain = rng.normal(size=witnesses.shape[1]).astype("float32")
    with serve(repository, image, wait=True), InferenceClient("localhost:8001", "deepclean-stream", 1) as client:
        cleaned = clean(client, witnesses, strain)
    weights = {f"weights.{name}": Network(seed).weights.numpy() for name, seed in NETWORKS.items()}
    np.savez("cleaned.npz", witnesses=witnesses, strain=strain, **cleaned, **weights)


if __name__ == "__main__":
    main(*sys.argv[1:])
