"""Programs in the style of hermes' users run as they stand, and what they find is what plain arithmetic finds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from support.checkout import ROOT
from support.waiting import TIMEOUT_S, until

SCRIPTS = ROOT / "tests" / "scripts" / "hermes"
Samples = NDArray[Any]


def command(script: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", "alipes.compat", "hermes", str(SCRIPTS / script), *map(str, arguments)]


def run(folder: Path, script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command(script, *arguments), cwd=folder, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def score(weights: dict[str, Samples], windows: Samples) -> Samples:
    """What the classifier says of windows, `[windows, detectors, samples]`."""
    kernel = weights["0.weight"]
    found = np.einsum("wcsk,ock->wos", sliding_window_view(windows, kernel.shape[2], axis=2)[:, :, ::2], kernel)
    features = np.maximum(found + weights["0.bias"][:, None], 0).mean(axis=2)
    return (features @ weights["4.weight"].T + weights["4.bias"])[:, 0]


@pytest.mark.proof
@pytest.mark.extra("torch")
@pytest.mark.slow("imports PyTorch, and exports three models")
@pytest.mark.timeout(300)
def test_a_classifier_scores_every_whitened_window_of_two_streams(tmp_path: Path) -> None:
    done = run(tmp_path, "classify.py")
    assert done.stderr.count("the container image hermes/tritonserver.sif is not used") == 1
    saved = np.load(tmp_path / "results.npz")
    weights = {name.removeprefix("weights."): saved[name] for name in saved.files if name.startswith("weights.")}
    whitening, stride, kernel = saved["whitening"], 16, 128
    for stream, scores in zip(saved["streams"].astype(np.float32), saved["results"], strict=True):
        padded = np.pad(stream, ((0, 0), (kernel + whitening.shape[1] - 1 - stride, 0)))
        pairs = zip(padded, whitening, strict=True)
        white = np.stack([np.convolve(channel, taps[::-1], mode="valid") for channel, taps in pairs])
        windows = sliding_window_view(white, kernel, axis=1)[:, ::stride].transpose(1, 0, 2)
        np.testing.assert_allclose(scores, score(weights, windows), rtol=1e-4, atol=1e-4)
    head, *rows = (tmp_path / "stats.csv").read_text().splitlines()
    assert head.startswith("timestamp,ip,model,count,")
    assert {row.split(",")[2] for row in rows} == {"snapshotter", "preprocessor", "classifier"}
    assert "Started GRPCInferenceService" in (tmp_path / "server.log").read_text()


@pytest.mark.extra("torch")
@pytest.mark.slow("imports PyTorch, and exports three models")
@pytest.mark.timeout(300)
def test_two_aggregators_average_what_two_networks_predict(tmp_path: Path) -> None:
    run(tmp_path, "clean.py", "repository", "image.sif")
    saved = np.load(tmp_path / "cleaned.npz")
    witnesses, strain, kernel, stride, updates = saved["witnesses"], saved["strain"], 64, 8, 4
    # A sample is predicted by the window that ends with its stride, and by the three that come next.
    trust = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(kernel) / kernel)
    shares = trust[-updates * stride :].reshape(updates, stride).mean(axis=0)
    for name in ("production", "canary"):
        noise = (witnesses * saved[f"weights.{name}"]).sum(axis=0) * np.tile(shares, len(strain) // stride)
        np.testing.assert_allclose(saved[name], strain - noise, rtol=1e-4, atol=1e-5)


def test_frames_pass_a_reader_a_filter_and_a_writer(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    for folder in (source, target):
        folder.mkdir()
    frames = np.random.default_rng(3).normal(size=(3, 256))
    np.save(source / "H-H1_strain-0.npy", frames[0])
    with subprocess.Popen(
        command("frames.py", source, target, len(frames)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "H-H1_clean-0.npy\n"
        for number in (2, 1):
            np.save(source / f"part-{number}.npy", frames[number])
            (source / f"part-{number}.npy").rename(source / f"H-H1_strain-{number}.npy")
        output, errors = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, output, errors) == (0, "H-H1_clean-1.npy\nH-H1_clean-2.npy\n", "")
    taps = np.hanning(9) / np.hanning(9).sum()
    expected = np.convolve(np.concatenate([np.zeros(8), frames.ravel()]), taps, mode="valid")
    cleaned = [np.load(target / f"H-H1_clean-{number}.npy") for number in range(3)]
    np.testing.assert_allclose(np.concatenate(cleaned), expected, rtol=1e-12)
    assert not (target / "failed").exists()


def test_a_damaged_frame_ends_the_script_with_its_error(tmp_path: Path) -> None:
    (tmp_path / "H-H1_strain-0.npy").write_bytes(b"no frame")
    done = subprocess.run(
        command("frames.py", tmp_path, tmp_path, 1), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert re.search(r"the process reader has failed: \w+: .*\n(.*\n)*.*in read\n", done.stderr)
    until((tmp_path / "failed").exists, "the writer's own clean-up was not called")
