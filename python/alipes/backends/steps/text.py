"""Prepares the steps between texts and their tokens, which read a `tokenizer.json` in the version's folder."""

from __future__ import annotations

from typing import Any, Final

from alipes.backends.base import Draft
from alipes.backends.steps.backend import StepBackend, list_tensor
from alipes.config.step_parameters import DETOKENIZER_PARAMETERS, TOKENIZER_PARAMETERS

__all__ = ["DetokenizerBackend", "TokenizerBackend"]

_HOLDS: Final = {"input_ids": "ids", "attention_mask": "mask", "token_type_ids": "types"}
"""What an output of a tokenizer holds, by its name: networks of text call their inputs so."""

_INTEGERS: Final = ("INT64", "INT32")


class TokenizerBackend(StepBackend):
    """Prepares one version of a step that makes tokens of texts."""

    kind = "tokenizer"
    rows = TOKENIZER_PARAMETERS
    forms_batches = False

    def complete_tensors(self) -> None:
        """List the text, and its tokens with their mask and types."""
        config = self.draft.config
        if not config.input:
            list_tensor(config.input, "text", "BYTES", [1])
            if self.parameters.switch("pair", False):
                list_tensor(config.input, "text_pair", "BYTES", [1])
        if not config.output:
            for name in _HOLDS:
                list_tensor(config.output, name, "INT64", [-1])

    def step(self) -> dict[str, Any]:
        """Where the tokenizer lies, how it is used, and what each output holds."""
        inputs, outputs = list(self.draft.config.input), list(self.draft.config.output)
        if len(inputs) not in (1, 2):
            raise self.error(f"has {len(inputs)} inputs, expected a text, or two texts that form a pair", "input")
        for text in inputs:
            self.check_tensor("input", text, ("BYTES",), [1])
        for output in outputs:
            if output.name not in _HOLDS:
                raise self.error(f"has an output '{output.name}', expected {', '.join(_HOLDS)}", "output.name")
            self.check_tensor("output", output, _INTEGERS, [-1])
        fixed = self.parameters.choice("padding", ("longest", "max_length")) == "max_length"
        max_length = self.parameters.tokens("max_length")
        if fixed and max_length is None:
            raise self.error("fills up to 'max_length', which is not given", "parameters.max_length")
        return {
            "file": str(self.draft.model_file()),
            "max_length": max_length,
            "pad_to_max_length": fixed,
            "pad_to_multiple_of": self.parameters.tokens("pad_to_multiple_of"),
            "special_tokens": self.parameters.switch("special_tokens", True),
            "max_text_bytes": self.parameters.text_bytes("max_text_bytes"),
            "outputs": [_HOLDS[output.name] for output in outputs],
        }


class DetokenizerBackend(StepBackend):
    """Prepares one version of a step that makes texts of tokens."""

    kind = "detokenizer"
    rows = DETOKENIZER_PARAMETERS
    forms_batches = False

    def __init__(self, draft: Draft) -> None:
        """Names the file, which by itself is that of a tokenizer."""
        super().__init__(draft)
        draft.config.default_model_filename = draft.config.default_model_filename or "tokenizer.json"

    def complete_tensors(self) -> None:
        """List the tokens, and their text."""
        config = self.draft.config
        if not config.input:
            list_tensor(config.input, "ids", "INT64", [-1])
        if not config.output:
            list_tensor(config.output, "text", "BYTES", [1])

    def step(self) -> dict[str, Any]:
        """Where the tokenizer lies, and which tokens become text."""
        (ids,), (text,) = self.tensors("input", 1), self.tensors("output", 1)
        self.check_tensor("input", ids, _INTEGERS, [-1])
        self.check_tensor("output", text, ("BYTES",), [1])
        return {
            "file": str(self.draft.model_file()),
            "special_tokens": self.parameters.switch("special_tokens", False),
        }
