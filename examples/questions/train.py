"""Trains the tokenizer and the network, and writes them into `models`: minutes on one core.

pip install 'alipes[examples,torch]'
python examples/questions/train.py
"""

from __future__ import annotations

import argparse
import math
import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from alipes.repository import ModelRepository, Platform
from network import LONGEST, WIDTH, Cosine, Encoder, mean
from phrases import HELD_OUT, Question, phrase, questions
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor, nn

FOLDER = Path(__file__).parent / "models"
SEED = 17
VOCABULARY = 800
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
STEPS = 1200
#: Different questions in a step: each is told from all others.
QUESTIONS = 64
LEARNING_RATE = 2e-3
#: The smaller, the more it counts to tell similar questions apart.
TEMPERATURE = 0.07


def make_tokenizer(sentences: Sequence[str]) -> Tokenizer:
    """A tokenizer as of BERT: pieces of words in small letters, `[CLS]` before and `[SEP]` behind them."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=list(SPECIAL), show_progress=False)
    made.train_from_iterator(sentences, trainer)
    ends = [(token, SPECIAL.index(token)) for token in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    made.enable_truncation(LONGEST)
    made.enable_padding(pad_id=0, pad_token="[PAD]")
    return made


def tensors(tokenizer: Tokenizer, sentences: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Tokens and mask of sentences, INT64 `[batch, tokens]` each."""
    rows = tokenizer.encode_batch(sentences)
    return torch.tensor([row.ids for row in rows]), torch.tensor([row.attention_mask for row in rows])


def train(network: Encoder, tokenizer: Tokenizer, steps: int, dice: random.Random) -> Iterator[float]:
    """Trains the network; gives the loss of each step."""
    known = [question for question in questions() if question not in HELD_OUT]
    optimizer = torch.optim.AdamW(network.parameters(), LEARNING_RATE, weight_decay=0.01)
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _pace(step / steps))
    network.train()
    for _ in range(steps):
        chosen = dice.sample(known, QUESTIONS)
        sentences = [phrase(question, dice) for _ in range(2) for question in chosen]
        loss = _loss(network, *_with_gaps(*tensors(tokenizer, sentences)))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        rate.step()
        yield loss.item()
    network.eval()


def _pace(done: float) -> float:
    """Learning begins slowly and ends slowly."""
    return min(done / 0.05, 1.0) * (0.5 + 0.5 * math.cos(math.pi * done))


def _with_gaps(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Hides one word in twelve, so that a sentence is understood by its other words too."""
    hidden = (torch.rand(ids.shape) < 1 / 12) & (ids >= len(SPECIAL))
    return ids.masked_fill(hidden, SPECIAL.index("[UNK]")), mask


def _loss(network: Encoder, ids: Tensor, mask: Tensor) -> Tensor:
    """Each phrasing has to find the other one of its question among all of the step, in both directions."""
    one, other = mean(network(ids, mask), mask).chunk(2)
    alike = one @ other.T / TEMPERATURE
    own = torch.arange(len(one))
    return (nn.functional.cross_entropy(alike, own) + nn.functional.cross_entropy(alike.T, own)) / 2


def share_of_held_out(network: Encoder, tokenizer: Tokenizer, dice: random.Random) -> float:
    """How many phrasings of questions that no training saw find another one of the same question among all others."""
    rest = [question for question in questions() if question not in HELD_OUT]
    asked = [question for question in sorted(HELD_OUT) for _ in range(20)]
    candidates: list[Question] = [*sorted(HELD_OUT), *rest]
    with torch.inference_mode():
        ids, mask = tensors(tokenizer, [phrase(question, dice) for question in asked])
        one = mean(network(ids, mask), mask)
        ids, mask = tensors(tokenizer, [phrase(question, dice) for question in candidates])
        other = mean(network(ids, mask), mask)
    found = (one @ other.T).argmax(1).tolist()
    return sum(candidates[place] == question for place, question in zip(found, asked, strict=True)) / len(asked)


def export(module: nn.Module, name: str, inputs: dict[str, Tensor], output: str) -> None:
    """Writes a module as ONNX into its model's folder; its `config.pbtxt` stands there already."""
    with tempfile.TemporaryDirectory() as folder:
        model = ModelRepository(folder).add(name, platform=Platform.ONNX)
        shapes = {key: (None, None if value.dtype == torch.int64 else WIDTH) for key, value in inputs.items()}
        types = {key: str(value.dtype).removeprefix("torch.") for key, value in inputs.items()}
        written = model.export_version(
            module, input_shapes=shapes, input_dtypes=types, examples=inputs, output_names=[output]
        )
        shutil.copyfile(Path(folder) / written, FOLDER / name / "1" / "model.onnx")


def main() -> None:
    """Does it all, with a line each tenth of the way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS, help="how long to train (%(default)s)")
    steps: int = parser.parse_args().steps

    # Sums over several threads may round differently from run to run.
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    dice = random.Random(SEED)
    trained_on = [question for question in questions() if question not in HELD_OUT]
    tokenizer = make_tokenizer([phrase(question, dice) for question in trained_on for _ in range(100)])
    tokenizer.save(str(FOLDER / "tokens" / "1" / "tokenizer.json"))
    network = Encoder(tokenizer.get_vocab_size())
    parameters = sum(weights.numel() for weights in network.parameters())
    print(f"{tokenizer.get_vocab_size()} tokens, {parameters} parameters, {len(trained_on)} questions")
    for step, loss in enumerate(train(network, tokenizer, steps, dice), start=1):
        if step % max(steps // 10, 1) == 0:
            print(f"step {step} of {steps}: loss {loss:.3f}", flush=True)
    print(f"questions held out: {share_of_held_out(network, tokenizer, dice):.3f} find themselves among all")

    ids, mask = tensors(tokenizer, ["how do i reset my password?", "where is my parcel"])
    export(network, "encoder", {"input_ids": ids, "attention_mask": mask}, "vectors")
    vectors = mean(network(ids, mask), mask).detach()
    export(Cosine(), "cosine", {"one": vectors, "other": vectors.flip(0)}, "score")
    print(f"wrote {FOLDER}")


if __name__ == "__main__":
    main()
