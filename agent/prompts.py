"""Prompts: the templates of requests, and the chat messages with the rendered text and its frames.

A prompt is part of the key of cached replies: its text changes only on purpose.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from kinodex.agent.protocol import (
    VIDEO_ID_LENGTH,
    Detail,
    R,
    Request,
    ScoredSegment,
    Segment,
    ShownFrame,
    Turn,
    Video,
    by_kind,
    citation_numbers,
    listed_candidates,
)
from kinodex.agent.replies import DOTS, NAMED, REASONING, Joint, Schema
from kinodex.index.pictures import stored_picture
from kinodex.index.text import beginning, end
from kinodex.index.times import player_clock

if TYPE_CHECKING:
    from jinja2 import Environment, Template

# Prompts of requests: the text, rendered from a template of agent/templates, and the chat messages with it.
#
# Frames stand as JPEG data URLs, each after its label, where the template includes `_frames.jinja`; else after the
# text. Conversations are laid out for the prefix caches of servers: a template begins with what no request of a run
# changes, then come the frames in the order of their arrival, then what varies.

Part = dict[str, object]
Message = dict[str, object]
FOLDER = Path(__file__).parent / "templates"
JPEG_QUALITY = 85
JPEG_URL = "data:image/jpeg;base64,"
LOW_SIDE_PX = 512
"""The longer side of a picture at low detail, in which OpenAI reads one for 85 tokens; at 336 rules lost answers."""
_PICTURES = f"\0{secrets.token_hex(8)}\0"
"""The place of the frames in a rendered template; no text of a question can hold it, since it is of this process."""


def render(request: Request[R], *, reasoning: bool = True) -> str:
    """Render the prompt of a request as one text, with the labels of the frames in the place of their pictures.

    Without `reasoning` the model is not asked to write down its reasons.
    """
    before, after = _texts_around_frames(request, reasoning)
    *noted, last = log_lines(request)
    texts = [text for lines, label in zip(noted, _labels(request), strict=True) for text in (*lines, f"[{label}]")]
    labels = "\n".join([*texts, *last])
    return "\n\n".join(part for part in (before, labels, after) if part)


def request_message(
    request: Request[R], side_px: int | None, detail: Detail = "auto", *, reasoning: bool = True, joint: bool = False
) -> Message:
    """The first message of a request: the text before the frames, each frame after its label, and the text after.

    Plain text if there are no frames. Frames are scaled down to `side_px`, unless None. `joint`: the reply is asked
    for in the joint schema of its run, where it has one (`kinodex.agent.replies`).
    """
    detail = detail if request.detail == "auto" else request.detail
    before, after = _texts_around_frames(request, reasoning, joint)
    if not request.frames:
        return {"role": "user", "content": "\n\n".join(part for part in (before, after) if part)}
    *noted, last = log_lines(request)
    parts = [_text_part(before), *_frame_parts(_labels(request), request.frames, side_px, detail, noted)]
    parts += map(_text_part, last)
    return {"role": "user", "content": [*parts, _text_part(after)] if after else parts}


def _texts_around_frames(request: Request[R], reasoning: bool, joint: bool = False) -> tuple[str, str]:
    """The text before the frames and the one after them, which is empty if the template does not say their place."""
    text = _template(request.template).render(request=request, pictures=_PICTURES, reasoning=reasoning, joint=joint)
    before, _, after = text.partition(_PICTURES)
    return before.strip(), after.strip()


def log_lines(request: Request[R]) -> list[list[str]]:
    """Entries of a request's log before each of its frames, in the order of their labels, and after the last one.

    An entry stands where it was written, so that what comes before it never changes.
    """
    placed: list[list[str]] = [[] for _ in range(len(request.frames) + 1)]
    in_turn = not getattr(request, "must_answer", False)  # at the end frames stand in the order of time
    for entry in getattr(request, "log", None) or ():
        later = (at for at, frame in enumerate(request.frames) if in_turn and frame.label > entry.after)
        placed[next(later, -1)].append(entry.line)
    return placed


def _labels(request: Request[R]) -> list[str]:
    return frame_labels(request.frames, getattr(request, "videos", ()))


@cache
def _template(name_or_text: str) -> Template:
    """Load a template of the folder by its name, or one given as text, which may include those of the folder."""
    if "\n" in name_or_text:
        return _templates().from_string(name_or_text)
    return _templates().get_template(f"{name_or_text}.jinja")


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["one_line"] = lambda text: " ".join(text.split())
    templates.filters["seconds"] = lambda time_s: f"{time_s:.1f} s"
    templates.filters["by_kind"] = by_kind
    templates.globals["reply_line"] = reply_line
    templates.globals["clock_range"] = beside_range
    for function in (candidate_lines, frame_order, history_lines, newness, parent_score, segment_line):
        templates.globals[function.__name__] = function
    templates.globals["note_numbers"] = lambda request: citation_numbers(request.frames, request.notes)[1]
    templates.filters["video"] = lambda video_id: video_id[:VIDEO_ID_LENGTH]
    return templates


def user_message(text: str, frames: Sequence[ShownFrame], side_px: int | None, detail: Detail = "auto") -> Message:
    """One user message; plain text if there are no frames. Frames are scaled down to `side_px`, unless None.

    `detail` is for frames that have none of their own; "auto" is left off the wire.
    """
    if not frames:
        return {"role": "user", "content": text}
    return {"role": "user", "content": [_text_part(text), *_frame_parts(frame_labels(frames), frames, side_px, detail)]}


def _text_part(text: str) -> Part:
    return {"type": "text", "text": text}


def _frame_parts(
    labels: Sequence[str],
    frames: Sequence[ShownFrame],
    side_px: int | None,
    detail: Detail,
    noted: Sequence[Sequence[str]] = (),
) -> list[Part]:
    parts: list[Part] = []
    for at, (label, frame) in enumerate(zip(labels, frames, strict=True)):
        parts += map(_text_part, noted[at] if noted else ())
        level = detail if frame.detail == "auto" else frame.detail
        limit = LOW_SIDE_PX if level == "low" and (side_px is None or side_px > LOW_SIDE_PX) else side_px
        picture = {"url": data_url(scaled_jpeg(frame, limit))} | ({} if level == "auto" else {"detail": level})
        parts += [_text_part(label), {"type": "image_url", "image_url": picture}]
    return parts


def frame_labels(frames: Sequence[ShownFrame], videos: Sequence[Video] = ()) -> list[str]:
    """The text before each frame: its number (as evidence cites it), its time and, of several videos, its video.

    `videos` are those that a request is about: a label then stays the same whichever frames stand beside it.
    """
    numbers, _ = citation_numbers(frames)
    labels = [
        f"frame {number} at {frame.time_s:.2f} s{beside(frame.time_s)}"
        for number, frame in zip(numbers, frames, strict=True)
    ]
    if len({each.video_id for each in videos} | {each.video_id for each in frames}) <= 1:
        return labels
    ids = [frame.video_id[:VIDEO_ID_LENGTH] for frame in frames]
    return [f"{label} of video {video_id}" for label, video_id in zip(labels, ids, strict=True)]


CALL_ID = "call{:05d}"
"""Nine letters and digits, as Mistral's servers want it."""


