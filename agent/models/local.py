"""A causal language model of transformers in this process, as a `Model`: a trained checkpoint is a master.

It reads text only. `kinodex ask --model local:FOLDER` or a role's `model = "local:FOLDER"` names one, and
`constrained:FOLDER` one that can write nothing but what fits the request (`reply_grammar`).
"""

from __future__ import annotations

import asyncio
import json
import string
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kinodex.agent.errors import ModelRejected, ModelUnknown
from kinodex.agent.limits import held
from kinodex.agent.models.completion import parse_reply, repair_messages, schema_request
from kinodex.agent.prompts import Message, fit_context, render, turn_messages, user_message, without_calls
from kinodex.agent.protocol import Exchange, R, Request, Usage
from kinodex.index.spaces.import_torch import import_torchvision
from kinodex.index.spaces.quick_hub import quick_hub

if TYPE_CHECKING:
    import torch

LOCAL, CONSTRAINED = "local:", "constrained:"
"""What the names of models in this process begin with."""
MAX_NEW_TOKENS = 1024


class LocalModel:
    """A causal language model that answers requests without frames; one `ask` is one sampled reply.

    `temperature` overrides what requests ask for. What a request quotes is shortened to the model's context
    (`fit_context`). `ask` raises `ModelRejected` for frames, and where a prompt is too long without any quotation; a
    reply that cannot be used is an `Exchange` with `invalid`.
    """

    has_language = True

    def __init__(
        self, name: str, generator: Generator, temperature: float | None = None, *, constrained: bool = False
    ) -> None:
        self.name = name
        self.generator = generator
        self.temperature = temperature
        self.constrained = constrained

    async def ask(self, request: Request[R]) -> Exchange[R]:
        if request.frames:
            raise ModelRejected(
                f"{self.name} reads text only, and {type(request).__name__} shows frames; "
                "give the roles that see a model of their own"
            )
        generator = self.generator
        prompt = self._prompt(fit_context(request, generator.context_tokens, generator.max_new_tokens, self._count))
        temperature = request.temperature if self.temperature is None else self.temperature
        grammar = reply_grammar(request) if self.constrained else ""
        _, exchange = await generate_reply(generator, prompt, temperature, request, grammar)
        return exchange

    def _prompt(self, request: Request[R]) -> list[int]:
        messages = conversation(request, with_schema=not self.constrained)
        return conversation_tokens(self.generator.tokenizer, messages)

    def _count(self, request: Request[R]) -> int:
        return len(self._prompt(request))


async def generate_reply(
    generator: Generator, prompt: list[int], temperature: float, request: Request[R], grammar: str = ""
) -> tuple[list[int], Exchange[R]]:
    """Generate tokens after those of a prompt, and parse them as the reply to a request."""
    started = time.perf_counter()
    tokens = await generator.generate(prompt, temperature, request.stop, grammar)
    text = generator.tokenizer.decode(tokens, skip_special_tokens=True)
    reply, invalid = parse_reply(text, request)
    seconds = time.perf_counter() - started
    return tokens, Exchange(reply, invalid, Usage(len(prompt), len(tokens)), raw=text, seconds=seconds)


def conversation(request: Request[R], *, with_schema: bool = True) -> list[Message]:
    """Messages of a request and its conversation; after an unusable reply, also that reply and the complaint.

    `with_schema`: the reply's schema is written out, for a model that nothing binds to it.
    """
    first = render(replace(request, complaint="", bad_reply="") if request.bad_reply else request)
    if request.form != "text" and with_schema:
        first += f"\n\n{schema_request(request.schema())}"
    messages = [user_message(first, (), None), *turn_messages(request.turns)]
    return without_calls(messages + repair_messages(request) if request.bad_reply else messages)


