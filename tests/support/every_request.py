"""Every class of request that an agent can ask, and instances of it, for tests that hold of all requests."""

from __future__ import annotations

import dataclasses
import importlib
import io
import json
import pkgutil
import types
import typing
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import takewhile
from typing import Any, Literal, Union

from PIL import Image

from kinodex import agent
from kinodex.agent.prompts.rendering import render
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import ScoredSegment, Segment, Video
from kinodex.agent.replies.schema import NAMED
from kinodex.agent.requests.judge_moments import FoundMoment
from kinodex.agent.variants.videoagent2.requests import Toolbox
from kinodex.index.kinds import KindName

STORED = (640, 360)
SAMPLE_KINDS: tuple[KindName, ...] = ("speech", "screen_text", "captions")
"""Kinds of the lines of an instance: a new kind changes none of the prompts that are compared with earlier ones."""
QUESTION = Question("What colour is the kite?", ("red", "blue"))
OPEN_QUESTION = Question("What happens to the kite?")
FILM = Video("a" * 32, "kites", 0.0, 5000.0)
OTHER_FILM = Video("b" * 32, "boats", 0.0, 50.0)
SPOKEN = Video("c" * 32, "a talk", 0.0, 500.0, has_pictures=False)


def kinds() -> list[type[Request[Any]]]:
    """Every class of request with a template in the modules of agent, by name."""
    for module in pkgutil.walk_packages(agent.__path__, "kinodex.agent."):
        importlib.import_module(module.name)
    found: set[type[Request[Any]]] = set()
    left: list[type[Request[Any]]] = [Request]
    while left:
        left += (subclasses := left.pop().__subclasses__())
        ours = {each for each in subclasses if each.__module__.startswith("kinodex.agent.")}
        found |= {each for each in ours if hasattr(each, "template")}
    return sorted(found, key=lambda kind: (kind.__name__, kind.template))


@cache
def stored_frame(number: int, time_s: float, video_id: str = FILM.video_id) -> ShownFrame:
    """A stored frame with a real JPEG of one colour, larger than a role's limit."""
    encoded = io.BytesIO()
    Image.new("RGB", STORED, (40 * number % 256, 90, 160)).save(encoded, "JPEG")
    return ShownFrame(video_id, number, time_s, *STORED, encoded.getvalue())


def example(kind: Any) -> Any:
    """A value of a type: a dataclass of examples, one example for a tuple of any length."""
    if kind is ShownFrame:
        return stored_frame(1, 1.0)
    if kind is Question:
        return QUESTION
    if kind is Video:
        return FILM
    if kind in (str, int, float, bool):
        return {str: "kite", int: 3, float: 2.5, bool: True}[kind]
    if dataclasses.is_dataclass(kind):
        return built(kind)
    inner = typing.get_args(kind)
    if typing.get_origin(kind) is Literal:
        return inner[0]
    if typing.get_origin(kind) in (Union, types.UnionType):
        return example(inner[0])
    if typing.get_origin(kind) is tuple:
        return tuple(example(each) for each in inner if each is not ...)
    raise TypeError(f"no example of {kind}; add one here")


def built(kind: Any, **given: Any) -> Any:
    """A dataclass from examples of its fields; a field with a default keeps it."""
    types_of = typing.get_type_hints(kind)
    needed = [each.name for each in dataclasses.fields(kind) if each.default is each.default_factory]
    return kind(**{name: example(types_of[name]) for name in needed if name not in given}, **given)


def example_text(request: Request[Any], reasoning: bool = True) -> str:
    """An example of a reply as a model that is bound to the schema writes it."""
    names, said = request.schema(reasoning=reasoning)[NAMED], request.example()
    return json.dumps({name: said.get(name) for name in names}, ensure_ascii=False)


def common_start(*requests: Request[Any]) -> str:
    """The text with which the prompts of all requests begin, as a server's prefix cache sees it."""
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*map(render, requests), strict=False))
    return "".join(letters[0] for letters in same)


def field_names(kind: Any) -> set[str]:
    """Names of the inputs of a class of requests."""
    return {each.name for each in dataclasses.fields(kind)}


def of_full_size(kind: type[Request[Any]], count: int = 7) -> Any:
    """An instance with `count` frames, segments, notes and candidates, as a run has them."""
    times_s = [10.0 * number for number in range(count + 1)]
    segments = tuple(Segment(at + 3, FILM.video_id, times_s[at], times_s[at + 1]) for at in range(count))
    whole = {
        "frames": tuple(stored_frame(at, time_s) for at, time_s in enumerate(times_s[:-1])),
        "segments": segments,
        "notes": tuple(Note(FILM.video_id, each.start_s, each.end_s, "captions", "a kite") for each in segments),
        "subtitles": tuple(
            Note(FILM.video_id, each.start_s, each.end_s, SAMPLE_KINDS[at % len(SAMPLE_KINDS)], "a kite")
            for at, each in enumerate(segments)
        ),
        "moments": tuple(
            FoundMoment(at + 1, each.video_id, each.start_s, each.end_s, (at + 1,)) for at, each in enumerate(segments)
        ),
        "candidates": tuple(ScoredSegment(each, 0.1 * at) for at, each in enumerate(segments)),
    }
    names = field_names(kind)
    return built(kind, **{name: value for name, value in whole.items() if name in names})


def variations(kind: type[Request[Any]]) -> Iterator[Any]:
    """Instances that differ in what binds a reply: few parts or many, no options, several videos, the last step."""
    whole = of_full_size(kind)
    names = field_names(kind)
    others: dict[str, list[object]] = {
        "question": [OPEN_QUESTION, Question("Which?", tuple("uvwxyz"))],
        "videos": [(FILM, OTHER_FILM), (SPOKEN,)],
        "must_answer": [True],
        "declining": ["never"],
        "confidence": [False],
        "reasoning": [False],
        "vision": [False],
        "window": [1],
        "doubt": ["", "too small"],
        "plan": [(), ("find it", "zoom in")],
        "seen": [()],
        "toolbox": [Toolbox(3, 4, 8, confidence=False, labels=("kite", "boat")), Toolbox(1, 8, 32, confidence=True)],
    }
    yield whole
    for name, values in others.items():
        if name in names and isinstance(getattr(whole, name), type(values[0])):
            yield from (replace(whole, **{name: value}) for value in values)
    if "box" in names:
        yield replace(whole, box=(0.1, 0.25, 0.5, 0.666))
