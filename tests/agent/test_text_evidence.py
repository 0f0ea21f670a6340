"""Videos of which only words are known: captions and lines in the place of frames, agents that read, and refusals."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agent.answer import Answer
from agent.ask_questions import ask
from agent.core.protocol import Models, request_fields
from agent.core.question import Question
from agent.environment import Environment
from agent.errors import NeedsPictures
from agent.models.openai_compatible import OpenAIModel
from agent.models.role_config import Role
from agent.models.rulebased.model import RuleBasedModel
from agent.prompts.render import render
from agent.requests.answer import AnswerFrames, AnswerNotes, Guess
from agent.requests.describe import DescribeSegment
from agent.trace.events import Acted, Event, Exchanged, RunStarted
from agent.trace.trace import record
from agent.variants.base import Variant
from agent.variants.baselines.uniform import UniformParameters
from agent.variants.longvideoagent.clips import LEAST_CLIP_S, tagged_clips
from agent.variants.longvideoagent.requests import AnswerNow, ChooseAction, LocateClips
from agent.variants.registry import VARIANTS
from agent.variants.videoagent2.requests import Assess, CreatePlan
from index.library import Library
from index.rows import TranscriptRow
from tests.support.agent_library import ScriptedModel, add_film, embed_words, environment_of, film
from tests.support.chat_server import ChatServer
from tests.support.rule_server import MODEL, Rules
from tests.support.rules_sight import Described, Floats
from tests.support.text_library import text_library, text_video_id
from tests.support.videoagent2_film import SURE, UNSURE, Script

KITE = Question("What colour is the kite?", ("blue", "red"))
DINNER = Question("What is the person doing?", ("painting a fence", "cooking a soup", "repairing an engine"))
READING = [each for each in VARIANTS if each.sees_video and not each.needs_pictures]
LOOKING = [each for each in VARIANTS if each.needs_pictures]
SAID = "mind the wind"


def seconds(texts: list[str]) -> list[tuple[float, float, str]]:
    return [(float(at), at + 1.0, text) for at, text in enumerate(texts)]


def every(variants: list[Variant]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("variant", variants, ids=lambda variant: variant.name)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A described minute with a line, a talk without captions, a minute of cooking, and one film with pictures."""
    cooking = [f"the cook {what} in the kitchen" for what in ("cuts onions", "stirs the soup", "tastes the soup")]
    captions = {"told": seconds(film(3, 60, {40: ("red kite desert", 5)})), "dinner": seconds(cooking * 10)}
    talk = [(5.0 * at, 5.0 * at + 4.0, text) for at, text in enumerate(["hello", "a red kite", "a boat"] * 4)]
    lines = {"told": [(41.0, 43.0, SAID)], "talk": talk}
    library = text_library(tmp_path_factory.mktemp("text"), captions, lines)
    add_film(library, "film", film(2, 60))
    spoken = TranscriptRow(library.video("film").video_id, 11.0, 13.0, "said at twelve", "sidecar")
    library.writer.add_transcript(
        {spoken.video_id: [spoken, replace(spoken, start_s=13.0, end_s=17.0, text="said between")]}
    )
    return library


def of(library: Library, *names: str, subtitles: bool = True) -> Environment:
    rows = [library.video(name) for name in names]
    return Environment.of(library, rows, lambda texts: embed_words(texts), subtitles=subtitles)


def asked(
    environment: Environment, question: Question, model: Models, agent: str, parameters: Any = None
) -> tuple[Answer, list[Event]]:
    events: list[Event] = []
    answer = asyncio.run(ask(question, environment, model, agent=agent, parameters=parameters, on_event=events.append))
    return answer, events


# what is written in the place of frames


def test_a_caption_stands_in_a_frames_place(library):
    told, video_id = of(library, "told"), text_video_id("told")
    assert not told.pictured(video_id)
    assert list(told.times(video_id)) == [float(at) for at in range(60)]
    assert told.shown_until(video_id, 59.0) == 60.0
    best = told.search(["red kite desert"], video_id, 3, 4.0)[0]
    assert 40.0 <= best.time_s < 45.0
    assert best.similarity > 0.5
    assert told.times_between(video_id, 40.0, 44.0, 2) == (41.0, 43.0)
    assert told.words(video_id, 44.0, 46.0)[0].text == "red kite desert"
    with pytest.raises(NeedsPictures, match="no frames of 'told'"):
        told.frames(video_id, [3.0])


