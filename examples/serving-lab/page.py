"""The lab's page in Flask: a form for a picture, and what food is on it. `flask --app page run`.

The page runs no model; environment variables say who does, as in the lab:

* `FASTAPI_SERVER_URL`: one of the FastAPI pages, such as `http://localhost:8000`.
* `TRITON_SERVER_URL` and `FOOD11_MODEL_NAME`: a model of a server of Triton's protocol, such as `localhost:8000`. Of
  `food_classifier` it asks a label and a probability for the base64 of the file: the app is the page only.
  `food_classifier_onnx` takes pixels and gives scores: what comes before and after it is in the app.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable

import numpy as np
import requests
import tritonclient.http as httpclient
from flask import Flask, render_template, request
from variants import Answer, best, pixels

Ask = Callable[[bytes], Answer]
TIMEOUT_S = 30.0
# Far more than a picture from a camera.
MAX_FILE_BYTES = 32 << 20


def ask_fastapi(url: str, picture: bytes) -> Answer:
    """Posts the base64 of the file."""
    encoded = base64.b64encode(picture).decode("utf-8")
    response = requests.post(f"{url}/predict", json={"image": encoded}, timeout=TIMEOUT_S)
    response.raise_for_status()
    said = response.json()
    if "error" in said:
        raise ValueError(said["error"])
    return Answer(said["prediction"], said["probability"])


def ask_classifier(url: str, model: str, picture: bytes) -> Answer:
    """Sends the base64 of the file to a model that does all the rest."""
    tensor = httpclient.InferInput("INPUT_IMAGE", [1, 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[base64.b64encode(picture).decode("utf-8")]], dtype=object))
    wanted = [httpclient.InferRequestedOutput(name, binary_data=False) for name in ("FOOD_LABEL", "PROBABILITY")]
    with httpclient.InferenceServerClient(url) as client:
        results = client.infer(model, [tensor], outputs=wanted)
    return Answer(str(results.as_numpy("FOOD_LABEL")[0, 0]), float(results.as_numpy("PROBABILITY")[0, 0]))


def ask_network(url: str, model: str, picture: bytes) -> Answer:
    """Reads the picture here, sends its pixels, and makes a label and a probability of the scores."""
    tensor = httpclient.InferInput("input", [1, 3, 224, 224], "FP32")
    tensor.set_data_from_numpy(pixels(picture))
    with httpclient.InferenceServerClient(url) as client:
        return best(client.infer(model, [tensor]).as_numpy("output")[0])


def configured(environment: dict[str, str]) -> tuple[Ask, str]:
    """Who is asked, and what the page says of it.

    Raises:
        KeyError: If no variable names a server.
    """
    if url := environment.get("FASTAPI_SERVER_URL"):
        return lambda picture: ask_fastapi(url, picture), f"asks FastAPI at {url}"
    url = environment["TRITON_SERVER_URL"]
    model = environment.get("FOOD11_MODEL_NAME", "food_classifier")
    ask, steps = (ask_network, "before and after it: this app") if model.endswith("_onnx") else (ask_classifier, "")
    return lambda picture: ask(url, model, picture), "; ".join(filter(None, [f"asks {model} at {url}", steps]))


app = Flask(__name__)
app.config["MAX_CONTENT_LENGTH"] = MAX_FILE_BYTES
ask, about = configured(dict(os.environ))


@app.get("/")
def form() -> str:
    """The form."""
    return render_template("index.html", about=about)


@app.post("/")
def predict() -> tuple[str, int]:
    """The form again, with the picture that was sent and what food is on it."""
    file = request.files.get("file")
    picture = file.read() if file is not None else b""
    if not picture:
        return render_template("index.html", about=about, error="Choose a picture first."), 400
    try:
        answer = ask(picture)
    except Exception as error:
        app.logger.warning("no answer: %r", error)
        return render_template("index.html", about=about, error=f"Nobody can tell: {error}"), 502
    shown = f"data:{file.mimetype};base64,{base64.b64encode(picture).decode()}"
    page = render_template("index.html", about=about, label=answer.label, probability=answer.probability, picture=shown)
    return page, 200