def turn_messages(turns: Sequence[Turn]) -> list[Message]:
    messages: list[Message] = []
    for at, turn in enumerate(turns):
        answered = any(result.tool and result.speaker != "assistant" for result in turns[at + 1 : at + 2])
        if turn.tool and turn.speaker == "assistant" and answered:
            arguments = {name: each for name, each in json.loads(turn.text).items() if name != "tool"}
            function = {"name": turn.tool, "arguments": json.dumps(arguments, ensure_ascii=False)}
            calls = [{"id": CALL_ID.format(at), "type": "function", "function": function}]
            messages.append({"role": "assistant", "content": "", "tool_calls": calls})
        elif turn.tool and turn.speaker != "assistant":
            messages.append({"role": "tool", "content": turn.text, "tool_call_id": CALL_ID.format(at - 1)})
        else:
            messages.append({"role": turn.speaker, "content": turn.text})
    return messages


def without_calls(messages: Sequence[Message]) -> list[Message]:
    """Messages with calls of tools as JSON, and their results as texts, for models that have no tools."""
    plain: list[Message] = []
    for message in messages:
        if message["role"] == "tool":
            message = {"role": "user", "content": message["content"]}
        for call in cast(list[Any], message.get("tool_calls", ())):
            arguments = json.loads(call["function"]["arguments"])
            text = json.dumps({"tool": call["function"]["name"], **arguments}, ensure_ascii=False)
            message = {"role": message["role"], "content": text}
        plain.append(message)
    return join_turns(plain)


