"""Requests as a server's prefix cache sees them: one list of tokens each, with what stands before the messages.

Tokens are those of a tokenizer, or an estimate of four characters each; a picture is as many tokens as a published rule
gives its size (`agent.prompts.token_estimate`), and known by its content and detail. Requests come from a run, event by
event, or from its trace. A trace holds no pictures, only their hashes: their size is then an assumption.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from agent.core.protocol import Request
from agent.models.openai_compatible import wire_messages
from agent.models.role_config import Role
from agent.models.structured_output import reply_schema, tool_parameters
from agent.prompts.render import Message
from agent.prompts.token_estimate import CHARACTERS_A_TOKEN, Picture, PictureRule, message_parts, picture_tokens
from agent.trace.trace import Record
from jobs.bench.prefix_share.cache import Rules, Token
from jobs.errors import UsageError

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
    (`agent.core.joint_schema`), else its kind.
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
