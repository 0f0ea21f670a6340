"""Text generation by a causal language model: calls of about the same time become one batch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kinodex.agent.errors import ModelRejected
from kinodex.agent.limits.work_clock import held
from kinodex.agent.local.grammar import Processor, TokenMasks

if TYPE_CHECKING:
    import torch

Sample = Callable[[list[list[int]], float, tuple[str, ...]], list[list[int]]]
"""Another engine that holds the model: prompts, temperature and stop texts in, the tokens of each reply out."""
GATHER_S = 0.005
"""The time that a batch waits for more calls."""
LARGEST_BATCH = 32


@dataclass(slots=True, eq=False)
class _Call:
    prompt: list[int]
    temperature: float
    stop: tuple[str, ...]
    grammar: str = ""
    generated: list[int] | None = None


class Generator:
    """Sampler of `model` itself, without the top-p, top-k and penalties that its folder may set.

    Training needs samples from the model's own distribution. `context_tokens` is the length of a prompt and its reply
    that the model can hold. `prepare_model` makes the model ready for a batch, for a model that is trained between
    batches; `sample` has another engine sample in its place.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        max_new_tokens: int,
        prepare_model: Callable[[], AbstractContextManager[Any]] | None = None,
        sample: Sample | None = None,
    ) -> None:
        self.tokenizer, self.max_new_tokens = tokenizer, max_new_tokens
        self._sample = sample
        self._prepare_model = prepare_model or (lambda: nullcontext(model))
        self.context_tokens = int(getattr(model.config, "max_position_embeddings", 0) or 2**31)
        ends = model.generation_config.eos_token_id
        ends = [] if ends is None else ends if isinstance(ends, list) else [ends]
        self._ends = sorted({*ends, tokenizer.eos_token_id} - {None})
        self._masks: TokenMasks | None = None
        self._waiting: list[_Call] = []
        self._free = asyncio.Lock()

    def close(self) -> None:
        """Forget the event loop of the calls so far; the next one may come from another."""
        self._free = asyncio.Lock()

    async def generate(
        self, prompt: Sequence[int], temperature: float, stop: tuple[str, ...] = (), grammar: str = ""
    ) -> list[int]:
        """Generate the next tokens: up to an end token or one of the texts `stop`, both included, or the limit.

        `grammar` binds them (`reply_grammar`). Temperature 0 takes the likeliest token each time.
        Raises `ModelRejected` if the prompt is too long for the model.
        """
        if not self.has_room(len(prompt)):
            raise ModelRejected(
                f"{len(prompt)} tokens and {self.max_new_tokens} new ones are more than the {self.context_tokens} that "
                "the model can hold; ask about a shorter video, or take another model"
            )
        call = _Call(list(prompt), temperature, stop, grammar)
        self._waiting.append(call)
        async with held(self._free):
            if call.generated is None:
                await asyncio.sleep(GATHER_S)
                await self._run(self._batch_with(call))
        assert call.generated is not None
        return call.generated

    def has_room(self, prompt_tokens: int) -> bool:
        """Return True if the model can hold a prompt of this many tokens and a reply."""
        return prompt_tokens + self.max_new_tokens <= self.context_tokens

    def _batch_with(self, call: _Call) -> list[_Call]:
        same = [each for each in self._waiting if (each.temperature, each.stop) == (call.temperature, call.stop)]
        batch = [call, *(each for each in same if each is not call)][:LARGEST_BATCH]
        self._waiting = [each for each in self._waiting if each not in batch]
        return batch

    async def _run(self, batch: list[_Call]) -> None:
        try:
            generated = await asyncio.to_thread(self._generate, batch)
        except BaseException:
            self._waiting += batch[1:]  # the next of them runs the batch again
            raise
        for call, tokens in zip(batch, generated, strict=True):
            call.generated = tokens

    def _generate(self, batch: list[_Call]) -> list[list[int]]:
        if self._sample is not None:
            return self._sample([call.prompt for call in batch], batch[0].temperature, batch[0].stop)
        import torch
        from transformers import StoppingCriteriaList

        longest = max(len(call.prompt) for call in batch)
        ends = _StopCriterion(self.tokenizer, longest, batch[0].stop, self._ends)
        with self._prepare_model() as model, torch.no_grad():
            tokens, mask = self._padded(batch, longest, model.device)
            whole = model.generate(
                input_ids=tokens,
                attention_mask=mask,
                generation_config=self._sampling(batch[0].temperature),
                stopping_criteria=StoppingCriteriaList([ends]),
                logits_processor=self._processors(batch, longest, model),
            )
        return [row[:end].tolist() for row, end in zip(whole[:, longest:], ends.lengths(whole), strict=True)]

    def _processors(self, batch: list[_Call], longest: int, model: Any) -> list[Processor]:
        grammars = [call.grammar for call in batch]
        if not any(grammars):
            return []
        if self._masks is None:
            self._masks = TokenMasks(self.tokenizer, int(model.config.vocab_size), self._ends)
        return [self._masks.processor(grammars, longest)]

    def _padded(self, batch: list[_Call], longest: int, device: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Prompts and attention mask [n, longest], padded on the left."""
        import torch

        rows = [[self._pad] * (longest - len(call.prompt)) + call.prompt for call in batch]
        masks = [[0] * (longest - len(call.prompt)) + [1] * len(call.prompt) for call in batch]
        return torch.tensor(rows, device=device), torch.tensor(masks, device=device)

    @property
    def _pad(self) -> int:
        pad = self.tokenizer.pad_token_id
        return int(self._ends[0] if pad is None else pad)

    def _sampling(self, temperature: float) -> Any:
        import transformers

        library: Any = transformers
        sampling = {"temperature": temperature, "top_p": 1.0, "top_k": 0} if temperature else {}
        return library.GenerationConfig(
            do_sample=temperature > 0,
            max_new_tokens=self.max_new_tokens,
            repetition_penalty=1.0,
            eos_token_id=self._ends,
            pad_token_id=self._pad,
            **sampling,
        )


class _StopCriterion:
    """The end of each row of a batch: transformers asks after every token if a row is done."""

    def __init__(self, tokenizer: Any, longest: int, stop: tuple[str, ...], ends: Sequence[int]) -> None:
        self.tokenizer, self.longest, self.stop, self.ends = tokenizer, longest, stop, set(ends)
        self._end: dict[int, int] = {}

    def __call__(self, tokens: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        import torch

        # as many tokens as the longest stop text has characters hold it, whatever the tokens are
        tails = tokens[:, self.longest :][:, -max(map(len, self.stop), default=1) :].tolist()
        for row, tail in enumerate(tails):
            if row not in self._end and (tail[-1] in self.ends or self._stopped(tail)):
                self._end[row] = tokens.shape[1] - self.longest
        return torch.tensor([row in self._end for row in range(len(tokens))], device=tokens.device)

    def _stopped(self, tail: list[int]) -> bool:
        text = self.tokenizer.decode(tail) if self.stop else ""
        return any(each in text for each in self.stop)

    def lengths(self, whole: torch.Tensor) -> list[int]:
        """Return the number of tokens generated in each row."""
        return [self._end.get(row, whole.shape[1] - self.longest) for row in range(len(whole))]