def join_turns(messages: Sequence[Message]) -> list[Message]:
    """Join neighbouring messages of one speaker: many chat templates refuse two in a row.

    What is said to a model right after the result of a tool stands at its end: some refuse another message there too.
    """
    joined: list[Message] = []
    for message in messages:
        before = joined[-1]["role"] if joined else ""
        if "tool_calls" not in message and message["role"] in (before, "user" if before == "tool" else ""):
            joined[-1] = append_text(joined[-1], str(message["content"]))
        else:
            joined.append(message)
    return joined


def scaled_jpeg(frame: ShownFrame, side_px: int | None) -> bytes:
    """The frame's own JPEG, re-encoded only if its longest side is over `side_px`."""
    if side_px is None or max(frame.width_px, frame.height_px) <= side_px:
        return frame.jpeg
    smaller = io.BytesIO()
    with stored_picture(frame.jpeg) as image:
        image.draft("RGB", (side_px, side_px))  # decodes straight to the nearest larger size
        image.thumbnail((side_px, side_px))
        image.save(smaller, "JPEG", quality=JPEG_QUALITY)
    return smaller.getvalue()


def append_text(message: Message, text: str) -> Message:
    content = message["content"]
    if isinstance(content, list):
        return {**message, "content": [*content, {"type": "text", "text": text}]}
    return {**message, "content": f"{content}\n\n{text}"}


def hash_pictures(messages: Sequence[Message]) -> list[Message]:
    """Put a hash in the place of each picture: the result is equal exactly when the messages are."""

    def hashed(part: dict[str, Any]) -> dict[str, Any]:
        if "image_url" not in part:
            return part
        others = {name: value for name, value in part["image_url"].items() if name != "url"}
        return {"picture": hashlib.sha256(part["image_url"]["url"].encode()).hexdigest(), **others}

    contents = [message["content"] for message in messages]
    hashes = [list(map(hashed, content)) if isinstance(content, list) else content for content in contents]
    return [{**message, "content": content} for message, content in zip(messages, hashes, strict=True)]


def data_url(jpeg: bytes) -> str:
    return JPEG_URL + base64.b64encode(jpeg).decode("ascii")


# The end of a prompt, which says in what form to reply: the keys in their order, each in a few words, and the form.
#
# Both are taken from the request's own schema, so that what the prompt asks for, what a server enforces and what is
# read cannot differ. The form has dots in the place of all content: an example with some is repeated by weak models,
# and a choice in it is recommended. Sent back, the form is no reply (`completion.parse_json`).
#
# Where one schema serves all requests of a run (`kinodex.agent.replies.Joint`), the server puts it before the messages
# with the words about each key. The prompt then says only which reply is due, and what its keys may be this time.

BEGINNING = "Reply with JSON only, one object with exactly these keys in this order:"
JOINT_BEGINNING = "Reply with JSON only, as"
FORM = "The form, with dots in the place of your own words and numbers:"


def reply_line(request: Request[Any], reasoning: bool = True, joint: bool = False) -> str:
    """Say in what form to reply; without `reasoning` the model is not asked to write down its thoughts.

    `joint`: in the joint schema of the run, if the request has one.
    """
    if joint and (shared := request.joint()) is not None:
        return _joint_line(request, shared, reasoning)
    schema = request.schema(reasoning=reasoning)
    return "\n".join([BEGINNING, *_keys(schema, "- "), f"{FORM} {reply_form(schema)}"])