def load_local_model(
    where: str, *, temperature: float | None = None, max_new_tokens: int = MAX_NEW_TOKENS, constrained: bool = False
) -> LocalModel:
    """Load the model in a folder that `save_pretrained` wrote, or of a hub id; on CUDA, else MPS, if there is a device.

    `constrained`: replies fit the schema or pattern of their request.

    Raises `ModelUnknown` if there is no such model, or none that writes text.
    """
    import torch

    import_torchvision()
    import transformers

    library: Any = transformers
    with known_model(where) as place:
        tokenizer = library.AutoTokenizer.from_pretrained(place, trust_remote_code=False)
        model = library.AutoModelForCausalLM.from_pretrained(
            place, dtype="auto", trust_remote_code=False, use_safetensors=True
        )
    if torch.cuda.is_available():
        model = model.to("cuda")
    elif torch.backends.mps.is_available():
        model = model.to("mps")
    elif model.dtype == torch.float16:  # processors have no arithmetic for it: ten times slower
        model = model.float()
    model = model.eval()
    name = f"{CONSTRAINED if constrained else LOCAL}{where}"
    return LocalModel(name, Generator(model, tokenizer, max_new_tokens), temperature, constrained=constrained)


@contextmanager
def known_model(where: str) -> Iterator[str]:
    """Load a model from `where` within this block; an error that there is none becomes `ModelUnknown`."""
    folder = Path(where).expanduser()
    configs = ("config.json", "adapter_config.json")  # of a model, or of adapters on one
    if where.startswith((".", "/", "~")) and not any((folder / name).is_file() for name in configs):
        raise ModelUnknown(f"{where} holds no config.json; give a folder that save_pretrained wrote, or a hub id")
    try:
        with nullcontext() if folder.is_dir() else quick_hub():
            yield str(folder)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ModelUnknown(f"no language model at {where}: {reason}; give another folder or hub id") from error


# Text generation by a causal language model: calls of about the same time become one batch.

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
        """True if the model can hold a prompt of so many tokens and a reply."""
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
        """The number of tokens generated in each row."""
        return [self._end.get(row, whole.shape[1] - self.longest) for row in range(len(whole))]


# Tokens of a conversation, as a causal language model reads them, message by message.
#
# The tokens of a message never change: a reply keeps those that the model chose, and the next message is appended.
# Rendering the whole conversation again each turn would not do for training, since a text may be cut into other tokens
# than it was made of, and some templates leave out the thoughts of earlier turns.

_REPLY = "\u2420said\u2420"
"""A placeholder for the reply, to find what the template puts around it."""


def conversation_tokens(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """Tokens of alternating messages of user and assistant, up to where the assistant speaks next."""
    tokens: list[int] = []
    for message in messages:
        text = str(message["content"])
        if not tokens:
            tokens += first_tokens(tokenizer, text)
        elif message["role"] == "assistant":
            tokens += reply_tokens(tokenizer, text)
        else:
            tokens += message_tokens(tokenizer, text, tokens)
    return tokens


def first_tokens(tokenizer: Any, text: str) -> list[int]:
    """Tokens of the first message, up to where the model speaks."""
    text = without_control_tokens(tokenizer, text)
    if not tokenizer.chat_template:
        return list(tokenizer(f"{text}\n\n")["input_ids"])
    messages = [{"role": "user", "content": text}]
    return list(tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False))


def opens_thinking(tokenizer: Any) -> bool:
    """True if the chat template begins each reply inside <think>, so that the model writes only its end."""
    if not tokenizer.chat_template:
        return False
    messages = [{"role": "user", "content": "?"}]
    prompt = str(tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False))
    return prompt.rstrip().endswith("<think>")


def reply_tokens(tokenizer: Any, text: str) -> list[int]:
    """Tokens of a reply, for one whose own tokens are unknown."""
    return list(tokenizer(without_control_tokens(tokenizer, text), add_special_tokens=False)["input_ids"])


def message_tokens(tokenizer: Any, text: str, before: Sequence[int]) -> list[int]:
    """Tokens of a message after a reply, from the end of the model's turn to the beginning of its next one.

    `before` are the tokens so far: an end of turn that the model wrote itself is not repeated.
    """
    text = without_control_tokens(tokenizer, text)
    if tokenizer.chat_template:
        messages = [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": _REPLY},
            {"role": "user", "content": text},
        ]
        whole = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        text = whole.partition(_REPLY)[2]
    else:
        text = f"\n\n{text}\n\n"
    tokens = list(tokenizer(text, add_special_tokens=False)["input_ids"])
    return tokens[1:] if before and tokens[:1] == [before[-1]] else tokens


