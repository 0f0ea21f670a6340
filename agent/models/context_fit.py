"""Fit a request into a model's context: a stated rule of which of its quoted words are shortened, and how far.

What a request says in our words, its question and its frames stay as they are. Of what it quotes from the videos,
this is shortened, in this order, each only when nothing is left of the ones before it:

1. titles and summaries of scenes and chapters (`chapters`);
2. captions that fill the gaps of a transcript, and text on screen (`clips.seen`, `clips.written`);
3. the words of clips (`clips.text`);
4. subtitles and text on screen beside frames (`subtitles`);
5. notes, the bank of captions among them (`notes`, `known`);
6. what was found earlier in the conversation (`turns` to the model).

Of several texts the longest lose first: all are cut to one length, and those below it stay whole. A text that is cut
keeps its beginning and its end, at borders of words, or of characters where no space is near. Last of all, every second
clip goes. Numbers and times stay, so that a reply cites what it would have cited.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar, cast

from agent.core.protocol import Request
from index.search.text_units import beginning, end

Q = TypeVar("Q", bound=Request[Any])
"""A class of requests."""

QUOTED = (
    "chapters.text",
    "clips.seen",
    "clips.written",
    "clips.text",
    "subtitles.text",
    "notes.text",
    "known.text",
    "turns.text",
)
"""Fields of requests and the attribute of their items that is quoted, what is shortened first first."""
GAP = " … "
HEAD_SHARE = 2 / 3
"""The share of a cut text that is its beginning."""
LATER_SHARE = 1 / 4
"""The share of the context that is kept for the messages of a conversation after the first one."""
MOST_PASSES = 32


def fit_request(request: Q, tokens: int, count: Callable[[Q], int]) -> Q:
    """Shorten a request until `count` gives it no more than `tokens`; as far as it goes if it never does."""
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
    free = 0
    if any(field.name == "turns" for field in fields(cast(Any, request))):
        first = cast(Q, replace(cast(Any, request), turns=()))
        free = max(0, int(LATER_SHARE * context_tokens) - (count(request) - count(first)))
    return fit_request(request, context_tokens - reply_tokens - free, count)


def shorten_request(request: Q, characters: int) -> Q:
    """Take about so many characters off the quoted words of a request; the same request if it quotes none."""
    for name in QUOTED:
        field, _, attribute = name.partition(".")
        items = getattr(request, field, ())
        texts = [_quoted(item, attribute) for item in items]
        shorter = shorten_texts(texts, sum(map(len, texts)) - characters)
        if shorter != texts:
            characters -= sum(map(len, texts)) - sum(map(len, shorter))
            request = _with(request, field, [_requoted(*each, attribute) for each in zip(items, shorter, strict=True)])
        if characters <= 0:
            return request
    clips = getattr(request, "clips", ())
    return _with(request, "clips", clips[::2]) if len(clips) > 1 else request


def quoted_characters(request: Request[Any]) -> int:
    """The characters of a request that may be shortened."""
    names = [name.partition(".") for name in QUOTED]
    return sum(len(_quoted(item, attribute)) for field, _, attribute in names for item in getattr(request, field, ()))


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


def _requoted(item: Any, text: str, attribute: str) -> Any:
    return replace(item, **{attribute: text}) if _quoted(item, attribute) != text else item


def _with(request: Q, field: str, items: Sequence[Any]) -> Q:
    changed: Any = request
    shorter: Q = replace(changed, **{field: tuple(items)})
    return shorter
