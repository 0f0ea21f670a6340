"""Every request that any agent can ask, found in agent/requests: how its words and its frames go over the wire."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
import types
import typing
from typing import Any, Literal, Union

import pytest

import agent.requests
from agent.core.protocol import Request, ShownFrame
from agent.core.question import Question, Video
from agent.models.role_config import ROLES
from agent.prompts.render import FOLDER, render
from tests.support.chat_server import ChatServer, SentFrame
from tests.support.wire import ask, frame

STORED, SIDE_PX = (640, 360), 320
"""Stored frames are larger than the role's limit, and than that of any request."""
TIMES_S = (3.0, 17.25, 4000.5)
LABEL = re.compile(r"frame (\d+) at ([\d.]+) s")


def kinds() -> list[type[Request[Any]]]:
    """Every class of request with a template in the modules of agent/requests."""
    names = [f"agent.requests.{each.name}" for each in pkgutil.iter_modules(agent.requests.__path__)]
    found = {
        value: None
        for name in names
        for value in vars(importlib.import_module(name)).values()
        if isinstance(value, type) and issubclass(value, Request) and hasattr(value, "template")
    }
    return list(found)


def example(kind: Any) -> Any:
    """A value of a type: a dataclass of examples, one example for a tuple of any length."""
    if kind is ShownFrame:
        return frame(1, size=STORED)
    if kind is Question:
        return Question("What colour is the kite?", ("red", "blue"))
    if kind is Video:
        return Video("a" * 32, "kites", 0.0, 5000.0)
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
    """A dataclass from examples of its fields; what has a default keeps it."""
    types_of = typing.get_type_hints(kind)
    needed = [each.name for each in dataclasses.fields(kind) if each.default is each.default_factory]
    return kind(**{name: example(types_of[name]) for name in needed if name not in given}, **given)


KINDS = kinds()
LOOKING = [kind for kind in KINDS if "frames" in {each.name for each in dataclasses.fields(kind)}]
by_name = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
looking = pytest.mark.parametrize("kind", LOOKING, ids=lambda kind: kind.__name__)


def sent(request: Request[Any]) -> tuple[list[SentFrame], str]:
    """What arrives at a server of a request: its frames, and its text."""
    with ChatServer(lambda body: "no matter") as server:
        ask(server, request, image_side_px=SIDE_PX)
    assert server.problems == []
    return list(server.seen[0].frames), server.seen[0].text


def test_the_requests_are_found() -> None:
    assert {"Decide", "AnswerFrames", "Guess", "DescribeSegment"} <= {kind.__name__ for kind in KINDS}
    assert "Guess" not in {kind.__name__ for kind in LOOKING}


def test_no_template_is_left_over() -> None:
    used = {f"{kind.template}.jinja" for kind in KINDS}
    assert {path.name for path in FOLDER.glob("[!_]*.jinja")} == used


@by_name
def test_a_request_says_who_answers_and_in_what_form(kind: type[Request[Any]]) -> None:
    text = render(built(kind))
    assert kind.role in ROLES
    assert kind.form != "json" or "Reply with JSON only: {" in text
    assert "  \n" not in text and "\n\n\n" not in text
    assert not re.search(r"\{\{|\{%|%\}|\bNone\b|object at 0x", text)


@by_name
def test_a_complaint_is_shown_to_the_model(kind: type[Request[Any]]) -> None:
    again = dataclasses.replace(built(kind), attempt=1, complaint="it names segment 77", bad_reply="[77]")
    assert "it names segment 77" in render(again) and "[77]" in sent(again)[1]


@looking
def test_frames_follow_the_text_in_order_each_after_its_time_and_no_larger_than_allowed(
    kind: type[Request[Any]],
) -> None:
    frames = tuple(frame(number, time_s=time_s, size=STORED) for number, time_s in enumerate(TIMES_S, start=1))
    arrived, text = sent(built(kind, frames=frames))
    labels = [LABEL.fullmatch(each.label) for each in arrived]
    assert [(int(label[1]), float(label[2])) for label in labels if label] == list(enumerate(TIMES_S, start=1))
    side = 640 if kind.full_size else min(SIDE_PX, kind.image_side_px or SIDE_PX)
    assert {max(each.width_px, each.height_px) for each in arrived} == {side}
    assert all(f"{time_s:.1f} s" in text for time_s in TIMES_S)


@looking
def test_frames_of_several_videos_say_which(kind: type[Request[Any]]) -> None:
    frames = tuple(frame(1, time_s=5.0, size=(64, 48), video=letter * 32) for letter in "ab")
    arrived, _ = sent(built(kind, frames=frames))
    assert [each.label for each in arrived] == [
        f"frame {number} at 5.00 s of video {letter * 12}" for number, letter in enumerate("ab", start=1)
    ]
