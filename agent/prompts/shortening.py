"""Fit a request into a model's context: a stated rule of which of its quoted words are shortened, and how far.

What a request says in our words, its question and its frames stay as they are. Of what it quotes from the videos,
this is shortened, in this order, each only when nothing is left of the ones before it:

1. titles and summaries of scenes and chapters (`chapters`);
2. the subtitles of clips (`clips.text`);
3. subtitles and text on screen beside frames (`subtitles`);
4. notes, the bank of captions among them (`notes`, `known`);
5. what was found earlier in the conversation (`turns` to the model).

Of several texts the longest lose first: all are cut to one length, and those below it stay whole. A text that is cut
keeps its beginning and its end, at borders of words, or of characters where no space is near. Last of all, every
second clip goes. If that is not enough, the reply gets fewer tokens, down to `LEAST_REPLY`; then pictures are sent at
low detail and `SMALLER_PX`; then every second one goes, but never the latest. Numbers and times stay, so that a reply
cites what it would have cited.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar, cast

from kinodex.agent.prompts.parts import scaled_jpeg
from kinodex.agent.protocol.frames import ShownFrame, citation_numbers
from kinodex.agent.protocol.request import Request
from kinodex.index.text import beginning, end

Q = TypeVar("Q", bound=Request[Any])
"""A class of requests."""
QUOTED = (
    *(("chapters", "text"), ("clips", "text"), ("subtitles", "text")),
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
    """Take about this many characters off the quoted words of a request; the same request if it quotes none."""
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


def spread_pictures(request: Q, most: int) -> Q:
    """Show no more than so many frames of a request, at equal distances, the first and the last among them."""
    frames = request.frames
    if len(frames) <= most:
        return request
    numbers, _ = citation_numbers(frames)  # a frame keeps its own, whichever go
    kept = [round(place * (len(frames) - 1) / max(1, most - 1)) for place in range(most)]
    return _with(request, "frames", [replace(frames[at], label=numbers[at]) for at in kept])


def _fewer_pictures(request: Q, pinned: Collection[tuple[str, int]] = ()) -> Q:
    """Return a request with smaller pictures; of one that has them so, every second one that is not pinned goes."""
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
    """Cut the longest of some texts so that all have about this many characters together; none is cut to nothing."""
    limit = _limit([len(text) for text in texts], max(0, characters))
    return [text if len(text) <= limit else _cut(text, limit) for text in texts]


def _limit(lengths: Sequence[int], total: int) -> int:
    """Return the length at which texts are cut so that they sum up to `total`."""
    left = total
    for at, length in enumerate(ordered := sorted(lengths)):
        share = left // (len(ordered) - at)
        if length > share:
            return share
        left -= length
    return max(lengths, default=0)


def _cut(text: str, limit: int) -> str:
    """Return the beginning and the end of a text, `limit` characters at most: whole words where spaces part them."""
    room = limit - len(GAP)
    if room <= 0:
        return GAP.strip()
    head_room = math.ceil(room * HEAD_SHARE)
    tail = end(text, room - head_room) if room > head_room else ""
    return f"{beginning(text, head_room)}{GAP}{tail}".strip()


def _quoted(item: Any, attribute: str) -> str:
    """Return the text of an item that is quoted; what the model said itself is not."""
    return "" if getattr(item, "speaker", "user") == "assistant" else str(getattr(item, attribute, ""))


def _with(request: Q, field: str, items: Sequence[Any]) -> Q:
    changed: Any = request
    shorter: Q = replace(changed, **{field: tuple(items)})
    return shorter
