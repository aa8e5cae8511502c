"""The lab's page in FastAPI, in its first form, with PyTorch: `uvicorn fastapi_pt:app`.

As in the lab, but for torchvision's transform, which `transform.py` does in Pillow and numpy.
"""

import base64
import io

import torch
import torch.nn.functional as F
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


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
MODEL_PATH = "food11.pth"
model = torch.load(MODEL_PATH, map_location=device, weights_only=False)
model.to(device)
model.eval()


def preprocess_image(image: Image.Image) -> torch.Tensor:
    """FP32 ``[1, 3, 224, 224]``."""
    return torch.from_numpy(transform(image)).unsqueeze(0)


@app.post("/predict")
def predict_image(request: ImageRequest) -> PredictionResponse | dict[str, str]:
    """One picture at a time, each in a thread of the pool."""
    try:
        file = io.BytesIO(base64.b64decode(request.image))
        # Left to choose, Pillow also tries readers that start other programs.
        image = Image.open(file, formats=("JPEG", "PNG", "WEBP")).convert("RGB")
        batch = preprocess_image(image).to(device)
        with torch.no_grad():
            probabilities = F.softmax(model(batch), dim=1)
            predicted_class = torch.argmax(probabilities, 1).item()
            confidence = probabilities[0, predicted_class].item()
        return PredictionResponse(prediction=CLASSES[predicted_class], probability=confidence)
    except Exception as error:
        return {"error": str(error)}
