"""Count the input tokens that a warm prefix cache serves over a run: `python -m tests.bench.prefix`.

Agents answer questions about an hour-long sketch film, and the messages of their requests are counted as an endpoint
would get them. Each model has a cache of its own, which is empty at first and keeps everything (`PrefixCache`).
A request that was answered before another one is taken to be
in the cache when that one comes, also where the two were sent side by side.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

import typer

from kinodex.agent.ask import ask
from kinodex.agent.models.completion import reply_schema, tool_parameters
from kinodex.agent.models.openai_model import wire_messages
from kinodex.agent.models.roles import Role
from kinodex.agent.prompts import CHARACTERS_A_TOKEN, Picture, PictureRule, message_parts, picture_tokens
from kinodex.agent.protocol import Exchange, Model, Models, R, Request
from kinodex.agent.requests.tree import Decide
from kinodex.agent.trace import Event, Exchanged
from kinodex.jobs.errors import UsageError
from kinodex.jobs.known_answers import KnownQuestion, read_known
from kinodex.jobs.models import ModelChoice, chosen_models
from kinodex.jobs.open import open_environment
from tests.bench.evaluation import prepare
from tests.support.say import say

ALL = "all"
"""The row of all requests of a run."""


@dataclass(frozen=True, slots=True)
class LiveRun:
    """Agents that answer the first `questions` questions about the first film of `directory`.

    `explore`: a tree agent uses all its rounds, whatever it finds (`restless_model`).
    """

    directory: Path
    agents: Sequence[str] = ("eea",)
    questions: int = 1
    hours: float = 1.0
    choice: ModelChoice = field(default_factory=ModelChoice)
    explore: bool = True


@dataclass(frozen=True, slots=True)
class PrefixFigures:
    """Requests of one kind in one run, their input tokens, and those of them that the cache served."""

    run: str
    request: str
    requests: int
    pictures: int
    tokens: int
    cached: int

    @property
    def share(self) -> float:
        """The share of the input tokens that the cache served; 0 without any."""
        return self.cached / self.tokens if self.tokens else 0.0


def bench_prefix(live: LiveRun, rules: Tokens, report: Callable[[str], object]) -> list[PrefixFigures]:
    """Run each agent and count its requests; films and library in the directory are made where missing."""
    films = prepare(live.directory, live.hours)
    known = read_known(films / "questions.jsonl")
    first = [each for each in known if each.film == known[0].film][: live.questions]
    figures: list[PrefixFigures] = []
    for agent in live.agents:
        prompts = asyncio.run(_prompts(agent, first, live, rules))
        figures += count(agent, prompts, rules)
        report(f"{agent}: {figures[-1].share:.2f}")
    return figures


def count(run: str, prompts: Iterable[Prompt], rules: Tokens) -> list[PrefixFigures]:
    """Count the tokens of prompts in the order in which they were sent: a row for each kind, then one for all."""
    caches: defaultdict[str, PrefixCache] = defaultdict(lambda: open_cache(rules.rules))
    rows: dict[str, PrefixFigures] = {}
    for prompt in prompts:
        served = caches[prompt.model].serve(prompt.tokens)
        for kind in (prompt.kind, ALL):
            before = rows.get(kind, PrefixFigures(run, kind, 0, 0, 0, 0))
            rows[kind] = PrefixFigures(
                run,
                kind,
                before.requests + 1,
                before.pictures + prompt.pictures,
                before.tokens + len(prompt.tokens),
                before.cached + served,
            )
    return [*(row for kind, row in rows.items() if kind != ALL), rows.get(ALL, PrefixFigures(run, ALL, 0, 0, 0, 0))]


async def _prompts(agent: str, known: Sequence[KnownQuestion], live: LiveRun, rules: Tokens) -> list[Prompt]:
    prompts: list[Prompt] = []

    def on_event(event: Event) -> None:
        if isinstance(event, Exchanged):
            prompts.append(prompt_of_request(event.request, event.model, rules))

    environment = open_environment(str(live.directory / "library"), [known[0].film])
    async with chosen_models(live.choice) as models:
        answering = _restless(models(environment)) if live.explore else models(environment)
        for each in known:
            await ask(each.question, environment, answering, agent=agent, on_event=on_event)
    return prompts


def _restless(models: Models) -> Models:
    if isinstance(models, Mapping):
        return {role: RestlessModel(model) for role, model in models.items()}
    return RestlessModel(models)


def table(figures: Sequence[PrefixFigures], rules: Tokens) -> str:
    """Write the figures as Markdown, for people."""
    lines = [
        f"Input tokens that a warm prefix cache serves, by the rules of {rules.rules}; pictures by those of "
        f"{rules.pictures}",
        "",
        "| run | request | requests | pictures | tokens | cached | share |",
        "|---" * 7 + "|",
    ]
    lines += [
        f"| {each.run} | {each.request} | {each.requests:,} | {each.pictures:,} | {each.tokens:,} | {each.cached:,} "
        f"| {each.share:.2f} |"
        for each in figures
    ]
    return "\n".join(lines)


# Prefix caches of servers, by their published rules: the tokens of a request that earlier requests left in the cache.
#
# - vllm: blocks of 16 tokens, each known by the hash of its tokens, of the pictures in it and of the block before it;
# only full blocks are kept, and the last token of a request is always computed, so that a request that is wholly known
#   still computes its last block (vLLM, "Automatic Prefix Caching", docs.vllm.ai/en/latest/design/prefix_caching).
# - openai: prefixes of at least 1,024 tokens, in steps of 128 from there; pictures must be the same, at the same
# detail;
#   the schema of a structured output and the tools stand before the messages (OpenAI, "Prompt caching",
#   developers.openai.com/api/docs/guides/prompt-caching, for models before GPT-5.6, and its "Prompt Caching 201").
#
# The cache is warm and large: all requests before are in it, whatever else a server works on, and nothing is evicted.
# The
# tokens of replies are left out, though vLLM keeps them too: a reply that is sent back counts as new.

Rules = Literal["vllm", "openai"]
BLOCK_TOKENS = 16
LEAST_TOKENS, STEP_TOKENS = 1024, 128

Token = Hashable
"""One token: a number, a piece of text, or a picture's digest with the token's place in the picture."""


@dataclass(slots=True)
class PrefixCache:
    """The cache of one model. `lengths` gives the lengths of prefixes, in ascending order, that may be served."""

    lengths: Callable[[int], Sequence[int]]
    _known: set[bytes] = field(default_factory=set)

    def serve(self, tokens: Sequence[Token]) -> int:
        """Count the tokens at the start of a request that the cache serves, then keep the request's prefixes."""
        served, known = 0, True
        for length, digest in _prefix_digests(tokens, self.lengths(len(tokens))):
            known = known and digest in self._known
            if known and length < len(tokens):
                served = length
            self._known.add(digest)
        return served


