"""Tokenizer of an exported text tower: open_clip's cleaning of a text, and its token ids by the package tokenizers."""

from __future__ import annotations

import html
import json
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import BadCheckpoint
from kinodex.index.spaces.vocabulary import Vocabulary, Word
from kinodex.index.utf8 import checked_text

TOKENIZER_JSON, VOCABULARY = "tokenizer.json", "vocabulary.safetensors"
Cleaning = Literal["lower", "whitespace", "canonicalize", "none"]
SINGLE_BYTES = tuple(f"<0x{number:02X}>" for number in range(256))
"""Words for the bytes of a letter that no word has, where a model falls back on them."""
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class TokenizerSettings:
    """The facts of a tokenizer of open_clip that no file of the package tokenizers holds."""

    context_length: int
    cleaning: Cleaning
    always: tuple[str, ...] = ()
    """Words that are needed for any text: for what is unknown, for the ends of a text, for padding."""
    unknown: str = ""
    """Word that stands for what a unigram model does not know."""
    dropped_id: int = -1
    """Token that becomes 0 wherever it stands: open_clip can strip the separator that ends a text."""


UNSPLIT: dict[str, None] = {"normalizer": None, "pre_tokenizer": None}
"""Parts of a tokenizer that hold regular expressions."""
PARTS_KEPT = 4096
"""Parts of texts, mostly words, whose lookups a tokenizer remembers."""


class Tokenizer:
    """Makes token ids of texts."""

    def __init__(self, folder: Path, settings: TokenizerSettings) -> None:
        """Read the tokenizer's files; raises BadCheckpoint if they are damaged."""
        import tokenizers

        self.settings = settings
        self._vocabulary = Vocabulary(folder / VOCABULARY)
        try:
            self._frame: dict[str, Any] = json.loads((folder / TOKENIZER_JSON).read_text(encoding="utf-8"))
            self._without_words = tokenizers.Tokenizer.from_str(json.dumps(self._frame))
        except Exception as error:  # the package raises plain exceptions
            raise BadCheckpoint(f"cannot read {folder / TOKENIZER_JSON}: {error}; make the text tower again") from error
        self._added = {each["content"]: int(each["id"]) for each in self._frame["added_tokens"]}
        with_bytes = SINGLE_BYTES if self._frame["model"].get("byte_fallback") else ()
        self._always = self._vocabulary.find((*settings.always, *with_bytes))
        self._words_of_part = lru_cache(PARTS_KEPT)(self._vocabulary.words_in)

    def __call__(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Make token ids [n, context length] of texts."""
        return self.encode(texts)[0]

    def encode(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], list[list[str]]]:
        """Make token ids [n, context length] of texts, and give the tokens that they stand for."""
        tokens, numbers = self._encoded(texts)
        unknown = numbers.get(self.settings.unknown, -1)
        found = [[numbers.get(token, unknown) for token in row] for row in tokens]
        if any(len(row) != self.settings.context_length or not row for row in found):
            raise BadCheckpoint(
                f"got {len(found[0])} tokens of a text of {self.settings.context_length}; make the text tower again"
            )
        ids = np.array(found, np.int64).reshape(len(texts), self.settings.context_length)
        return np.where(ids == self.settings.dropped_id, 0, ids) if self.settings.dropped_id >= 0 else ids, tokens

    def words(self, tokens: Sequence[str]) -> list[list[str]]:
        """Group the tokens of a text by words, in a model of word pieces; those that are always needed are left out."""
        mark = self._frame["model"]["continuing_subword_prefix"]
        words: list[list[str]] = []
        for token in tokens:
            if token.startswith(mark) and words:
                words[-1].append(token.removeprefix(mark))
            elif token not in self.settings.always:
                words.append([token])
        return words

    def _encoded(self, texts: Sequence[str]) -> tuple[list[list[str]], dict[str, int]]:
        """Split texts into tokens, and return the number of each token that is known."""
        import tokenizers

        cleaned = [clean(text, self.settings.cleaning) for text in texts]
        words = self._words(cleaned)
        numbers = {word.text: word.number for word in words} | self._added
        model = self._frame["model"] | small_model(self._frame["model"]["type"], words, self.settings.unknown)
        compiled = self._without_words  # its expressions are compiled once: that takes longer than all the rest
        filled = tokenizers.Tokenizer.from_str(json.dumps(self._frame | UNSPLIT | {"model": model}))
        for part in UNSPLIT:
            if (held := getattr(compiled, part)) is not None:
                setattr(filled, part, held)
        return [each.tokens for each in filled.encode_batch(cleaned)], numbers

    def _words(self, texts: Iterable[str]) -> list[Word]:
        """Find all words that the tokens of these texts can be."""
        model = self._frame["model"]
        marks = model.get("continuing_subword_prefix") or "", model.get("end_of_word_suffix") or ""
        parts = {part for text in texts for part in self._parts(text)}
        found = [word for part in parts for word in self._words_of_part(part, *marks)]
        words = {word.text: word for word in [*self._always, *found]}
        return list(words.values())

    def _parts(self, text: str) -> Iterable[str]:
        """Split a text as the tokenizer does before it looks for words."""
        normalizer, splitter = self._without_words.normalizer, self._without_words.pre_tokenizer
        for raw in self._between_added(text):
            normal = normalizer.normalize_str(raw) if normalizer else raw
            for segment in self._between_added(normal):
                yield from (part for part, _ in splitter.pre_tokenize_str(segment)) if splitter else (segment,)

    def _between_added(self, text: str) -> list[str]:
        """List a text and, if added tokens stand in it, what stands between them: it is tokenized by itself."""
        segments = [text]
        for token in self._added:
            if token in text:
                segments = [piece for segment in segments for piece in segment.split(token)]
        return segments if len(segments) == 1 else [text, *segments]


def small_model(kind: str, words: Sequence[Word], unknown: str) -> dict[str, Any]:
    """Describe a model of some words, numbered as they come, to the package tokenizers."""
    if kind == "Unigram":
        texts = [word.text for word in words]
        unk_id = texts.index(unknown) if unknown in texts else None
        return {"vocab": [[word.text, word.score] for word in words], "unk_id": unk_id}
    vocabulary = {word.text: number for number, word in enumerate(words)}
    if kind != "BPE":
        return {"vocab": vocabulary}
    merges = sorted(merge for word in words for merge in word.merges)
    merges = [each for each in merges if each[1] in vocabulary and each[2] in vocabulary]
    return {"vocab": vocabulary, "merges": [[left, right] for _, left, right in merges]}


def clean(text: str, cleaning: Cleaning) -> str:
    """Clean a text as open_clip does, or not at all ("none"); raises QueryError for one that is not UTF-8."""
    if cleaning == "none":
        return checked_text(text)
    if not (text.isascii() and text.isprintable() and "&" not in text):  # else there is nothing to mend
        import ftfy

        text = html.unescape(html.unescape(ftfy.fix_text(checked_text(text))))
    if cleaning == "canonicalize":
        text = text.strip().replace("_", " ").translate(NO_PUNCTUATION)
    text = " ".join(text.split())
    return text if cleaning == "whitespace" else " ".join(text.lower().split())


def settings_from_json(found: Mapping[str, Any]) -> TokenizerSettings:
    """Read settings from JSON values."""
    return TokenizerSettings(**{**found, "always": tuple(found["always"])})
