"""Count the input tokens that a warm prefix cache serves over a run: `python -m tests.bench.prefix`.

Live, agents answer questions about an hour-long sketch film, and the messages of their requests are counted as an
endpoint would get them; or the requests are read from traces of earlier runs. Each model has a cache of its own, which
is empty at first and keeps everything (`prefix_cache`). A request that was answered before another one is taken to be
in the cache when that one comes, also where the two were sent side by side.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

import typer

from kinodex.agent.ask import ask
from kinodex.agent.models.completion import reply_schema, tool_parameters
from kinodex.agent.models.openai_model import wire_messages
from kinodex.agent.models.roles import Role
from kinodex.agent.prompts import CHARACTERS_A_TOKEN, Message, Picture, PictureRule, message_parts, picture_tokens
from kinodex.agent.protocol import Models, Request
from kinodex.agent.trace import Event, Exchanged, Record, read_trace
from kinodex.jobs.errors import UsageError
from kinodex.jobs.known_answers import KnownQuestion, read_known
from kinodex.jobs.models import ModelChoice, chosen_models
from kinodex.jobs.open import open_environment
from tests.bench.evaluation import RestlessModel, prepare
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


def count_traces(paths: Sequence[Path], size: tuple[int, int], rules: Tokens) -> list[PrefixFigures]:
    """Count the requests of traces, in the order of the files, with the same caches for all."""
    prompts = [prompt for path in paths for prompt in prompts_of_trace(read_trace(path), size, rules)]
    return count(paths[0].name if len(paths) == 1 else f"{len(paths)} traces", prompts, rules)


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


def as_json(each: PrefixFigures) -> dict[str, Any]:
    """Make the JSON of one row."""
    return {
        name: getattr(each, name) for name in ("run", "request", "requests", "pictures", "tokens", "cached", "share")
    }


# Prefix caches of servers, by their published rules: the tokens of a request that earlier requests left in the cache.
#
# - vllm: blocks of 16 tokens, each known by the hash of its tokens, of the pictures in it and of the block before it;
# only full blocks are kept, and the last token of a request is always computed, so that a request that is wholly
# known
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
# Tokens are those of a tokenizer, or an estimate of four characters each; a picture is as many tokens as a published
# rule
# gives its size (`agent.prompts.token_estimate`), and known by its content and detail. Requests come from a run,
# event by
# event, or from its trace. A trace holds no pictures, only their hashes: their size is then an assumption.

SIDE_PX: int = Role.model_fields["image_side_px"].default
LABEL = re.compile(r"^\[(frame \d+ at [^\n]*)\]$", re.MULTILINE)
"""A line of a trace's prompt that stands for a picture."""

FAMILIES: Mapping[str, str] = {
    **dict.fromkeys(("ScoreSegments", "ScoreAndPropose", "Decide"), "search"),
    **dict.fromkeys(("Assess", "CreatePlan", "AdjustPlan", "CallTool", "AnswerBank"), "bank"),
}
"""Kinds of request that go to OpenAI with one schema."""

Tokenize = Callable[[str], Sequence[Token]]
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
    tokenize: Tokenize = split_text

    def of(self, head: str, messages: Sequence[Parts], speakers: Sequence[str]) -> list[Token]:
        """List the tokens of a head and messages, each message a list of texts and pictures."""
        tokens = list(self.tokenize(head))
        for speaker, parts in zip(speakers, messages, strict=True):
            text = f"<|im_start|>{speaker}\n"
            for part in parts:
                if isinstance(part, str):
                    text += part
                    continue
                tokens += self.tokenize(text)
                tokens += _picture(part, self.pictures)
                text = ""
            tokens += self.tokenize(f"{text}<|im_end|>\n")
        return tokens


def load_tokenizer(folder: Path) -> Tokenize:
    """Load the tokenizer of a folder of transformers. Raises `UsageError` if there is none."""
    from tokenizers import Tokenizer

    file = folder / "tokenizer.json"
    if not file.is_file():
        raise UsageError(f"got --tokenizer {folder}, which holds no tokenizer.json; give the folder of a model")
    tokenizer = Tokenizer.from_file(str(file))
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def parse_tokens(rules: str, pictures: str, tokenizer: Path | None) -> Tokens:
    """Read the rules from options. Raises `UsageError` for names of others."""
    if rules not in get_args(Rules):
        raise UsageError(f"got --rules {rules}; the rules are {' and '.join(get_args(Rules))}")
    if pictures not in get_args(PictureRule):
        raise UsageError(f"got --pictures {pictures}; the rules are {' and '.join(get_args(PictureRule))}")
    tokenize = split_text if tokenizer is None else load_tokenizer(tokenizer)
    return Tokens(cast(Rules, rules), cast(PictureRule, pictures), tokenize)


def parse_size(text: str) -> tuple[int, int]:
    """Read a width and a height, "512x288". Raises `UsageError` for anything else."""
    found = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text.strip())
    if found is None:
        raise UsageError(f"got --size {text}; write WIDTHxHEIGHT in pixels, such as 512x288")
    return int(found[1]), int(found[2])


