"""Small real libraries whose frames are words, and a model that follows a script, for testing agents.

The space of these libraries is a bag of words: a frame's vector is the sum of random vectors of its caption's words,
and so is a text's. Similarities behave as in a trained space, without one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from kinodex.agent.errors import TakesNoPictures
from kinodex.agent.forced_choice import ChooseLetter
from kinodex.agent.protocol.exchange import Exchange, Usage
from kinodex.agent.protocol.request import Request
from kinodex.agent.requests.answer import AnswerFrames
from kinodex.agent.requests.tree import Decide, DiscoverQueries, ScoreSegments
from kinodex.agent.variants.eea.requests import ProposeQueries
from kinodex.agent.videos.environment import Environment
from kinodex.index.library import Library
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.pipeline.sample import FrameRow
from tests.support.libraries.random_library import empty_library, plain_row

DIM = 256
NOISE = 0.02
JPEG = bytes.fromhex("ffd8ffd9")
CONNECTING = {"the", "a", "an", "in", "on", "over", "at"}

THINGS = ("boat", "car", "tree", "fish", "dog", "cat", "house", "clock", "bird")
COLOURS = ("red", "blue", "green", "yellow", "white", "black")
PLACES = ("sea", "snow", "forest", "city")


def embed_words(texts: Sequence[str]) -> np.ndarray:
    return np.stack([_bag(text) for text in texts]).astype(np.float32)


def _bag(text: str) -> np.ndarray:
    words = [word for word in text.casefold().split() if word not in CONNECTING]
    total = np.sum([_word(word) for word in words], axis=0) if words else np.ones(DIM)
    return total / np.linalg.norm(total)


@cache
def _word(word: str) -> np.ndarray:
    seed = int(hashlib.sha256(word.encode()).hexdigest()[:8], 16)
    return np.random.default_rng(seed).normal(size=DIM)


def film(seed: int, seconds: int, events: Mapping[int, tuple[str, int]] | None = None) -> list[str]:
    """A caption for every second: scenes of things, and `events` as start -> (caption, seconds)."""
    random = np.random.default_rng(seed)
    captions: list[str] = []
    while len(captions) < seconds:
        scene = " ".join(str(random.choice(words)) for words in (COLOURS, THINGS, PLACES))
        captions += [scene] * int(random.integers(5, 40))
    captions = captions[:seconds]
    for start, (caption, lasting) in (events or {}).items():
        captions[start : start + lasting] = [caption] * lasting
    return captions


def make_library(folder: Path, films: Mapping[str, Sequence[str]], jpeg: bytes = JPEG) -> Library:
    fingerprint = Fingerprint("words", "bag-of-words", "0" * 64, "{}", DIM, True)
    library = empty_library(folder, {"fps": 1.0}, fingerprint)
    for title, captions in films.items():
        add_film(library, title, captions, jpeg)
    return library


def add_film(library: Library, title: str, captions: Sequence[str], jpeg: bytes = JPEG, start_s: float = 0.0) -> None:
    """Add a film with a frame a second, the first at `start_s`, which a player shows as 0:00."""
    video_id = hashlib.sha256(title.encode()).hexdigest()[:32]
    library.writer.add_frames({video_id: _rows(captions, jpeg, start_s)})
    row = plain_row(
        video_id,
        title,
        start_s=start_s,
        zero_s=start_s,
        duration_s=float(len(captions)),
        width_px=8,
        height_px=8,
        frames=len(captions),
        space="words",
    )
    assert library.writer.complete([row]) == ()


def _rows(captions: Sequence[str], jpeg: bytes, start_s: float) -> list[FrameRow]:
    random = np.random.default_rng(7)
    vectors = embed_words(captions) + random.normal(scale=NOISE, size=(len(captions), DIM))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    return [FrameRow(number, start_s + number, 8, 8, jpeg, vector) for number, vector in enumerate(vectors)]


def environment_of(library: Library, *titles: str, speech: bool = True) -> Environment:
    """An environment over the videos of these titles; without titles over all."""
    rows = [library.video(title) for title in titles] or library.videos()
    return Environment.of(library, rows, lambda texts: embed_words(texts), hide=() if speech else ["speech"])


class ScriptedModel:
    """Answers a request with what `script` returns: JSON values, or text that is not JSON."""

    name = "scripted"
    has_language = True

    def __init__(self, script: Callable[[Request[Any]], Any], usage: Usage | None = None) -> None:
        self.script, self.usage = script, usage or Usage()
        self.requests: list[Request[Any]] = []

    async def ask(self, request: Request[Any]) -> Exchange[Any]:
        self.requests.append(request)
        said = self.script(request)
        raw = said if isinstance(said, str) else json.dumps(said)
        try:
            return Exchange(request.Reply.model_validate(said), None, self.usage, raw=raw)
        except ValidationError as error:
            return Exchange(None, str(error).splitlines()[0], self.usage, raw=raw)

    def asked(self, kind: type) -> list[Any]:
        return [request for request in self.requests if isinstance(request, kind)]


class Blind(ScriptedModel):
    """A model that takes no pictures, and says so when it is asked."""

    async def check_sight(self) -> tuple[TakesNoPictures, None]:
        return TakesNoPictures("'blind' takes no pictures", "name a model with vision"), None


def explorer(request: Request[Any]) -> Any:
    """A policy that explores whatever has the highest score, for ever, and answers A when it must."""
    match request:
        case DiscoverQueries():
            return {"queries": ["red kite desert"]}
        case ProposeQueries():
            return {"queries": []}
        case ScoreSegments():
            return {f"Segment {each.number}": {"explanation": "maybe", "score": 50} for each in request.segments}
        case Decide(must_answer=False):
            open_ones = [each for each in request.candidates if each.explorable]
            return {"Segment": max(open_ones, key=lambda each: each.score or 0).segment.number}
        case Decide() | AnswerFrames() | ChooseLetter():
            return {"option": "A", "answer": "the first", "evidence": [1]}
    raise TypeError(type(request).__name__)
