"""The lab's page in FastAPI, in its second form, with ONNX Runtime: `uvicorn fastapi_onnx:app`."""

import base64
import io

import numpy as np
import onnxruntime
from fastapi import FastAPI
from food import CLASSES
from PIL import Image
from pydantic import BaseModel, Field
from transform import transform

app = FastAPI(title="Food Classification API", description="Names the food on a picture.", version="1.0.0")


class ImageRequest(BaseModel):
    """A picture."""

    image: str  # base64 of an image file


class PredictionResponse(BaseModel):
    """What is on it."""

    prediction: str
    probability: float = Field(..., ge=0, le=1)


MODEL_PATH = "food11.onnx"
session = onnxruntime.InferenceSession(MODEL_PATH, providers=["CPUExecutionProvider"])


@app.post("/predict")
def predict_image(request: ImageRequest) -> PredictionResponse | dict[str, str]:
    """One picture at a time, each in a thread of the pool."""
    try:
        file = io.BytesIO(base64.b64decode(request.image))
        # Left to choose, Pillow also tries readers that start other programs.
        image = Image.open(file, formats=("JPEG", "PNG", "WEBP")).convert("RGB")
        logits = session.run(["output"], {"input": transform(image)[np.newaxis]})[0][0]
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        predicted_class = int(shares.argmax())
        return PredictionResponse(prediction=CLASSES[predicted_class], probability=float(shares[predicted_class]))
    except Exception as error:
        return {"error": str(error)}
