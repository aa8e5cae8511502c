"""Words as pictures, and scores as words again."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

#: Class 0 is the blank, which stands between characters; capitals are read as small letters.
ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
WIDTH, HEIGHT = 100, 32


def draw(word: str, size: int = 28, ink: int = 0, paper: int = 255, margin: int = 3) -> Image.Image:
    """Draws a word in Pillow's own font and cuts it out, as a text detector would.

    Args:
        word: Letters and digits.
        size: Of the font, in pixels.
        ink: Grey of the letters, of 0 to 255.
        paper: Grey behind them.
        margin: Pixels around the word.

    Returns:
        A grey picture as large as the word.
    """
    font = ImageFont.load_default(size)
    left, top, right, bottom = font.getbbox(word)
    box = (int(right - left) + 2 * margin, int(bottom - top) + 2 * margin)
    picture = Image.new("L", box, paper)
    ImageDraw.Draw(picture).text((margin - left, margin - top), word, fill=ink, font=font)
    return picture


def to_tensor(picture: Image.Image) -> npt.NDArray[np.float32]:
    """The input of the network, FP32 `[1, 32, 100]` of -1 to 1: the picture in grey, in that size."""
    grey = picture.convert("L").resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
    return (np.asarray(grey, np.float32) / 127.5 - 1.0)[None]


def to_word(scores: npt.NDArray[np.float32]) -> str:
    """The word of scores `[columns, classes]`: the best class of each column, a run of one class as one character."""
    best = scores.argmax(axis=1)
    runs = [one for place, one in enumerate(best) if place == 0 or one != best[place - 1]]
    return "".join(ALPHABET[one - 1] for one in runs if one)


def random_word(dice: random.Random) -> str:
    """Two to nine letters and digits, of which most are of one kind."""
    kind = dice.choice((ALPHABET[10:], ALPHABET[10:], ALPHABET[10:].upper(), ALPHABET[:10], ALPHABET))
    word = "".join(dice.choice(kind) for _ in range(dice.randint(2, 9)))
    return word.capitalize() if dice.random() < 0.2 else word


def random_picture(word: str, dice: random.Random) -> npt.NDArray[np.float32]:
    """The word in a size, place, tilt and contrast that differ each time, with noise, as `to_tensor` gives it."""
    ink, paper = dice.choice(
        ((dice.randint(0, 90), dice.randint(160, 255)), (dice.randint(170, 255), dice.randint(0, 80)))
    )
    picture = draw(word, dice.randint(16, 40), ink, paper, dice.randint(0, 8))
    picture = picture.rotate(dice.uniform(-3, 3), Image.Resampling.BILINEAR, expand=True, fillcolor=paper)
    noise = np.random.default_rng(dice.getrandbits(32)).normal(0.0, dice.uniform(0.0, 0.12), (1, HEIGHT, WIDTH))
    return np.clip(to_tensor(picture) + noise, -1.0, 1.0).astype(np.float32)
