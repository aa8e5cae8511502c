"""Trains the network on drawn words and writes it into `model_repository`: minutes on one core.

    pip install 'alipes[examples,torch]'
    python examples/text-recognition/train.py

The weights go to `None-ResNet-None-CTC.pth`, named as in the tutorial, for `export.py`.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from export import WEIGHTS, export
from torch import Tensor, nn
from utils.model import STRModel
from words import ALPHABET, random_picture, random_word, to_word

SEED = 4
STEPS = 1500
BATCH = 64
LEARNING_RATE = 3e-3
HELD_OUT = 300


def batch(dice: random.Random, rows: int) -> tuple[list[str], Tensor]:
    """Words and their pictures, `[rows, 1, 32, 100]`."""
    words = [random_word(dice) for _ in range(rows)]
    return words, torch.from_numpy(np.stack([random_picture(word, dice) for word in words]))


def train(network: STRModel, steps: int, dice: random.Random) -> Iterator[float]:
    """Trains the network; gives the loss of each step."""
    optimizer = torch.optim.AdamW(network.parameters(), LEARNING_RATE)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps)
    network.train()
    for _ in range(steps):
        words, pictures = batch(dice, BATCH)
        scores = network(pictures).log_softmax(-1).permute(1, 0, 2)
        classes = [[ALPHABET.index(letter) + 1 for letter in word.lower()] for word in words]
        targets = torch.tensor([one for row in classes for one in row])
        lengths = torch.tensor([len(row) for row in classes])
        columns = torch.full((BATCH,), len(scores))
        loss = nn.functional.ctc_loss(scores, targets, columns, lengths, zero_infinity=True)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 2.0)
        optimizer.step()
        rate.step()
        yield loss.item()
    network.eval()


def share_read(network: STRModel, dice: random.Random) -> float:
    """How many of new words are read without a mistake."""
    words, pictures = batch(dice, HELD_OUT)
    with torch.inference_mode():
        read = [to_word(scores) for scores in network(pictures).numpy()]
    return sum(one == word.lower() for one, word in zip(read, words, strict=True)) / len(words)


def main() -> None:
    """Does it all, with a line each tenth of the way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS, help="how long to train (%(default)s)")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent, help="where to write (the example)")
    asked = parser.parse_args()
    steps: int = asked.steps

    # Sums over several threads may round differently from run to run.
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    dice = random.Random(SEED)
    network = STRModel(input_channels=1, output_channels=512, num_classes=37)
    print(f"{sum(weights.numel() for weights in network.parameters())} parameters")
    for step, loss in enumerate(train(network, steps, dice), start=1):
        if step % max(steps // 10, 1) == 0:
            print(f"step {step} of {steps}: loss {loss:.3f}", flush=True)
    print(f"new words: {share_read(network, dice):.3f} read without a mistake")
    # As a network that was trained on several GPUs names its weights.
    torch.save({f"module.{name}": value for name, value in network.state_dict().items()}, asked.folder / WEIGHTS)
    print(f"wrote {export(asked.folder)}")


if __name__ == "__main__":
    main()