def test_lines_stand_in_where_there_are_no_captions(library):
    talk, video_id = of(library, "talk"), text_video_id("talk")
    assert list(talk.times(video_id)) == [5.0 * at for at in range(12)]
    assert [match.time_s for match in talk.search(["red kite"], video_id, 1, 4.0)] == [5.0]
    assert {note.source for note in talk.words(video_id)} == {"subtitle"}


def test_the_nearest_of_many_are_found_by_their_words(library):
    written = of(library, "dinner", "talk", "told")
    assert [video.title for video in written.nearest(["red kite desert"], 1).videos] == ["told"]
    assert [video.title for video in written.nearest(["hello"], 1).videos] == ["talk"]
    found = environment_of(library).nearest(["cook in the kitchen", "tastes the soup"], 2)
    assert {video.title for video in found.videos} == {"dinner", "film"}


def test_a_hidden_transcript_is_hidden_everywhere(library):
    hidden = of(library, "told", "talk", "dinner", subtitles=False)
    assert hidden.search_transcript("wind", 5) == []
    assert hidden.transcript(text_video_id("told"), 0.0, 60.0) == []
    assert hidden.nearest(["hello"], 2).search_transcript("wind", 5) == []
    assert all(SAID not in clip.text and clip.source == "captions" for clip in tagged_clips(hidden))
    with pytest.raises(NeedsPictures, match="neither frames nor captions of 'talk', and its transcript is not to be"):
        hidden.times(text_video_id("talk"))
    assert of(library, "told").search_transcript("wind", 5)


def test_clips_are_long_enough_to_say_something(library):
    clips = list(tagged_clips(of(library, "dinner", "talk")))
    assert [clip.number for clip in clips] == list(range(1, len(clips) + 1))
    assert all(clip.end_s - clip.start_s >= LEAST_CLIP_S - 1 for clip in clips)
    assert {clip.source for clip in clips} == {"captions", "transcript"}
    assert sum(clip.text.count("stirs") for clip in clips) == 10


# agents


@every(LOOKING)
def test_who_looks_refuses_at_once(library, variant):
    model = ScriptedModel(lambda request: pytest.fail("it was asked"))
    with pytest.raises(NeedsPictures, match=f"the agent {variant.name} looks at frames.*'told'.*videotree"):
        asked(of(library, "told"), KITE, model, variant.name)
    assert {each.name for each in LOOKING} == {"eea", "vca", "videoseek"}


@pytest.mark.parametrize("agent", ["videoagent", "videotree", "uniform"])
def test_captions_are_read_never_asked_for(library, agent):
    environment = of(library, "told")
    answer, events = asked(environment, KITE, RuleBasedModel(environment), agent)
    requests = [event.request for event in events if isinstance(event, Exchanged)]
    notes = [note for request in requests if isinstance(request, AnswerNotes) for note in request.notes]
    told = {(note.start_s, note.text) for note in environment.words(text_video_id("told"))}
    assert not any(isinstance(request, DescribeSegment) for request in requests)
    assert {(note.start_s, note.text) for note in notes if note.source == "caption"} <= told
    assert (answer.text, answer.ledger.frames) == ("red", 0)
    assert 0 < answer.ledger.frames_with_kept <= 60
    assert all(40.0 <= part.start_s < 45.0 for part in answer.evidence)


class Closed:
    """Eyes for a server to which no picture should come."""

    def strengths(self, texts: Sequence[str], jpegs: Sequence[bytes]) -> Floats:
        raise AssertionError(f"{len(jpegs)} pictures were sent")

    def likenesses(self, texts: Sequence[str], jpegs: Sequence[bytes]) -> Floats:
        raise AssertionError(f"{len(jpegs)} pictures were sent")

    def describe(self, jpegs: Sequence[bytes]) -> list[Described]:
        raise AssertionError(f"{len(jpegs)} pictures were sent")


@pytest.fixture(scope="module")
def rules() -> Iterator[ChatServer]:
    with ChatServer(Rules(Closed()), models=[MODEL]) as server:
        yield server
    assert server.problems == []


@every(READING)
def test_every_agent_that_reads_reads_general_english_over_the_wire(library, rules, variant):
    async def run() -> Answer:
        async with OpenAIModel(Role(base_url=rules.base_url, model=MODEL)) as model:
            return await ask(DINNER, of(library, "dinner"), model, agent=variant.name)

    answer = asyncio.run(run())
    assert answer.text == "cooking a soup"
    assert (answer.ledger.frames, answer.ledger.invalid_replies) == (0, 0)


