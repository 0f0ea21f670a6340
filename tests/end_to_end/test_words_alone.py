"""Videos of which only words are known: captions and lines in the place of frames, agents that read, and refusals."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.ask import ask
from kinodex.agent.catalogue import VARIANTS
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.models.roles import Role
from kinodex.agent.prompts.rendering import render
from kinodex.agent.protocol.exchange import Models
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.request_key import request_fields
from kinodex.agent.requests.answer import AnswerNotes, Guess
from kinodex.agent.requests.describe import DescribeSegment
from kinodex.agent.traces.events import Acted, Event, Exchanged, RunStarted
from kinodex.agent.traces.trace import record
from kinodex.agent.variants.base import Variant
from kinodex.agent.variants.longvideoagent.requests import AnswerNow, ChooseAction, LocateClips
from kinodex.agent.variants.videoagent2.requests import Assess, CreatePlan
from kinodex.agent.videos.environment import Environment
from kinodex.index.library import Library
from tests.support.libraries import text_library
from tests.support.libraries.agent_library import ScriptedModel, environment_of
from tests.support.libraries.text_library import text_video_id
from tests.support.libraries.videoagent2_film import SURE, UNSURE, Script
from tests.support.servers.chat_server import ChatServer
from tests.support.servers.rule_server import MODEL, Rules
from tests.support.servers.rules_sight import Unseeing
from tests.world.rules.model import RuleBasedModel

KITE = Question("What colour is the kite?", ("blue", "red"))
DINNER = Question("What is the person doing?", ("painting a fence", "cooking a soup", "repairing an engine"))
READING = [each for each in VARIANTS if each.sees_video and not each.needs_pictures and each.uses != ("speech",)]
"""Agents that read captions; one whose paper has subtitles alone does not."""
SAID = "mind the wind"
SPOKEN_CLIP = "s05e06_seg01_clip_07"


def every(variants: list[Variant]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("variant", variants, ids=lambda variant: variant.name)


def asked(
    environment: Environment, question: Question, model: Models, agent: str, parameters: Any = None
) -> tuple[Answer, list[Event]]:
    events: list[Event] = []
    answer = asyncio.run(ask(question, environment, model, agent=agent, parameters=parameters, on_event=events.append))
    return answer, events


@pytest.mark.parametrize("agent", ["videoagent", "videotree", "uniform"])
def test_captions_are_read_never_asked_for(words_library, agent):
    environment = environment_of(words_library, "told")
    answer, events = asked(environment, KITE, RuleBasedModel(environment), agent)
    requests = [event.request for event in events if isinstance(event, Exchanged)]
    notes = [note for request in requests if isinstance(request, AnswerNotes) for note in request.notes]
    told = {(note.start_s, note.text) for note in environment.words(text_video_id("told"))}
    assert not any(isinstance(request, DescribeSegment) for request in requests)
    assert {(note.start_s, note.text) for note in notes if note.source == "captions"} <= told
    assert (answer.text, answer.ledger.frames) == ("red", 0)
    assert 0 < answer.ledger.frames_with_kept <= 60
    assert all(40.0 <= part.start_s < 45.0 for part in answer.evidence)


@pytest.fixture(scope="module")
def words_library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return text_library.words_library(tmp_path_factory.mktemp("words"))


@pytest.fixture(scope="module")
def rules() -> Iterator[ChatServer]:
    with ChatServer(Rules(Unseeing("fog")), models=[MODEL]) as server:
        yield server
    assert server.problems == []
    assert not any(request.frames for request in server.seen), "pictures were sent"


@every(READING)
def test_every_agent_that_reads_reads_general_english_over_the_wire(words_library, rules, variant):
    async def run() -> Answer:
        async with OpenAIModel(Role(base_url=rules.base_url, model=MODEL)) as model:
            return await ask(DINNER, environment_of(words_library, "dinner"), model, agent=variant.name)

    answer = asyncio.run(run())
    assert answer.text == "cooking a soup"
    assert (answer.ledger.frames, answer.ledger.invalid_replies) == (0, 0)


@pytest.fixture(scope="module")
def episode(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """An episode as LongTVQA publishes it: 40 clips of a minute, each a video of its own, of which lines are known."""
    chatter = ["good morning to you", "where are my keys", "I never said that", "we should leave now"]
    lines = {
        f"s05e06_seg{number // 20:02d}_clip_{number % 20:02d}": [
            (3.0 * at, 3.0 * at + 2.5, chatter[(at + number) % 4]) for at in range(20)
        ]
        for number in range(40)
    }
    lines[SPOKEN_CLIP][7] = (21.0, 23.5, "Penny is cooking a soup")
    return text_library.text_library(tmp_path_factory.mktemp("episode"), {}, lines)


@pytest.mark.slow
@pytest.mark.parametrize("context_tokens", [None, 6_000])
def test_an_episode_of_speech_is_answered_from_its_40_clips(episode, rules, context_tokens):
    question = Question("What is Penny doing?", DINNER.options)
    requests: list[str] = []

    def keep(event: Event) -> None:
        if isinstance(event, Exchanged):
            requests.append(type(event.request).__name__)

    async def run() -> Answer:
        role = Role(base_url=rules.base_url, model=MODEL, context_tokens=context_tokens)
        async with OpenAIModel(role) as model:
            return await ask(question, environment_of(episode), model, agent="longvideoagent", on_event=keep)

    first = len(rules.seen)
    answer = asyncio.run(run())
    prompt = rules.seen[first].text
    assert all(f"<clip_{number}> " in prompt for number in range(1, 41))
    assert (len(prompt) < 4 * 3_000) == (context_tokens is not None)  # half of it: the rest is for turns and replies
    assert requests[0] == "ChooseAction"
    assert answer.ledger.frames == answer.ledger.invalid_replies == 0
    if context_tokens is None:
        assert answer.text == "cooking a soup"


def test_a_master_has_nobody_who_looks(words_library):
    def script(request: Any) -> Any:
        if isinstance(request, LocateClips):
            return {"clips": [2]}
        return "<answer>B</answer>" if request.turns else "<request_grounding>a kite</request_grounding>"

    model = ScriptedModel(script)
    answer, _ = asked(environment_of(words_library, "told"), KITE, model, "longvideoagent")
    assert not any(each.vision for each in (*model.asked(ChooseAction), *model.asked(AnswerNow)))
    assert answer.text == "red"


def test_parts_and_tool_calls_are_read_line_by_line(words_library):
    script = Script([UNSURE, SURE | {"evidence": [11]}], [{"tool": "caption", "start_s": 39.0, "end_s": 42.0}])
    model = ScriptedModel(script)
    answer, events = asked(environment_of(words_library, "told"), KITE, model, "videoagent2")
    parts = model.asked(Assess)[0].notes
    assert [(note.start_s, note.end_s) for note in parts] == [(4.0 * at, 4.0 * at + 4) for at in range(15)]
    assert parts[10].text == "red kite desert"
    [call] = [event for event in events if isinstance(event, Acted)]
    assert [(note.start_s, note.source, note.text) for note in call.notes][1:] == [
        (40.0, "caption tool", "red kite desert"),
        (41.0, "caption tool", "red kite desert"),
    ]
    assert [(part.start_s, part.end_s) for part in answer.evidence] == [(40.0, 44.0)]
    assert answer.ledger.frames_with_kept == 60


def test_a_tool_that_needs_a_frame_is_an_invalid_call(words_library):
    script = Script([UNSURE, SURE], [{"tool": "detect", "start_s": 40.0, "label": "kite"}])
    model = ScriptedModel(script)
    asked(environment_of(words_library, "told"), KITE, model, "videoagent2")
    first, second = model.asked(CreatePlan)
    assert "only words are known of the video, so detect has no frame to look at" in second.complaint
    prompt = render(first)
    assert '"tool": "caption", "video"' in prompt
    assert "- caption" in prompt or '"caption"' in prompt
    assert "There is one tool" in prompt
    assert "zoom_detect" not in prompt


def answer_a(request: Any) -> Any:
    return {"option": "A", "answer": None, "evidence": [len(request.frames) + 1] if request.notes else []}


def test_traces_and_requests_say_which_videos_have_pictures(words_library):
    _, events = asked(environment_of(words_library, "film", speech=False), KITE, ScriptedModel(answer_a), "uniform")
    header = record(next(event for event in events if isinstance(event, RunStarted)))
    assert [video["has_pictures"] for video in header["videos"]] == [True]
    told = Guess(question=KITE, videos=environment_of(words_library, "told").videos)
    assert request_fields(told)["videos"] == [
        {"video_id": text_video_id("told"), "title": "told", "start_s": 0.0, "duration_s": 60.0, "has_pictures": False}
    ]
