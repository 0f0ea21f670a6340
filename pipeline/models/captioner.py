"""Caption segments with a local image-text-to-text model: several frames a segment, several segments a batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kinodex.pipeline.errors import WrongModel
from kinodex.pipeline.models.hub import Kind, Loaded, inference, load_model, quiet

if TYPE_CHECKING:
    import torch
    from jinja2 import Template
    from PIL.Image import Image

PROMPT = Path(__file__).parent / "prompts" / "caption.jinja"
MAX_NEW_TOKENS = 96


@dataclass(frozen=True, slots=True)
class SegmentFrames:
    images: tuple[Image, ...]
    duration_s: float


@dataclass(frozen=True, slots=True)
class Caption:
    """A caption and how sure the model was of its words, 0 to 1.

    `confidence` is the geometric mean of the probabilities that the model gave the tokens which it wrote, the
    end included: exp of its mean log-likelihood, 1 over its perplexity on its own words. It tells fluent from
    hesitant, not true from false.
    """

    text: str
    confidence: float


class Captioner:
    """A loaded captioner; greedy, so the same images give the same words."""

    def __init__(self, loaded: Loaded, max_new_tokens: int = MAX_NEW_TOKENS) -> None:
        self._loaded = loaded
        self._settings = greedy_settings(loaded.model.generation_config, loaded.processor.tokenizer, max_new_tokens)

    def caption(self, segments: Sequence[SegmentFrames]) -> list[Caption]:
        """Caption each segment, all in one batch; each has at least one image."""
        if not segments:
            return []
        likelihoods, chats = _Likelihoods(), [_chat(segment) for segment in segments]
        written = replies(self._loaded, chats, self._settings, logits_processor=[likelihoods])
        texts = self._loaded.processor.batch_decode(written, skip_special_tokens=True)
        confidences = likelihoods.confidences(written, self._settings.eos_token_id)
        return [Caption(" ".join(text.split()), sure) for text, sure in zip(texts, confidences, strict=True)]


def load_captioner(name: str, device: str = "auto", max_new_tokens: int = MAX_NEW_TOKENS) -> Captioner:
    """Load the captioner `name`, a hub id or a folder; raises ModelMissing, WrongModel or NoSuchDevice."""
    return Captioner(load_chat_model("ImageTextToText", name, device), max_new_tokens)


def load_chat_model(kind: Kind, name: str, device: str) -> Loaded:
    """Load a model that replies to prompts in batches; raises as `load_model`, and WrongModel without chat template."""
    loaded = load_model(kind, name, device)
    if not getattr(loaded.processor, "chat_template", None):
        raise WrongModel(
            f"{name} has no chat template, so its prompt format is unknown; give an instruction-tuned model"
        )
    tokenizer = getattr(loaded.processor, "tokenizer", loaded.processor)
    tokenizer.padding_side = "left"  # the reply must follow the prompt directly, in every row of a batch
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return loaded


def replies(loaded: Loaded, chats: Sequence[Any], settings: Any, **options: Any) -> torch.Tensor:
    """Generate the tokens `[n, steps]` that a model writes after each of these chats, all in one batch."""
    reads_pictures = hasattr(loaded.processor, "tokenizer")
    padded: dict[str, Any] = {"processor_kwargs": {"padding": True}} if reads_pictures else {"padding": True}
    batch = loaded.processor.apply_chat_template(
        chats, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt", **padded
    )
    batch = loaded.to_input(batch) if reads_pictures else batch.to(loaded.device)
    with inference(), quiet():
        tokens: torch.Tensor = loaded.model.generate(**batch, generation_config=settings, **options)
    return tokens[:, batch["input_ids"].shape[1] :]


@dataclass
class _Likelihoods:
    """Log-likelihood of the likeliest token at each step: the one that greedy decoding takes.

    generate() calls it last of all logits processors, so it gets the scores that decide. Keeping whole
    distributions instead would take 300 MB for 8 captions over a vocabulary of 150,000.
    """

    steps: list[torch.Tensor] = field(default_factory=list)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self.steps.append(scores.float().log_softmax(-1).amax(-1))
        return scores

    def confidences(self, written: torch.Tensor, ends: int | Sequence[int] | None) -> list[float]:
        """Compute geometric means over the tokens `[n, steps]` of each row, up to and with its first end."""
        import torch

        logs = torch.stack(self.steps, dim=1).cpu()
        ending = torch.isin(written.cpu(), torch.tensor([] if ends is None else ends, dtype=written.dtype))
        counted = (ending.cumsum(1) - ending.long()) == 0
        means = (logs * counted).sum(1) / counted.sum(1)
        return [math.exp(mean) for mean in means.tolist()]


def greedy_settings(settings: Any, tokenizer: Any, max_new_tokens: int) -> Any:
    greedy = deepcopy(settings)
    greedy.do_sample, greedy.num_beams = False, 1
    greedy.temperature = greedy.top_p = greedy.top_k = None
    greedy.max_length, greedy.max_new_tokens = None, max_new_tokens
    if greedy.eos_token_id is None:
        greedy.eos_token_id = tokenizer.eos_token_id
    if greedy.pad_token_id is None:
        greedy.pad_token_id = tokenizer.pad_token_id
    return greedy


def _chat(segment: SegmentFrames) -> list[dict[str, Any]]:
    images = [{"type": "image", "image": image} for image in segment.images]
    words = prompt_of(PROMPT).render(frames=len(segment.images), duration_s=segment.duration_s).strip()
    return [{"role": "user", "content": [*images, {"type": "text", "text": words}]}]


@cache
def prompt_of(path: Path) -> Template:
    from jinja2 import StrictUndefined, Template

    text = path.read_text(encoding="utf-8")
    prompt: Template = Template(text, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return prompt
