"""Records what the Python wheel of `tokenizers` makes of some texts.

Install the release that the crate is built with, `pip install tokenizers==0.23.2`, and run it. It writes three small
tokenizers, one of each usual kind, and `expected.json` with their tokens. The crate has to give the same.
"""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

FOLDER = Path(__file__).parent
SENTENCES = [
    "A server answers requests, one after the other or many at once.",
    "How do I start a server? How can I stop it again?",
    "Which model answers the question, and how long does it take?",
    "The detectors listen for gravitational waves, day and night.",
    "Where is the nearest station, please?",
    "It's raining; we'll stay at home, won't we?",
    "Zwei Züge fahren über die Brücke. Où est la gare ?",
    "def answer(request): return request.rows * 2",
]
TEXTS = [
    "How do I stop a server?",
    "the THE The",
    "",
    "   spaces   and\ttabs\nand lines  ",
    "It's 12:30, isn't it? 100,000.5%",
    "Zwei Züge — où est la gare ?",
    "naïve café e\u0301 \u00c5 A\u030a",
    "日本語のテキスト 中文",
    "emoji 👩‍🚀🚀 done",
    "control\u0000\u200b\ufeff characters",
    "x" * 150,
    "unanswerable requestors' detectorwaves",
    "[CLS] [SEP] [PAD] [UNK] <s> </s>",
    "a/b\\c_d-e.f@g#h$i",
    "long " * 40,
]


def wordpiece() -> Tokenizer:
    """A tokenizer as of BERT."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made.train_from_iterator(
        SENTENCES, trainers.WordPieceTrainer(vocab_size=300, special_tokens=special, show_progress=False)
    )
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    made.decoder = decoders.WordPiece()
    made.enable_truncation(64)
    made.enable_padding(pad_id=0, pad_token="[PAD]")
    return made


def bytes_bpe() -> Tokenizer:
    """A tokenizer as of GPT-2."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"], show_progress=False
    )
    made.train_from_iterator(SENTENCES, trainer)
    made.decoder = decoders.ByteLevel()
    return made


def unigram() -> Tokenizer:
    """A tokenizer as SentencePiece makes them."""
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<s>", "</s>", "<unk>", "<pad>"]
    trainer = trainers.UnigramTrainer(vocab_size=200, special_tokens=special, unk_token="<unk>", show_progress=False)
    made.train_from_iterator(SENTENCES, trainer)
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    made.decoder = decoders.Metaspace()
    return made


def recorded(tokenizer: Tokenizer, text: str, pair: str | None) -> dict[str, object]:
    """The tokens of a text or a pair, and the text that they become again."""
    found = tokenizer.encode(text, pair)
    row = {"ids": found.ids, "types": found.type_ids, "mask": found.attention_mask}
    return {"text": text, "pair": pair, **row, "decoded": tokenizer.decode(found.ids)}


def main() -> None:
    """Writes the files."""
    expected = {}
    for name, make in (("wordpiece", wordpiece), ("bytes_bpe", bytes_bpe), ("unigram", unigram)):
        tokenizer = make()
        tokenizer.save(str(FOLDER / f"{name}.json"), pretty=False)
        pairs = [(text, None) for text in TEXTS] + list(zip(TEXTS, reversed(TEXTS), strict=True))
        expected[name] = [recorded(tokenizer, text, pair) for text, pair in pairs]
    (FOLDER / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