def _joint_line(request: Request[Any], shared: Joint, reasoning: bool) -> str:
    """Name the keys of a reply in the joint schema, with their values where this request binds them more closely."""
    own = request.schema(reasoning=reasoning)[NAMED]
    joint = shared.replies[shared.name][NAMED]
    keys = [f'"{name}"{_closer(own.get(name), each)}' for name, each in joint.items() if reasoning or name != REASONING]
    return f"{JOINT_BEGINNING} {shared.outline(reasoning=reasoning)}, with the keys {', '.join(keys)}."


def _closer(own: Schema | None, joint: Schema) -> str:
    """The values of a key in brackets if the joint schema allows others; a key of other requests is an empty list."""
    values = "[]" if own is None else _values(own)
    return f" ({values})" if values and values != _values(joint) else ""


def reply_form(schema: Schema) -> str:
    """The form of a reply as JSON would have it, with dots in the place of texts and numbers."""
    if NAMED in schema:
        return f"{{{', '.join(f'{json.dumps(name)}: {reply_form(each)}' for name, each in schema[NAMED].items())}}}"
    if "items" in schema:
        return f"[{reply_form(schema['items'])}, {DOTS}]"
    kinds = [schema.get("type")] if "type" in schema else [each.get("type") for each in schema["anyOf"]]
    return "null" if kinds == ["null"] else f'"{DOTS}"' if "string" in str(kinds[0]) else DOTS


def _keys(schema: Schema, indent: str) -> Iterator[str]:
    for name, each in schema[NAMED].items():
        inner = each.get("items", each)
        said = [text for text in (each.get("description", ""), _values(each)) if text]
        line = f'{indent}"{name}": {"; ".join(said)}'.rstrip(": ")
        if NAMED in inner:
            yield f"{line}; {'each ' if inner is not each else ''}with these keys:"
            yield from _keys(inner, f"  {indent}")
        else:
            yield line


def _values(schema: Schema) -> str:
    """The values that a schema allows, as far as its type alone does not say them."""
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(each) for each in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return next((values for each in schema["anyOf"] if (values := _values(each)) not in ("", "null")), "")
    if schema.get("type") == "array":
        return _count(schema.get("minItems"), schema.get("maxItems"))
    if "minimum" in schema and "maximum" in schema:
        return f"{schema['minimum']:g} to {schema['maximum']:g}"
    return {"null": "null", "boolean": "true | false"}.get(str(schema.get("type")), "")


def _count(least: int | None, most: int | None) -> str:
    if least is not None and least == most:
        return f"exactly {least}"
    if most is None:
        return "" if not least else f"at least {least}"
    return f"{least} to {most}" if least else f"at most {most}"


# Segments as the prompts of a tree search write them: range, frames at the borders, score and reason.
#
# The list of candidates grows by five or six segments a round and changes with every score, so it is the part of a
# prompt that no cache serves. Those that promise most are written in full, the others in short, and those in which
# nothing is left to see not at all.

IN_FULL = 6
"""Candidates with clock times, frames at the borders and the reason of their score."""
COMPARED = 3
"""Scores of earlier rounds that a rater sees beside that of the parent."""
REASON_CHARACTERS = 240
"""Of a reason in a prompt: the fifteen words that are asked for have fewer."""
CUT = " ..."


def candidate_lines(
    candidates: Iterable[ScoredSegment],
    frames: Sequence[ShownFrame],
    videos: Sequence[Video],
    scores: str,
    in_full: bool = False,
) -> list[str]:
    """The best-scored segments that can be explored, or all, by number; `scores` are "fused", "reward" or "none".

    Which are listed is said by `kinodex.agent.protocol.listed_candidates`.
    """
    live = listed_candidates(candidates, scores, in_full)
    full = {each.segment.number for each in live[: None if in_full else IN_FULL]}
    lines = []
    for each in sorted(live, key=lambda each: each.segment.number):
        score = _score(each, scores) + ", looked into before" * each.divided
        if each.segment.number in full:
            lines.append(f"{segment_line(each.segment, frames, videos)}{score}{_reason(each)}")
        else:
            lines.append(f"{_short_line(each.segment, videos)}{score}")
    return lines


