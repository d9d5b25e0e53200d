"""Builds the tokenizer of multilingual-e5-small: XLM-RoBERTa's unigram pieces behind SentencePiece's nmt_nfkc rules."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import sentencepiece
from e5_weights import Weights
from numpy.typing import NDArray
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")  # ids 0 to 3
_SPACE = "\u2581"
_MAX_LENGTH = 512
_UNUSED_SCORE = -100.0


def build_tokenizer(weights: Weights, kept: NDArray[np.int64]) -> Tokenizer:
    """Return the tokenizer for the pieces `kept`, in their order."""
    known = len(weights.pieces)
    vocabulary = [
        (weights.pieces[i], float(weights.scores[i])) if i < known else (f"<extra{i}>", _UNUSED_SCORE) for i in kept
    ]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=3, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(_read_rules()), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=_SPACE, prepend_scheme="always", split=True)
    tokenizer.decoder = decoders.Metaspace(replacement=_SPACE, prepend_scheme="always")
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in _SPECIAL])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.enable_truncation(_MAX_LENGTH)
    tokenizer.enable_padding(pad_id=1, pad_token="<pad>")
    return tokenizer


def _read_rules() -> bytes:
    """Return the compiled nmt_nfkc rules of the sentencepiece library, out of a throw-away model."""
    sentences = (f"hello world this is a test of things {number}" for number in range(200))
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder) / "throwaway"
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=sentences,
            model_prefix=str(prefix),
            vocab_size=40,
            hard_vocab_limit=False,
            normalization_rule_name="nmt_nfkc",
            minloglevel=2,
        )
        model = sentencepiece_model_pb2.ModelProto()
        model.ParseFromString(prefix.with_suffix(".model").read_bytes())
    return model.normalizer_spec.precompiled_charsmap
