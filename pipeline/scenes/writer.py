"""Write titles and summaries of parts of a video with a local model: of words alone, or one that reads pictures too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kinodex.pipeline.models.captioner import greedy_settings, load_chat_model, prompt_of, replies
from kinodex.pipeline.models.hub import Loaded, reads_pictures

if TYPE_CHECKING:
    from PIL.Image import Image

PROMPT = Path(__file__).parents[1] / "models" / "prompts" / "contents.jinja"
MAX_NEW_TOKENS = 128
CONTEXT_TOKENS = 2048
"""Longest prompt where a model does not say what it takes, and one that small models still follow."""
PICTURE_TOKENS = 256
"""Room left for each picture of a prompt."""


@dataclass(frozen=True, slots=True)
class PartLines:
    """A part of a video as the model gets it: lines about it in order, or pictures where there are none."""

    lines: tuple[str, ...]
    images: tuple[Image, ...]
    duration_s: float


class WriterReply(NamedTuple):
    """Words of the model; they are not whole where they reached the most new tokens before their end."""

    text: str
    is_whole: bool


class Writer:
    """A loaded language model; greedy, so the same part gets the same words."""

    def __init__(self, loaded: Loaded, sees: bool, max_new_tokens: int = MAX_NEW_TOKENS) -> None:
        self._loaded = loaded
        self._tokenizer = loaded.processor.tokenizer if sees else loaded.processor
        self._settings = greedy_settings(loaded.model.generation_config, self._tokenizer, max_new_tokens)
        config = loaded.model.config
        held = getattr(getattr(config, "text_config", config), "max_position_embeddings", CONTEXT_TOKENS)
        self._longest = min(held, CONTEXT_TOKENS) - max_new_tokens
        self.sees = sees
        """True if it reads pictures."""

    def write(self, parts: Sequence[PartLines]) -> list[WriterReply | None]:
        """Write of each part what the prompt asks for, all in one batch; None of one that gives it nothing to go by.

        Of more lines than the model takes, some at even distances are given.
        """
        known = [at for at, part in enumerate(parts) if part.lines or (part.images and self.sees)]
        replies: list[WriterReply | None] = [None] * len(parts)
        for at, reply in zip(known, self._generate([parts[at] for at in known]), strict=True):
            replies[at] = reply
        return replies

    def _generate(self, parts: Sequence[PartLines]) -> list[WriterReply]:
        if not parts:
            return []
        written = replies(self._loaded, [self._chat(part) for part in parts], self._settings)
        texts: list[str] = self._tokenizer.batch_decode(written, skip_special_tokens=True)
        ends = self._settings.eos_token_id
        ended = [
            any(token in row for token in (ends if isinstance(ends, list) else [ends])) for row in written.tolist()
        ]
        return [WriterReply(text, is_whole) for text, is_whole in zip(texts, ended, strict=True)]

    def _chat(self, part: PartLines) -> list[dict[str, Any]]:
        images = part.images if self.sees else ()
        words = self._fitting(part, self._longest - PICTURE_TOKENS * len(images))
        if not self.sees:
            return [{"role": "user", "content": words}]
        shown = [{"type": "image", "image": image} for image in images]
        return [{"role": "user", "content": [*shown, {"type": "text", "text": words}]}]

    def _fitting(self, part: PartLines, longest: int) -> str:
        """Return the prompt with as many lines as fit, half as many each time; the last one left stays."""
        lines = part.lines
        while True:
            words = prompt_of(PROMPT).render(lines=lines, images=len(part.images), duration_s=part.duration_s).strip()
            if len(lines) <= 1 or len(self._tokenizer(words)["input_ids"]) <= longest:
                return words
            lines = lines[::2]


def load_writer(name: str, device: str = "auto", max_new_tokens: int = MAX_NEW_TOKENS) -> Writer:
    """Load the model `name`, a hub id or a folder; raises ModelMissing, WrongModel or NoSuchDevice."""
    sees = reads_pictures(name)
    loaded = load_chat_model("ImageTextToText" if sees else "CausalLM", name, device)
    return Writer(loaded, sees, max_new_tokens)