def segment_line(segment: Segment, frames: Sequence[ShownFrame], videos: Sequence[Video]) -> str:
    """A segment's name, range and border frames: "Segment 3: 40 s to 95 s, frame 2 to frame 3".

    Clock times stand in the labels of its border frames; where none is shown they are written here.
    """
    if found := _borders(segment, frames, videos):
        return f"{_short_line(segment, videos)}, {found}"
    return f"{_short_line(segment, videos)}{beside_range(segment)}"


def history_lines(
    history: Iterable[ScoredSegment], parent: int | None, videos: Sequence[Video], in_full: bool = False
) -> list[str]:
    """The best-scored segments of earlier rounds, by number, without the parent; or all, each with its reason."""
    others = [each for each in history if each.segment.number != parent and each.explorable]
    best = sorted(others, key=lambda each: -each.rank)[: None if in_full else COMPARED]
    return [
        f"{_short_line(each.segment, videos)}{_score(each, 'reward')}{_reason(each) if in_full else ''}"
        for each in sorted(best, key=lambda each: each.segment.number)
    ]


def frame_order(request: Request[Any]) -> str:
    """Words that say in what order the frames of a tree search stand; "" for those of other requests."""
    if getattr(request, "must_answer", False):
        return "in the order of time, "
    return "in the order in which they were looked at, which is not that of time, " if hasattr(request, "log") else ""


def newness(frames: Sequence[ShownFrame], new: Sequence[ShownFrame]) -> str:
    """A sentence that says which of the frames are new, the ones to rate by; "" where all are."""
    if not new or len(new) == len(frames):
        return ""
    numbers, _ = citation_numbers(frames)
    found = [number for number, frame in zip(numbers, frames, strict=True) if frame in new]
    those = f"frame {found[0]} is" if len(found) == 1 else f"frames {found[0]} to {found[-1]} are"
    return f" Of the frames only {those} new: rate by what is new, and take the others as known before."


def parent_score(history: Iterable[ScoredSegment], parent: int | None) -> str:
    """The score and the reason that the parent had when it was chosen; "" without a score."""
    found = next((each for each in history if each.segment.number == parent), None)
    return "" if found is None or found.score is None else f" (score {found.score:.0f}{_reason(found)})"


def _borders(segment: Segment, frames: Sequence[ShownFrame], videos: Sequence[Video]) -> str:
    """The shown frames at a segment's borders, "frame 2 to frame 3"; "" if neither is shown."""
    numbers, _ = citation_numbers(frames)
    at = {(frame.video_id, frame.time_s): number for number, frame in zip(numbers, frames, strict=True)}
    shown = at.get((segment.video_id, segment.start_s)), at.get((segment.video_id, segment.end_s))
    if shown == (None, None):
        return ""
    whole = {(video.video_id, video.start_s): "the beginning" for video in videos}
    whole |= {(video.video_id, video.end_s): "the end" for video in videos}
    ends = [(segment.video_id, segment.start_s), (segment.video_id, segment.end_s)]
    words = [
        whole.get(end, "an earlier frame") if it is None else f"frame {it}" for it, end in zip(shown, ends, strict=True)
    ]
    return " to ".join(words)


def _short_line(segment: Segment, videos: Sequence[Video]) -> str:
    of = f" of video {segment.video_id[:VIDEO_ID_LENGTH]}" if len(videos) > 1 else ""
    return f"Segment {segment.number}{of}: {seconds(segment.start_s)} to {seconds(segment.end_s)}"


def _score(each: ScoredSegment, scores: str) -> str:
    if scores == "none":
        return ""
    known = "" if each.score is None else f", score {each.score:{'.2f' if scores == 'fused' else '.0f'}}"
    return known if each.rated and known else f"{known}, not rated"


def _reason(each: ScoredSegment) -> str:
    text = " ".join(each.explanation.split())
    if len(text) > REASON_CHARACTERS:
        text = f"{beginning(text, REASON_CHARACTERS - len(CUT))}{CUT}"
    return f": {text}" if text else ""


# Times as prompts write them: in seconds, and from a minute on as a clock too.
#
# Models read "1:23" in a picture, a question or a subtitle, and seconds in a prompt: both stand side by side.

CLOCK_FROM_S = 60.0
"""Times from here on are shown as clock time too."""


