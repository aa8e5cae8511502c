"""Makes a small network for the lab's eleven kinds of food, and a picture to try it on.

    python make_weights.py            # numpy alone: models/food_classifier/1/food11.npz
    python make_weights.py --torch    # the same network for PyTorch: models-torch/food_classifier/1/food11.pth

The lab's own network is a large one, trained on photographs that are not here. This one stands in for it: it knows one
typical colour of each kind of food and names the kind whose colour is nearest to the average of the picture. That is a
linear network: with the average colour x and a typical colour c, x is nearest to the c whose c.x - c.c / 2 is largest.
Put your own weights in its place.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

HERE: Final = Path(__file__).parent

# Red, green, blue; in the order of the lab's labels.
COLOURS: Final = {
    "Bread": (176, 124, 72),
    "Dairy product": (246, 240, 222),
    "Dessert": (232, 152, 180),
    "Egg": (250, 206, 64),
    "Fried food": (200, 128, 24),
    "Meat": (128, 48, 40),
    "Noodles/Pasta": (236, 200, 128),
    "Rice": (224, 224, 224),
    "Seafood": (248, 128, 104),
    "Soup": (200, 72, 16),
    "Vegetable/Fruit": (64, 152, 48),
}

# What the transform subtracts from each channel and divides it by.
MEAN: Final = np.array([0.485, 0.456, 0.406], np.float32)
STD: Final = np.array([0.229, 0.224, 0.225], np.float32)

# How sure the network is of what it says: a picture of one typical colour gets a probability near 1.
SHARPNESS: Final = 4.0


def weights() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Weight ``[11, 3]`` and bias ``[11]`` of the linear layer."""
    colours = (np.array(list(COLOURS.values()), np.float32) / 255 - MEAN) / STD
    return SHARPNESS * colours, -SHARPNESS / 2 * (colours**2).sum(axis=1)


def picture(food: str) -> Image.Image:
    """A plate of it, in its typical colour, on a table: 320 x 240."""
    image = Image.new("RGB", (320, 240), COLOURS[food])
    draw = ImageDraw.Draw(image)
    draw.ellipse((24, 24, 296, 216), outline=(255, 255, 255), width=6)
    draw.arc((72, 56, 248, 184), 200, 320, fill=(0, 0, 0), width=3)
    return image


def write_torch(path: Path) -> None:
    """The network as a whole PyTorch module, which is how the lab keeps its own."""
    import torch

    weight, bias = weights()
    linear = torch.nn.Linear(3, len(COLOURS))
    with torch.no_grad():
        linear.weight.copy_(torch.from_numpy(weight))
        linear.bias.copy_(torch.from_numpy(bias))
    torch.save(torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), linear), path)


def main() -> None:
    """Writes the weights and the picture."""
    parser = argparse.ArgumentParser(description="Make a small network for the lab, and a picture to try it on.")
    parser.add_argument("--torch", action="store_true", help="write it for PyTorch, into models-torch")
    if parser.parse_args().torch:
        written = HERE / "models-torch" / "food_classifier" / "1" / "food11.pth"
        write_torch(written)
    else:
        written = HERE / "models" / "food_classifier" / "1" / "food11.npz"
        weight, bias = weights()
        np.savez(written, weight=weight, bias=bias)
    picture("Soup").save(HERE / "test_image.jpeg", quality=95)
    print(f"wrote {written.relative_to(HERE)} and test_image.jpeg")


if __name__ == "__main__":
    main()