def open_cache(rules: Rules) -> PrefixCache:
    """Open an empty cache by the rules of a server."""
    return PrefixCache(vllm_lengths if rules == "vllm" else openai_lengths)


def vllm_lengths(tokens: int) -> Sequence[int]:
    """Lengths of the prefixes that vLLM keeps of a request: the ends of its full blocks."""
    return range(BLOCK_TOKENS, tokens + 1, BLOCK_TOKENS)


def openai_lengths(tokens: int) -> Sequence[int]:
    """Lengths of the prefixes that OpenAI's cache keeps of a request: 1,024 tokens, 1,152, 1,280 and so on."""
    return range(LEAST_TOKENS, tokens + 1, STEP_TOKENS)


def _prefix_digests(tokens: Sequence[Token], lengths: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Hash each prefix of these lengths, the hash of a shorter one among what makes the next."""
    start, digest = 0, b""
    for length in lengths:
        digest = hashlib.sha256(digest + repr(tuple(tokens[start:length])).encode()).digest()
        start = length
        yield length, digest


# Requests as a server's prefix cache sees them: one list of tokens each, with what stands before the messages.
#
# Tokens are an estimate of four characters each; a picture is as many tokens as a published rule gives its size
# (`agent.prompts.picture_tokens`), and known by its content and detail.

SIDE_PX: int = Role.model_fields["image_side_px"].default
Parts = Sequence[str | Picture]
"""One message."""


def split_text(text: str) -> list[Token]:
    """Split a text into pieces of four characters, the estimate of a token."""
    return [text[at : at + CHARACTERS_A_TOKEN] for at in range(0, len(text), CHARACTERS_A_TOKEN)]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request: its kind, the model that gets it, its tokens, and how many pictures are among them."""

    kind: str
    model: str
    tokens: tuple[Token, ...]
    pictures: int


@dataclass(frozen=True, slots=True)
class Tokens:
    """The rules by which requests become tokens. `rules` decides if a reply's schema is among them."""

    rules: Rules = "vllm"
    pictures: PictureRule = "openai"

    def of(self, head: str, messages: Sequence[Parts], speakers: Sequence[str]) -> list[Token]:
        """List the tokens of a head and messages, each message a list of texts and pictures."""
        tokens = list(split_text(head))
        for speaker, parts in zip(speakers, messages, strict=True):
            text = f"<|im_start|>{speaker}\n"
            for part in parts:
                if isinstance(part, str):
                    text += part
                    continue
                tokens += split_text(text)
                tokens += _picture(part, self.pictures)
                text = ""
            tokens += split_text(f"{text}<|im_end|>\n")
        return tokens


def parse_tokens(rules: str, pictures: str, tokenizer: None = None) -> Tokens:
    """Read the rules from options. Raises `UsageError` for names of others."""
    for option, given, known in (("rules", rules, Rules), ("pictures", pictures, PictureRule)):
        if given not in get_args(known):
            raise UsageError(f"got --{option} {given}; the rules are {' and '.join(get_args(known))}")
    return Tokens(cast(Rules, rules), cast(PictureRule, pictures))


def prompt_of_request(request: Request[Any], model: str, rules: Tokens) -> Prompt:
    """Make the prompt of a request as it is sent to an endpoint, at the default size of pictures.

    By OpenAI's rules that is OpenAI's own, to which requests of a run go with one schema.
    """
    messages = wire_messages(request, SIDE_PX, joint=rules.rules == "openai")
    parts = [list(message_parts(message)) for message in messages]
    tokens = rules.of(_head(request, rules), parts, [str(message["role"]) for message in messages])
    pictures = sum(isinstance(part, Picture) for each in parts for part in each)
    return Prompt(type(request).__name__, model, tuple(tokens), pictures)


def _head(request: Request[Any], rules: Tokens) -> str:
    """The tools, and by OpenAI's rules the schema of the reply: both stand before the messages."""
    if request.tools:
        return json.dumps(tool_parameters(request.tools)["tools"])
    if rules.rules == "openai" and request.form == "json":
        return json.dumps(reply_schema(request, joint=True))
    return ""


def _picture(picture: Picture, rule: PictureRule) -> list[Token]:
    digest = hashlib.sha256(f"{picture.detail} {picture.url}".encode()).hexdigest()
    count = picture_tokens(picture.width_px, picture.height_px, rule, picture.detail)
    return [(digest, place) for place in range(count)]


# A model that never has enough: it explores as long as it may, so that a run has all its rounds.
#
# For counting the tokens of long runs of the tree agents. All requests but decisions go to another model, and the
# reasons
# of scores are made as long as language models write them: they are part of later prompts.

REASON = (
    "The frames at the borders of segment {number} show the same place without the thing in question; it may come into "
    "view in between, since the scene changes there."
)
REASON_FIELDS = ("explanation", "reasoning")


@dataclass(frozen=True, slots=True)
class RestlessModel:
    """A model that answers as `model` does, but explores the best open segment until it must answer."""

    model: Model

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def has_language(self) -> bool:
        return self.model.has_language

    async def ask(self, request: Request[R]) -> Exchange[R]:
        number = _best_open(request)
        if number is not None:
            return Exchange(request.Reply.model_validate(_exploring(number)), None)
        exchange = await self.model.ask(request)
        return exchange if exchange.reply is None else replace(exchange, reply=_with_reasons(exchange.reply))


def _best_open(request: Request[Any]) -> int | None:
    """The segment to explore next; None if the request is not for a decision, or none can be explored."""
    if not isinstance(request, Decide) or request.must_answer:
        return None
    open_ones = [each for each in request.candidates if each.explorable]
    return max(open_ones, key=lambda each: each.score or 0.0).segment.number if open_ones else None


def _exploring(number: int) -> dict[str, Any]:
    thought = REASON.format(number=number)
    return {
        "reasoning": thought,
        "action": "explore",
        "segment": number,
        "option": None,
        "answer": None,
        "evidence": [],
    }


def _with_reasons(reply: R) -> R:
    """Put a reason of usual length to each score of a reply."""
    scores = getattr(reply, "segments", None)
    if not isinstance(scores, list):
        return reply
    return reply.model_copy(update={"segments": [_with_reason(each) for each in scores]})


def _with_reason(score: Any) -> Any:
    names = [name for name in REASON_FIELDS if name in type(score).model_fields]
    return score.model_copy(update={name: REASON.format(number=score.segment) for name in names})


def main(
    directory: Annotated[Path, typer.Argument(help="Folder for the film and its library.")],
    agent: Annotated[list[str] | None, typer.Option(help="An agent of `kinodex agents`; may be repeated.")] = None,
    rules: Annotated[str, typer.Option(help="The cache: vllm or openai.")] = "vllm",
    pictures: Annotated[str, typer.Option(help="Tokens of a picture: openai (tiles) or qwen (patches).")] = "openai",
    questions: Annotated[int, typer.Option(min=1, help="Questions that an agent answers, with one cache.")] = 1,
    hours: Annotated[float, typer.Option(min=0.01, help="Length of the film, if it is made now.")] = 1.0,
    explore: Annotated[bool, typer.Option(help="Make eea and vca use all their rounds.")] = True,
    model: str = "builtin",
    base_url: str | None = None,
) -> None:
    """Count the input tokens that a warm prefix cache serves over a run, by the published rules of servers."""
    counting = parse_tokens(rules, pictures)
    choice = ModelChoice(model, base_url, cache=False)
    figures = bench_prefix(LiveRun(directory, agent or ["eea"], questions, hours, choice, explore), counting, say)
    print(table(figures, counting))


if __name__ == "__main__":
    typer.run(main)