def beside(time_s: float) -> str:
    """The clock time to write after a time in seconds, " (1:23)"; "" within the first minute."""
    return f" ({player_clock(time_s)})" if time_s >= CLOCK_FROM_S else ""


def seconds(time_s: float) -> str:
    """A time in seconds, to a tenth: "83 s", "83.5 s"."""
    return f"{time_s:.1f}".removesuffix(".0") + " s"


def beside_range(part: Any) -> str:
    """The clock times to write after a range in seconds, " (1:23 to 1:02:05)"; "" within the first minute."""
    return f" ({player_clock(part.start_s)} to {player_clock(part.end_s)})" if part.end_s >= CLOCK_FROM_S else ""


# Estimate the tokens of chat messages without a tokenizer: texts by their length, pictures by published rules.
#
# A text counts one token for four bytes of UTF-8: OpenAI's rule of thumb for English, four characters, which would
# count a quarter of the tokens of Chinese or Hindi. A picture counts by one of:
#
# - openai: the tiles of GPT-4o and GPT-4.1 (OpenAI, "Images and vision", section "Calculating costs"): at low detail 85
#   tokens; else the picture is fitted into 2,048 x 2,048, its shorter side into 768, and counts 85 tokens and 170 for
#   each tile of 512 x 512.
# - qwen: the patches of Qwen2-VL and Qwen2.5-VL (their `smart_resize`): each side to the next multiple of 28, a token
#   for 28 x 28 pixels, at most 1,003,520 pixels, and two tokens around the picture. Detail plays no part.
#
# Figures of a server that reports usage are better than these; these are for planning and for comparing layouts.

PictureRule = Literal["openai", "qwen"]
CHARACTERS_A_TOKEN = 4
"""Of English, or bytes of UTF-8."""
MESSAGE_TOKENS = 4
"""Around each message: the speaker, and the marks where it begins and ends."""
LOW_DETAIL_TOKENS, TILE_TOKENS, TILE_PX = 85, 170, 512
LONGER_SIDE_PX, SHORTER_SIDE_PX = 2048, 768
PATCH_PX, MIN_PIXELS, MAX_PIXELS, MARK_TOKENS = 28, 4 * 28 * 28, 1280 * 28 * 28, 2


def text_tokens(text: str) -> int:
    return math.ceil(len(text.encode(errors="replace")) / CHARACTERS_A_TOKEN)


def picture_tokens(width_px: int, height_px: int, rule: PictureRule = "openai", detail: str = "auto") -> int:
    """Count the tokens of a picture by a published rule; see above."""
    if rule == "qwen":
        return _patches(width_px, height_px) + MARK_TOKENS
    if detail == "low":
        return LOW_DETAIL_TOKENS
    shrink = min(1.0, LONGER_SIDE_PX / max(width_px, height_px))
    shrink *= min(1.0, SHORTER_SIDE_PX / (shrink * min(width_px, height_px)))
    tiles = math.ceil(shrink * width_px / TILE_PX) * math.ceil(shrink * height_px / TILE_PX)
    return LOW_DETAIL_TOKENS + TILE_TOKENS * tiles


