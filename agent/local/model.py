"""A causal language model of transformers in this process, as a `Model`: a trained checkpoint is a master.

It reads text only. `kinodex ask --model local:FOLDER` or a role's `model = "local:FOLDER"` names one, and
`constrained:FOLDER` one that can write nothing but what fits the request (`reply_grammar`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from kinodex.agent.errors import ModelRejected, ModelUnknown, TakesNoPictures
from kinodex.agent.local.generator import Generator
from kinodex.agent.local.grammar import reply_grammar
from kinodex.agent.local.tokens import conversation_tokens
from kinodex.agent.models.reply_parser import parse_reply
from kinodex.agent.models.schema_ladder import repair_messages, schema_request
from kinodex.agent.prompts.messages import Message, turn_messages, user_message, without_calls
from kinodex.agent.prompts.rendering import render
from kinodex.agent.prompts.reply_form import FORM
from kinodex.agent.prompts.shortening import fit_context
from kinodex.agent.protocol.exchange import Exchange, Usage
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request
from kinodex.index.spaces.import_torch import import_torchvision
from kinodex.index.spaces.quick_hub import quick_hub

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

    async def check_sight(self) -> tuple[TakesNoPictures, None]:
        """Say that it takes no pictures, as `OpenAIModel.check_sight` does."""
        return TakesNoPictures(f"{self.name} reads text only", "give the roles that see a model of their own"), None

    async def ask(self, request: Request[R]) -> Exchange[R]:
        if request.frames:
            raise ModelRejected(
                f"{self.name} reads text only, and {type(request).__name__} shows frames; "
                "give the roles that see a model of their own"
            )
        generator = self.generator
        prompt = self._prompt(fit_context(request, generator.context_tokens, generator.max_new_tokens, self._count))
        temperature = request.sampled_at(self.temperature)
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
    elif request.form != "text":  # its grammar has the form, and a small model copies the words of an example
        first = "\n".join(line for line in first.splitlines() if not line.startswith(FORM))
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
