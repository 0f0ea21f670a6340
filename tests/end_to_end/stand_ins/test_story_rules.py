"""The rule server reads quoted lines with the frames of their times, in the prompts of every agent that quotes any."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from PIL import Image

from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.models.roles import Role
from kinodex.agent.protocol import SCREEN_TEXT, SUBTITLE, Note, Question
from kinodex.agent.requests.answer import AnswerFrames, AnswerNotes
from kinodex.agent.requests.tree import Decide, DiscoverQueries
from kinodex.agent.variants.longvideoagent_requests import Clip, LocateClips, ReadFrames
from kinodex.agent.variants.videoseek_requests import FocusClip
from tests.support.every_request import FILM, built, stored_frame
from tests.support.servers.chat_server import ChatServer
from tests.support.servers.rule_server import MODEL, Rules
from tests.support.servers.rules_sight import Described, Floats

CAT, HORSE, TENT, HOUSE = range(1, 5)
SEEN = {CAT: "red cat", HORSE: "white horse", TENT: "green tent", HOUSE: "yellow house"}
FRAMES = tuple(stored_frame(number, 10.0 * number) for number in SEEN)
NAME = Note(FILM.video_id, 19.0, 21.0, SUBTITLE, "They call me Lina.")
PLAN = Note(FILM.video_id, 40.0, 43.0, SUBTITLE, "Next week Lina is off to the coast.")
OTHER_PLAN = Note(FILM.video_id, 9.0, 12.0, SUBTITLE, "Next week Otto is off to the capital.")
SIGNS = (
    Note(FILM.video_id, 28.0, 33.0, SCREEN_TEXT, "HOTEL 4"),
    Note(FILM.video_id, 38.0, 43.0, SCREEN_TEXT, "SCHOOL 7"),
)
WHO = Question("Which of these is Lina?", ("the red cat", "the white horse"))
GOAL = Question("Where does Lina plan to go?", ("the capital", "the coast"))
SIGN = Question("What does the sign beside the yellow house say?", ("HOTEL 4", "SCHOOL 7"))
BESIDE = Question("What stands beside the sign that says HOTEL 4?", ("a yellow house", "a green tent"))


class Colours:
    """Eyes that tell the frames of this test by how red they are, and are sure of nothing."""

    def strengths(self, texts: Sequence[str], jpegs: Sequence[bytes]) -> Floats:
        return 0.5 * self.likenesses(texts, jpegs)

    def likenesses(self, texts: Sequence[str], jpegs: Sequence[bytes]) -> Floats:
        return np.array([[0.6 if SEEN[_number(jpeg)] in text else 0.1 for text in texts] for jpeg in jpegs])

    def describe(self, jpegs: Sequence[bytes]) -> list[Described]:
        return [Described("a grey cup", "in the room", 0.5, 0.5) for _ in jpegs]


def _number(jpeg: bytes) -> int:
    with Image.open(io.BytesIO(jpeg)) as picture:
        return round(picture.convert("RGB").resize((1, 1)).tobytes()[0] / 40)


@pytest.fixture(scope="module")
def rules() -> Iterator[ChatServer]:
    with ChatServer(Rules(Colours()), models=[MODEL]) as server:
        yield server
    assert server.problems == []


def reply(rules: ChatServer, kind: Any, **fields: Any) -> Any:
    async def ask() -> Any:
        async with OpenAIModel(Role(base_url=rules.base_url, model=MODEL)) as model:
            return (await model.ask(built(kind, **fields))).reply

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("question", "notes", "option", "evidence"),
    [
        (WHO, (NAME, PLAN), "B", {2, 5}),
        (GOAL, (OTHER_PLAN, PLAN), "B", {6}),
        (SIGN, SIGNS, "B", {4, 6}),
        (BESIDE, SIGNS, "B", {3, 5}),
    ],
)
def test_lines_beside_frames_are_read_with_them(
    rules: ChatServer, question: Question, notes: tuple[Note, ...], option: str, evidence: set[int]
) -> None:
    for kind, fields in ((AnswerFrames, {}), (Decide, {"candidates": (), "must_answer": True})):
        said = reply(rules, kind, question=question, frames=FRAMES, notes=notes, videos=(FILM,), **fields)
        assert (said.option, set(said.evidence)) == (option, evidence), kind
    without = reply(rules, AnswerFrames, question=question, frames=FRAMES, notes=(), videos=(FILM,))
    assert without.declines, "what is seen alone does not tell"


class Certain(Colours):
    """Eyes that see everything in every frame."""

    def strengths(self, texts: Sequence[str], jpegs: Sequence[bytes]) -> Floats:
        return np.linspace(1.0, 2.0, len(texts))[None].repeat(len(jpegs), axis=0)


def test_no_picture_answers_what_is_only_spoken_of() -> None:
    with ChatServer(Rules(Certain()), models=[MODEL]) as server:
        seen = reply(server, AnswerFrames, question=WHO, frames=FRAMES, notes=(), videos=(FILM,))
        talk = reply(server, AnswerFrames, question=GOAL, frames=FRAMES, notes=(OTHER_PLAN,), videos=(FILM,))
    assert (seen.option, talk.declines) == ("B", True)


def test_lines_are_read_with_captions_of_their_times(rules: ChatServer) -> None:
    captions = [
        Note(FILM.video_id, at_s, at_s + 2.0, "focus", f"{text}", None)
        for at_s, text in ((10.0, "a red cat"), (20.0, "a white horse"))
    ]
    said = reply(rules, AnswerNotes, question=WHO, notes=(NAME, *captions), videos=(FILM,))
    assert (said.option, set(said.evidence)) == ("B", {1, 3})


def test_queries_hold_the_words_of_lines(rules: ChatServer) -> None:
    assert reply(rules, DiscoverQueries, question=WHO).queries[0] == "Lina"
    assert reply(rules, DiscoverQueries, question=SIGN).queries == ["yellow house", "HOTEL 4", "SCHOOL 7"]


def test_a_clip_is_located_by_its_line_and_looked_at_for_the_best_option(rules: ChatServer) -> None:
    clips = tuple(
        Clip(number, FILM.video_id, 60.0 * number, 60.0 * number + 60, text, "transcript")
        for number, text in ((1, "Next week Lina is off to the coast."), (2, "Hello, Lina here, right on time."))
    )
    assert reply(rules, LocateClips, question=WHO, clips=clips, videos=(FILM,)).clips == [2]
    wish = "most like: the red cat; the white horse"
    seen = reply(rules, ReadFrames, query=wish, clips=clips[1:], frames=FRAMES[1:2])
    assert seen.observation == "the frames show the white horse"
    assert "not there" in reply(rules, ReadFrames, query=wish, clips=clips, frames=FRAMES[2:]).observation
    found = reply(rules, FocusClip, query=wish, frames=FRAMES[:1], videos=(FILM,))
    assert (found.found, found.answer, list(found.frames)) == (True, "the red cat", [1])
