"""Makes a small network for the lab's eleven kinds of food, and a picture to try it on.

    python make_weights.py               # food11.onnx, here and in the folders of models that want it
    python make_weights.py --torch       # the same network for PyTorch as well: food11.pth
    python make_weights.py --layers 14   # with layers of convolutions, which take about 20 ms of one core

The lab's own network is a large one, trained on photographs that are not here. This one stands in for it: it knows one
typical colour of each kind of food and names the kind whose colour is nearest to the average of the picture. That is a
linear network: with the average colour x and a typical colour c, x is nearest to the c whose c.x - c.c / 2 is largest.
Put your own weights in its place.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

import network
import numpy as np
import numpy.typing as npt
from food import CLASSES
from PIL import Image, ImageDraw

HERE: Final = Path(__file__).parent

# Red, green, blue.
COLOURS: Final = dict(
    zip(
        CLASSES,
        (
            (176, 124, 72),
            (246, 240, 222),
            (232, 152, 180),
            (250, 206, 64),
            (200, 128, 24),
            (128, 48, 40),
            (236, 200, 128),
            (224, 224, 224),
            (248, 128, 104),
            (200, 72, 16),
            (64, 152, 48),
        ),
        strict=True,
    )
)

# What the transform subtracts from each channel and divides it by.
MEAN: Final = np.array([0.485, 0.456, 0.406], np.float32)
STD: Final = np.array([0.229, 0.224, 0.225], np.float32)

# How sure the network is of what it says: a picture of one typical colour gets a probability near 1.
SHARPNESS: Final = 4.0

SIZE: Final = (512, 384)


def weights() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Weight ``[11, 3]`` and bias ``[11]`` of the linear layer."""
    colours = (np.array(list(COLOURS.values()), np.float32) / 255 - MEAN) / STD
    return SHARPNESS * colours, -SHARPNESS / 2 * (colours**2).sum(axis=1)


def picture(food: str) -> Image.Image:
    """A plate of it, in its typical colour, on a table: 512 x 384, grained so that its JPEG has some 30 kB."""
    image = Image.new("RGB", SIZE, COLOURS[food])
    draw = ImageDraw.Draw(image)
    draw.ellipse((40, 40, 472, 344), outline=(255, 255, 255), width=6)
    draw.arc((120, 96, 392, 288), 200, 320, fill=(0, 0, 0), width=3)
    grain = np.random.default_rng(11).normal(0, 4, (SIZE[1], SIZE[0], 1))
    return Image.fromarray(np.clip(np.asarray(image) + grain, 0, 255).round().astype(np.uint8))


def write(folder: Path, layers: int = 0, with_torch: bool = False) -> list[Path]:
    """Writes the picture, and the network to wherever a variant of the lab looks for it.

    Args:
        folder: A copy of this one.
        layers: Layers of convolutions; see `network.py`.
        with_torch: Whether PyTorch's form is written as well, which needs PyTorch.

    Returns:
        The files with the network.
    """
    net = network.Network(*weights(), layers=layers)
    written = [
        folder / "food11.onnx",
        folder / "models" / "food_classifier" / "1" / "food11.onnx",
        folder / "models-onnx" / "food_classifier_onnx" / "1" / "model.onnx",
        folder / "models-native" / "network" / "1" / "model.onnx",
    ]
    if with_torch:
        written += [folder / "food11.pth", folder / "models-torch" / "food_classifier" / "1" / "food11.pth"]
    # The other steps of the native ensemble, and the ensemble itself, have no file; a version is a folder all the same.
    for step in ("food_classifier", "read", "best"):
        (folder / "models-native" / step / "1").mkdir(parents=True, exist_ok=True)
    for file in written:
        file.parent.mkdir(parents=True, exist_ok=True)
        (net.save_torch if file.suffix == ".pth" else net.save_onnx)(file)
    picture("Soup").save(folder / "test_image.jpeg", quality=80)
    return written


def main() -> None:
    """Writes the weights and the picture."""
    parser = argparse.ArgumentParser(description="Make a small network for the lab, and a picture to try it on.")
    parser.add_argument("--torch", action="store_true", help="write it for PyTorch as well")
    parser.add_argument("--layers", type=int, default=0, help="layers of convolutions (default: none)")
    asked = parser.parse_args()
    for file in write(HERE, asked.layers, asked.torch):
        print(f"wrote {file.relative_to(HERE)}")
    print("wrote test_image.jpeg")


if __name__ == "__main__":
    main()