def _patches(width_px: int, height_px: int) -> int:
    width, height = (max(PATCH_PX, round(side / PATCH_PX) * PATCH_PX) for side in (width_px, height_px))
    pixels = width_px * height_px
    if width * height > MAX_PIXELS:
        scale = math.sqrt(pixels / MAX_PIXELS)
        width, height = (math.floor(side / scale / PATCH_PX) * PATCH_PX for side in (width_px, height_px))
    elif width * height < MIN_PIXELS:
        scale = math.sqrt(MIN_PIXELS / pixels)
        width, height = (math.ceil(side * scale / PATCH_PX) * PATCH_PX for side in (width_px, height_px))
    return max(1, width // PATCH_PX) * max(1, height // PATCH_PX)


def estimate_tokens(messages: Sequence[Message], rule: PictureRule = "openai") -> int:
    contents = (message["content"] for message in messages)
    parts = (part for each in contents for part in (each if isinstance(each, list) else [_text_part(str(each))]))
    return MESSAGE_TOKENS * len(messages) + sum(_part_tokens(part, rule) for part in parts)


def _part_tokens(part: Mapping[str, Any], rule: PictureRule) -> int:
    if "image_url" not in part:
        return text_tokens(part["text"])
    image = part["image_url"]
    with stored_picture(base64.b64decode(image["url"].removeprefix(JPEG_URL))) as picture:
        return picture_tokens(*picture.size, rule, image.get("detail", "auto"))  # reads the head alone


def estimate_request(request: Request[Any]) -> int:
    """Estimate the input tokens of a request, whatever the limits of its role are."""
    texts = [render(request), request.complaint, request.bad_reply, *(turn.text for turn in request.turns)]
    frames = [picture_tokens(each.width_px, each.height_px, detail=each.detail) for each in request.frames]
    return MESSAGE_TOKENS * len(texts) + sum(map(text_tokens, texts)) + sum(frames)


# Fit a request into a model's context: a stated rule of which of its quoted words are shortened, and how far.
#
# What a request says in our words, its question and its frames stay as they are. Of what it quotes from the videos,
# this is shortened, in this order, each only when nothing is left of the ones before it:
#
# 1. titles and summaries of scenes and chapters (`chapters`);
# 2. captions that fill the gaps of a transcript, and text on screen (`clips.seen`, `clips.written`);
# 3. the words of clips (`clips.text`);
# 4. subtitles and text on screen beside frames (`subtitles`);
# 5. notes, the bank of captions among them (`notes`, `known`);
# 6. what was found earlier in the conversation (`turns` to the model).
#
# Of several texts the longest lose first: all are cut to one length, and those below it stay whole. A text that is cut
# keeps its beginning and its end, at borders of words, or of characters where no space is near. Last of all, every
# second clip goes. If that is not enough, the reply gets fewer tokens, down to `LEAST_REPLY`; then pictures are sent at
# low detail and `SMALLER_PX`; then every second one goes, but never the latest. Numbers and times stay, so that a reply
# cites what it would have cited.

Q = TypeVar("Q", bound=Request[Any])
"""A class of requests."""
QUOTED = (
    *(("chapters", "text"), ("clips", "seen"), ("clips", "written"), ("clips", "text"), ("subtitles", "text")),
    *(("notes", "text"), ("known", "text"), ("turns", "text")),
)
"""Fields of requests and the attribute of their items that is quoted, what is shortened first first."""
GAP = " … "
HEAD_SHARE = 2 / 3
"""The share of a cut text that is its beginning."""
LATER_SHARE = 1 / 4
"""The share of the context that is kept for the messages of a conversation after the first one."""
MOST_PASSES = 32
SMALLER_PX = 256
"""The longer side of a picture that is shown smaller for the sake of a short context."""


def fit_request(request: Q, tokens: int, count: Callable[[Q], int]) -> Q:
    """Shorten the words of a request until `count` gives no more than `tokens`; as far as it goes if it never does."""
    over, characters_a_token = count(request) - tokens, 1.0
    for _ in range(MOST_PASSES):
        if over <= 0:
            break
        shorter = shorten_request(request, math.ceil(over * characters_a_token))
        if shorter == request:
            break
        fallen = over - (count(shorter) - tokens)
        removed = quoted_characters(request) - quoted_characters(shorter)
        # words that a prompt does not show cost no tokens: larger steps get past them
        characters_a_token = max(1.0, removed / fallen) if fallen > 0 else 2 * characters_a_token
        request, over = shorter, over - fallen
    return request


def fit_context(request: Q, context_tokens: int, reply_tokens: int, count: Callable[[Q], int]) -> Q:
    """Shorten a request until it and a reply of `reply_tokens` are no more than a model's `context_tokens`.

    A conversation leaves a quarter of the context to its later messages from the beginning: so its first message
    stays the same from turn to turn, and with it what a server has cached.
    """
    tokens, changed = context_tokens - reply_tokens, cast(Any, request)
    if any(field.name == "turns" for field in fields(changed)):
        first, later = cast(Q, replace(changed, turns=())), int(LATER_SHARE * context_tokens)
        if count(request) - count(first) <= later:
            return cast(Q, replace(cast(Any, fit_request(first, tokens - later, count)), turns=changed.turns))
    return fit_request(request, tokens, count)


def shorten_request(request: Q, characters: int) -> Q:
    """Take about so many characters off the quoted words of a request; the same request if it quotes none."""
    for field, attribute in QUOTED:
        items = getattr(request, field, ())
        texts = [_quoted(item, attribute) for item in items]
        shorter = shorten_texts(texts, sum(map(len, texts)) - characters)
        if shorter != texts:
            characters -= sum(map(len, texts)) - sum(map(len, shorter))
            pairs = zip(items, texts, shorter, strict=True)
            changed = [item if text == cut else replace(item, **{attribute: cut}) for item, text, cut in pairs]
            request = _with(request, field, changed)
        if characters <= 0:
            return request
    clips = getattr(request, "clips", ())
    return _with(request, "clips", clips[::2]) if len(clips) > 1 else request


def fit_pictures(request: Q, tokens: int, count: Callable[[Q], int], pinned: Collection[tuple[str, int]] = ()) -> Q:
    """Show the frames of a request smaller, and then fewer, until `count` gives it no more than `tokens`.

    `pinned` are the frames, by video and number, that stay; so does the latest.
    """
    while count(request) > tokens and (fewer := _fewer_pictures(request, pinned)) != request:
        request = fewer
    return request


def _fewer_pictures(request: Q, pinned: Collection[tuple[str, int]] = ()) -> Q:
    """A request with smaller pictures; of one that has them so, every second one that is not pinned goes."""
    frames = tuple(_smaller(each) for each in request.frames)
    if frames != request.frames:
        return _with(request, "frames", frames)
    numbers, _ = citation_numbers(frames)  # a frame keeps its own, whichever go
    frames = tuple(replace(each, label=number) for each, number in zip(frames, numbers, strict=True))
    latest = max(numbers, default=0)
    spare = [each for each in frames if (each.video_id, each.frame_no) not in pinned and each.label < latest][1::2]
    return _with(request, "frames", [each for each in frames if each not in spare]) if spare else request


def _smaller(frame: ShownFrame) -> ShownFrame:
    scale = min(1.0, SMALLER_PX / max(frame.width_px, frame.height_px))
    sides = {name: round(scale * getattr(frame, name)) for name in ("width_px", "height_px")}
    jpeg = scaled_jpeg(frame, SMALLER_PX) if scale < 1 else frame.jpeg
    return replace(frame, jpeg=jpeg, detail="low", **sides)


def quoted_characters(request: Request[Any]) -> int:
    return sum(len(_quoted(item, attribute)) for field, attribute in QUOTED for item in getattr(request, field, ()))


def shorten_texts(texts: Sequence[str], characters: int) -> list[str]:
    """Cut the longest of some texts so that all have about so many characters together; none is cut to nothing."""
    limit = _limit([len(text) for text in texts], max(0, characters))
    return [text if len(text) <= limit else _cut(text, limit) for text in texts]


def _limit(lengths: Sequence[int], total: int) -> int:
    """The length at which texts are cut so that they sum up to `total`."""
    left = total
    for at, length in enumerate(ordered := sorted(lengths)):
        share = left // (len(ordered) - at)
        if length > share:
            return share
        left -= length
    return max(lengths, default=0)


def _cut(text: str, limit: int) -> str:
    """The beginning and the end of a text, `limit` characters at most: whole words where spaces part them."""
    room = limit - len(GAP)
    if room <= 0:
        return GAP.strip()
    head_room = math.ceil(room * HEAD_SHARE)
    tail = end(text, room - head_room) if room > head_room else ""
    return f"{beginning(text, head_room)}{GAP}{tail}".strip()


def _quoted(item: Any, attribute: str) -> str:
    """The text of an item that is quoted; what the model said itself is not."""
    return "" if getattr(item, "speaker", "user") == "assistant" else str(getattr(item, attribute, ""))


def _with(request: Q, field: str, items: Sequence[Any]) -> Q:
    changed: Any = request
    shorter: Q = replace(changed, **{field: tuple(items)})
    return shorter