def without_control_tokens(tokenizer: Any, text: str) -> str:
    """Break up control tokens in a text: a subtitle must not end the turn that quotes it."""
    for token in tokenizer.all_special_tokens:
        if token in text:
            text = text.replace(token, f"{token[:1]} {token[1:]}")
    return text


# Constrained decoding: the schema or pattern of a request's reply binds what a model in this process can write.
#
# At each token llguidance says which ones may follow, and the others get no probability. Texts and lists without a
# limit get one here: a small model that nothing stops goes on until its reply is cut off.

MAX_CHARACTERS, MAX_ITEMS = 240, 8
LISTED_CHARACTERS, LISTED_TEXTS = 100, 4
"""Of texts in a list, whose length multiplies: eight of 240 characters were cut off at 224 tokens."""
Processor = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]
"""Tokens so far [n, tokens] and scores of the next one [n, vocabulary] to scores."""


def reply_grammar(request: Request[R]) -> str:
    """The grammar of a request's reply, in llguidance's form; "" if any text is one."""
    import llguidance

    if request.form == "text":
        pattern = request.pattern()
        return llguidance.LLMatcher.grammar_from_regex(pattern) if pattern else ""
    schema = {**bound(request.schema()), "x-guidance": {"whitespace_flexible": False}}
    options = getattr(getattr(request, "question", None), "options", ())
    if options and "option" in schema.get("properties", {}):  # no schema says that an answer needs a letter
        letters = {"type": "string", "enum": list(string.ascii_uppercase[: len(options)])}
        schema["properties"] = {**schema["properties"], "option": letters}
    return llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema))


def bound(schema: Any) -> Any:
    """A JSON schema whose texts and lists all have a greatest length."""
    if isinstance(schema, list):
        return [bound(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    bounded = {key: bound(each) for key, each in schema.items()}
    if bounded.get("type") == "string" and not {"enum", "const", "pattern", "format"} & set(bounded):
        bounded.setdefault("maxLength", MAX_CHARACTERS)
    if bounded.get("type") == "array":
        most = MAX_ITEMS
        if (items := schema.get("items", {})).get("type") == "string" and "maxLength" in bounded["items"]:
            bounded["items"]["maxLength"], most = items.get("maxLength", LISTED_CHARACTERS), LISTED_TEXTS
            bounded["items"].setdefault("minLength", 1)
        bounded.setdefault("maxItems", max(most, int(bounded.get("minItems", 0))))
    return bounded


class TokenMasks:
    """Masks of the tokens that may follow, for one tokenizer; a model with `vocabulary` scores; end tokens `ends`."""

    def __init__(self, tokenizer: Any, vocabulary: int, ends: Sequence[int]) -> None:
        self._tokenizer, self._vocabulary, self._ends = tokenizer, vocabulary, list(ends)

    @cached_property
    def _tokens(self) -> Any:
        import llguidance.hf

        return llguidance.hf.from_tokenizer(self._tokenizer, n_vocab=self._vocabulary, eos_token=self._ends)

    def processor(self, grammars: Sequence[str], prompt_tokens: int) -> Processor:
        """Bind each row of a batch to its grammar, "" to none; raises `ModelRejected` for one that is too complex."""
        import llguidance
        import torch

        matchers = [llguidance.LLMatcher(self._tokens, each) if each else None for each in grammars]
        for matcher in filter(None, matchers):
            if matcher.is_error():
                raise ModelRejected(f"no constrained decoding of this reply: {matcher.get_error()}; use local:FOLDER")

        def mask(tokens: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            for row, matcher in enumerate(matchers):
                if matcher is None:
                    continue
                if tokens.shape[1] > prompt_tokens and not matcher.is_stopped():
                    matcher.consume_token(int(tokens[row, -1]))
                allowed = torch.frombuffer(bytearray(matcher.compute_logit_bias()), dtype=torch.uint8)
                scores[row, allowed[: scores.shape[1]] == 0] = -torch.inf
            return scores

        return mask
