"""Asks a running server what food is on a picture, as the lab's web page does: `python classify.py test_image.jpeg`."""

from __future__ import annotations

import argparse
import base64
from pathlib import Path

import numpy as np
import tritonclient.http as httpclient


def classify(client: httpclient.InferenceServerClient, image_bytes: bytes) -> tuple[str, float]:
    """Label and probability of the content of an image file."""
    encoded_str = base64.b64encode(image_bytes).decode("utf-8")
    inputs = [httpclient.InferInput("INPUT_IMAGE", [1, 1], "BYTES")]
    inputs[0].set_data_from_numpy(np.array([[encoded_str]], dtype=object))
    outputs = [
        httpclient.InferRequestedOutput("FOOD_LABEL", binary_data=False),
        httpclient.InferRequestedOutput("PROBABILITY", binary_data=False),
    ]
    results = client.infer(model_name="food_classifier", inputs=inputs, outputs=outputs)
    return str(results.as_numpy("FOOD_LABEL")[0, 0]), float(results.as_numpy("PROBABILITY")[0, 0])


def main() -> None:
    """Reads the command line and prints the answer."""
    parser = argparse.ArgumentParser(description="Ask a server what food is on a picture.")
    parser.add_argument("picture", type=Path, help="an image file")
    parser.add_argument("--url", default="localhost:8000", help="the server's HTTP endpoint (default: %(default)s)")
    arguments = parser.parse_args()
    with httpclient.InferenceServerClient(arguments.url) as client:
        label, probability = classify(client, arguments.picture.read_bytes())
    print(f"{label} ({probability:.4f})")


if __name__ == "__main__":
    main()
