"""The same model as a function: a picture in, a label and a probability out. `alipes serve app.py`."""

from dataclasses import dataclass
from pathlib import Path

import alipes
import numpy as np
import onnxruntime
from food import CLASSES
from PIL import Image
from transform import transform


@dataclass
class Prediction:
    """What is on a picture."""

    prediction: str
    probability: float


@alipes.model(name="food", instances=2)
class Food:
    """Names the food on a picture."""

    def setup(self) -> None:
        """Loads the network, once in each instance."""
        # Two instances share two cores: a thread for each.
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        path = Path(__file__).with_name("food11.onnx")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def predict(self, image: Image.Image) -> Prediction:
        """The likeliest kind of food."""
        pixels = transform(image.convert("RGB"))[np.newaxis]
        logits = self.session.run(["output"], {"input": pixels})[0][0]
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        best = int(shares.argmax())
        return Prediction(CLASSES[best], float(shares[best]))
