"""Looks for signals in the strain of two detectors, with and without injections, as searches do with hermes.

A streaming layer of its own keeps what the whitener needs of both streams, a preprocessor cuts it into whitened
windows, and a classifier scores each of them. What it finds is in `results.npz`, beside what it was computed from.
"""

import argparse
import logging
import time

import hermes.quiver as qv
import numpy as np
import torch
from hermes.aeriel.client import InferenceClient
from hermes.aeriel.monitor import ServerMonitor
from hermes.aeriel.serve import serve
from hermes.quiver.model import EnsembleModel, ExposedTensor
from hermes.quiver.streaming import utils as streaming_utils

IFOS = ["H1", "L1"]
SAMPLE_RATE = 256
INFERENCE_RATE = 16
KERNEL_LENGTH = 0.5
TAPS = 33
BATCH_SIZE = 4
UPDATES = 24

STRIDE = SAMPLE_RATE // INFERENCE_RATE
KERNEL = int(KERNEL_LENGTH * SAMPLE_RATE)


class BackgroundSnapshotter(torch.nn.Module):
    """Keeps the samples that windows and whitening filter reach back to."""

    def __init__(self, kernel: int, taps: int, stride: int):
        super().__init__()
        self.state_size = kernel + taps - 1 - stride

    def forward(self, update, snapshot):
        x = torch.cat([snapshot, update], dim=-1)
        return x, x[:, :, -self.state_size :]


class BatchWhitener(torch.nn.Module):
    """Whitens both streams and cuts them into windows, those of the background first."""

    def __init__(self, whitening: np.ndarray, kernel: int, stride: int, batch_size: int):
        super().__init__()
        self.register_buffer("whitening", torch.from_numpy(whitening)[:, None].clone())
        self.kernel, self.stride, self.batch_size = kernel, stride, batch_size

    def forward(self, strain):
        x = torch.nn.functional.conv1d(strain, self.whitening, groups=len(IFOS))
        windows = [x[:, :, i * self.stride : i * self.stride + self.kernel] for i in range(self.batch_size)]
        return torch.stack(windows, dim=1).reshape(2 * self.batch_size, len(IFOS), self.kernel)


def make_classifier():
    torch.manual_seed(101588)
    return torch.nn.Sequential(
        torch.nn.Conv1d(len(IFOS), 8, kernel_size=7, stride=2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool1d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(8, 1),
    )


def scale_model(model: qv.Model, instances: int):
    try:
        model.config.scale_instance_group(instances)
    except ValueError:
        model.config.add_instance_group(count=instances)


def add_preprocessor(ensemble: EnsembleModel, whitening: np.ndarray) -> ExposedTensor:
    snapshotter = BackgroundSnapshotter(KERNEL, TAPS, STRIDE)
    streaming_model = streaming_utils.add_streaming_model(
        ensemble.repository,
        streaming_layer=snapshotter,
        name="snapshotter",
        input_name="stream",
        input_shape=(2, len(IFOS), BATCH_SIZE * STRIDE),
        state_names=["snapshot"],
        state_shapes=[(2, len(IFOS), snapshotter.state_size)],
        output_names=["strain"],
        streams_per_gpu=1,
    )
    ensemble.add_input(streaming_model.inputs["stream"])

    preprocessor = ensemble.repository.add("preprocessor", platform=qv.Platform.ONNX)
    scale_model(preprocessor, 2)
    preprocessor.export_version(
        BatchWhitener(whitening, KERNEL, STRIDE, BATCH_SIZE),
        input_shapes={"strain": streaming_model.outputs["strain"].shape},
        output_names=["whitened"],
    )
    ensemble.pipe(streaming_model.outputs["strain"], preprocessor.inputs["strain"])
    return preprocessor.outputs["whitened"]


def export(repository_directory: str, whitening: np.ndarray, network: torch.nn.Module):
    repo = qv.ModelRepository(repository_directory, clean=True)
    classifier = repo.add("classifier", platform=qv.Platform.ONNX)
    scale_model(classifier, 1)
    classifier.export_version(
        network.eval(),
        input_shapes={"whitened": (2 * BATCH_SIZE, len(IFOS), KERNEL)},
        output_names=["discriminator"],
    )
    ensemble = repo.add("classifier-stream", platform=qv.Platform.ENSEMBLE)
    whitened = add_preprocessor(ensemble, whitening)
    ensemble.pipe(whitened, classifier.inputs["whitened"])
    ensemble.add_output(classifier.outputs["discriminator"])
    ensemble.export_version(None)

    snapshotter = repo.models["snapshotter"]
    snapshotter.config.sequence_batching.max_sequence_idle_microseconds = int(6e10)
    snapshotter.config.write()


class Callback:
    """Puts scores where they belong; gives both streams once the last ones are there."""

    def __init__(self, updates: int):
        self.background = np.zeros((updates, BATCH_SIZE))
        self.foreground = np.zeros((updates, BATCH_SIZE))
        self.started, self.missing = False, updates

    def __call__(self, y, request_id, sequence_id):
        self.started = True
        self.background[request_id], self.foreground[request_id] = y[:, 0].reshape(2, BATCH_SIZE)
        self.missing -= 1
        if not self.missing:
            return self.background.ravel(), self.foreground.ravel()


def infer(address: str, model_name: str, background: np.ndarray, foreground: np.ndarray):
    callback = Callback(UPDATES)
    client = InferenceClient(address, model_name, model_version=-1, callback=callback)
    monitor = ServerMonitor(model_name, "localhost", "stats.csv", model_version=-1, name="monitor", rate=10)
    size = BATCH_SIZE * STRIDE
    with client, monitor:
        for i in range(UPDATES):
            update = np.stack([x[:, i * size : (i + 1) * size] for x in (background, foreground)])
            client.infer(
                update.astype("float32"),
                request_id=i,
                sequence_id=1001,
                sequence_start=i == 0,
                sequence_end=i == UPDATES - 1,
            )
            # the first request takes longest: nothing is queued behind it
            while not callback.started:
                client.get()
                time.sleep(1e-3)
        while (result := client.get()) is None:
            time.sleep(1e-3)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repository-directory", default="repository")
    parser.add_argument("--image", default="hermes/tritonserver.sif")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO)

    rng = np.random.default_rng(1)
    background = rng.normal(size=(len(IFOS), UPDATES * BATCH_SIZE * STRIDE))
    foreground = background.copy()
    foreground[:, 640:704] += 4 * np.sin(np.arange(64) / 3)
    whitening = (rng.normal(size=(len(IFOS), TAPS)) * np.hanning(TAPS)).astype("float32")
    network = make_classifier()
    export(args.repository_directory, whitening, network)

    with serve(args.repository_directory, args.image, gpus=[0], log_file="server.log") as instance:
        instance.wait(timeout=100)
        results = infer("localhost:8001", "classifier-stream", background, foreground)

    weights = {f"weights.{name}": value.numpy() for name, value in network.state_dict().items()}
    np.savez(
        "results.npz",
        streams=np.stack([background, foreground]),
        whitening=whitening,
        results=np.stack(results),
        **weights,
    )


if __name__ == "__main__":
    main()