def test_a_master_has_nobody_who_looks(library):
    def script(request: Any) -> Any:
        if isinstance(request, LocateClips):
            return {"clips": [2]}
        return "<answer>B</answer>" if request.turns else "<request_grounding>a kite</request_grounding>"

    model = ScriptedModel(script)
    answer, _ = asked(of(library, "told"), KITE, model, "longvideoagent")
    assert not any(each.vision for each in (*model.asked(ChooseAction), *model.asked(AnswerNow)))
    assert answer.text == "red"


def test_parts_and_tool_calls_are_read_line_by_line(library):
    script = Script([UNSURE, SURE | {"evidence": [11]}], [{"tool": "caption", "start_s": 39.0, "end_s": 42.0}])
    model = ScriptedModel(script)
    answer, events = asked(of(library, "told"), KITE, model, "videoagent2")
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


def test_a_tool_that_needs_a_frame_is_an_invalid_call(library):
    script = Script([UNSURE, SURE], [{"tool": "detect", "start_s": 40.0, "label": "kite"}])
    model = ScriptedModel(script)
    asked(of(library, "told"), KITE, model, "videoagent2")
    first, second = model.asked(CreatePlan)
    assert "only words are known of the video, so detect has no frame to look at" in second.complaint
    prompt = render(first)
    assert '{"tool": "caption", "video"' in prompt
    assert "There is one tool" in prompt
    assert "zoom_detect" not in prompt


# uniform with a transcript


def answer_a(request: Any) -> Any:
    return {"option": "A", "answer": None, "evidence": [len(request.frames) + 1] if request.notes else []}


def test_uniform_is_given_what_is_said_at_its_frames_times(library):
    model = ScriptedModel(answer_a)
    answer, _ = asked(of(library, "film"), KITE, model, "uniform", UniformParameters(frames=9))
    [request] = model.asked(AnswerFrames)
    assert [round(frame.time_s) for frame in request.frames] == [6, 12, 18, 24, 30, 36, 42, 48, 54]
    assert [note.text for note in request.notes] == ["said at twelve"]
    assert [(part.start_s, part.end_s) for part in answer.evidence] == [(11.0, 13.0)]
    hidden = ScriptedModel(answer_a)
    asked(of(library, "film", subtitles=False), KITE, hidden, "uniform", UniformParameters(frames=9))
    assert hidden.asked(AnswerFrames)[0].notes == ()


def test_the_built_in_model_goes_by_a_line_where_frames_show_nothing_clearly(library):
    environment = of(library, "film")
    question = Question("Which of these appears?", ("velvet", "said at twelve"))
    answer, _ = asked(environment, question, RuleBasedModel(environment), "uniform", UniformParameters(frames=9))
    assert (answer.text, [part.start_s for part in answer.evidence]) == ("said at twelve", [11.0])
    seen, _ = asked(environment, KITE, RuleBasedModel(environment), "uniform", UniformParameters(frames=9))
    hidden = of(library, "film", subtitles=False)
    alone, _ = asked(hidden, KITE, RuleBasedModel(hidden), "uniform", UniformParameters(frames=9))
    assert (seen.status, seen.option, seen.evidence) == (alone.status, alone.option, alone.evidence)


def test_uniform_shows_what_it_can_and_reads_the_rest(library):
    model = ScriptedModel(answer_a)
    asked(of(library, "film", "dinner", subtitles=False), KITE, model, "uniform", UniformParameters(frames=6))
    [request] = model.asked(AnswerFrames)
    assert {frame.video_id for frame in request.frames} == {library.video("film").video_id}
    assert {note.video_id for note in request.notes} == {text_video_id("dinner")}
    assert len(request.frames) + len(request.notes) == 6


def test_traces_of_videos_with_pictures_are_as_before(library):
    _, events = asked(of(library, "film", subtitles=False), KITE, ScriptedModel(answer_a), "uniform")
    header = record(next(event for event in events if isinstance(event, RunStarted)))
    exchange = next(event for event in events if isinstance(event, Exchanged))
    assert all("has_pictures" not in video for video in header["videos"])
    assert "notes" not in request_fields(exchange.request)
    told = Guess(question=KITE, videos=of(library, "told").videos)
    assert request_fields(told)["videos"] == [
        {"video_id": text_video_id("told"), "title": "told", "start_s": 0.0, "duration_s": 60.0, "has_pictures": False}
    ]