def prompt_of_request(request: Request[Any], model: str, rules: Tokens) -> Prompt:
    """Make the prompt of a request as it is sent to an endpoint, at the default size of pictures.

    By OpenAI's rules that is OpenAI's own, to which requests of a run go with one schema.
    """
    joint = rules.rules == "openai"
    return prompt_of_messages(
        type(request).__name__, model, wire_messages(request, SIDE_PX, joint=joint), _head(request, rules), rules
    )


def prompt_of_messages(kind: str, model: str, messages: Sequence[Message], head: str, rules: Tokens) -> Prompt:
    """Make the prompt of chat messages; `head` is what a server puts before them."""
    parts = [list(message_parts(message)) for message in messages]
    tokens = rules.of(head, parts, [str(message["role"]) for message in messages])
    return Prompt(kind, model, tuple(tokens), _count_pictures(parts))


def prompts_of_trace(records: Sequence[Record], size: tuple[int, int], rules: Tokens) -> Iterator[Prompt]:
    """Make the prompts of a run from its trace, in order; pictures are taken to have this size.

    A name stands for the schema of a request, which a trace does not hold: that of its family, if one schema serves it
    (`kinodex.agent.replies`), else its kind.
    """
    for record in records:
        if record["event"] == "Exchanged":
            kind = record["request"]
            head = FAMILIES.get(kind, kind) if rules.rules == "openai" else ""
            parts: list[Parts] = [list(_recorded_parts(record, size)), *_recorded_turns(record["inputs"])]
            speakers = ["user", *_speakers(record["inputs"])]
            tokens = rules.of(head, parts, speakers)
            yield Prompt(record["request"], record["model"], tuple(tokens), _count_pictures(parts))


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


def _count_pictures(messages: Sequence[Parts]) -> int:
    return sum(isinstance(part, Picture) for parts in messages for part in parts)


def _recorded_parts(record: Record, size: tuple[int, int]) -> Iterator[str | Picture]:
    """The parts of a recorded request: its pictures stand at their labels, in old traces at the end."""
    text, frames = record["prompt"], record["inputs"].get("frames", [])
    pictures = [Picture(each["jpeg"], *size, each.get("detail", "auto")) for each in frames]
    labels = list(LABEL.finditer(text))
    if len(labels) != len(pictures):
        yield text
        for number, (frame, picture) in enumerate(zip(frames, pictures, strict=True), start=1):
            yield f"frame {number} at {frame['time_s']:.2f} s"
            yield picture
        return
    start = 0
    for label, picture in zip(labels, pictures, strict=True):
        yield text[start : label.start()] + label[1]
        yield picture
        start = label.end()
    yield text[start:]


def _recorded_turns(inputs: Mapping[str, Any]) -> list[list[str]]:
    repair = [[inputs["bad_reply"]], [inputs["complaint"]]] if inputs.get("bad_reply") else []
    return [[turn["text"]] for turn in inputs.get("turns", ())] + repair


def _speakers(inputs: Mapping[str, Any]) -> list[str]:
    repair = ["assistant", "user"] if inputs.get("bad_reply") else []
    return [turn["speaker"] for turn in inputs.get("turns", ())] + repair


def main(
    directory: Annotated[Path | None, typer.Argument(help="Folder for the film and its library.")] = None,
    agent: Annotated[list[str] | None, typer.Option(help="An agent of `kinodex agents`; may be repeated.")] = None,
    trace: Annotated[list[Path] | None, typer.Option(help="Count this trace instead; may be repeated.")] = None,
    rules: Annotated[str, typer.Option(help="The cache: vllm or openai.")] = "vllm",
    pictures: Annotated[str, typer.Option(help="Tokens of a picture: openai (tiles) or qwen (patches).")] = "openai",
    tokenizer: Annotated[Path | None, typer.Option(help="Default: 4 characters a token.")] = None,
    questions: Annotated[int, typer.Option(min=1, help="Questions that an agent answers, with one cache.")] = 1,
    hours: Annotated[float, typer.Option(min=0.01, help="Length of the film, if it is made now.")] = 1.0,
    explore: Annotated[bool, typer.Option(help="Make eea and vca use all their rounds.")] = True,
    size: Annotated[str, typer.Option(help="Width and height of the pictures of a trace.")] = "512x288",
    model: str = "builtin",
    base_url: str | None = None,
) -> None:
    """Count the input tokens that a warm prefix cache serves over a run, by the published rules of servers."""
    counting = parse_tokens(rules, pictures, tokenizer)
    if trace:
        figures = count_traces(trace, parse_size(size), counting)
    elif directory is None:
        raise UsageError("got no folder and no --trace; name a folder for the film, or a trace to count")
    else:
        choice = ModelChoice(model, base_url, cache=False)
        figures = bench_prefix(LiveRun(directory, agent or ["eea"], questions, hours, choice, explore), counting, say)
    print(table(figures, counting))


if __name__ == "__main__":
    typer.run(main)
