"""The built-in model in words: what frames of the sketch world show, and what notes say. What needs more it refuses."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import product

import pytest

from agent.ask_questions import ask
from agent.core.question import Note, Question, Segment
from agent.environment import Environment
from agent.errors import NeedsLanguage
from agent.models.rulebased import judge_notes, vocabulary
from agent.models.rulebased.describe_frames import describe
from agent.models.rulebased.model import RuleBasedModel
from agent.requests.answer import AnswerNotes, Recall
from agent.requests.describe import DescribeSegment, Summarize
from agent.trace.events import Event, Exchanged
from agent.variants.longvideoagent.requests import ReadFrames
from agent.variants.vca.requests import ChooseFrames
from agent.variants.videoagent.requests import FindMissing, ReflectOnAnswer
from agent.variants.videoagent2.requests import CaptionFrames
from agent.variants.videoseek.requests import FocusClip, OverviewVideo, SkimRange
from agent.variants.videotree.requests import JudgeRelevance
from index.embedding.space import Space, load_space
from jobs.synthetic.world import vocabulary as world
from jobs.synthetic.world.captions import full_claim, plain_wording
from jobs.synthetic.world.questions import write_questions
from jobs.synthetic.world.script import Script, write_script
from tests.support.agent_library import environment_of, film, make_library
from tests.support.undecoded_film import sketch_library

KITE = Question("What colour is the kite in the desert?", ("red", "blue"))


@pytest.fixture(scope="module")
def space() -> Space:
    return load_space("builtin", device="cpu")


@pytest.fixture(scope="module")
def script() -> Script:
    return write_script("film", 600.0, 3)


@pytest.fixture(scope="module")
def sketch(tmp_path_factory, script, space) -> Environment:
    library = sketch_library(tmp_path_factory.mktemp("sketch"), script, space)
    return Environment.of(library, library.videos(), space.embed_text)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory) -> Environment:
    return environment_of(make_library(tmp_path_factory.mktemp("words"), {"film": film(1, 60)}))


def replied(environment, request):
    return asyncio.run(RuleBasedModel(environment).ask(request)).reply


def notes(*texts: str, confidence: float | None = None) -> tuple[Note, ...]:
    return tuple(Note("v" * 32, 10.0 * at, 10.0 * at + 1, "caption", text, confidence) for at, text in enumerate(texts))


def test_the_words_are_those_of_the_sketch_world():
    assert vocabulary.THINGS == world.THING_NAMES
    assert vocabulary.COLOURS == world.COLOUR_NAMES
    assert tuple(wordings[0] for wordings in world.PLACES.values()) == vocabulary.PLACES
    assert vocabulary.TITLES == world.TITLE_WORDS
    assert world.NUMBERS[1:] == vocabulary.NUMBERS
    assert (world.DAY[0], world.NIGHT[0]) == vocabulary.HOURS
    for colour, thing in product(vocabulary.COLOURS, vocabulary.THINGS):
        assert vocabulary.counted(1, colour, thing) == world.with_article(f"{colour} {thing}")
        assert vocabulary.counted(3, colour, thing) == f"three {colour} {world.plural(thing)}"


def test_frames_are_described_and_confidence_tells_right_from_wrong(sketch, script):
    (video,) = sketch.videos
    said = []
    for shot in script.shots:
        phrase = describe(sketch, sketch.frames(video.video_id, [(shot.start_s + shot.end_s) / 2]))
        said.append((phrase.confidence, phrase.text == plain_wording(full_claim(shot.scene))))
    sure = [right for confidence, right in said if confidence >= 0.8]
    unsure = [right for confidence, right in said if confidence < 0.4]
    assert len(sure) >= 15
    assert sum(sure) / len(sure) >= 0.85
    assert sum(unsure) / len(unsure) <= 0.5


def test_a_stretch_of_frames_is_described_in_order_each_scene_once(sketch, script):
    (video,) = sketch.videos
    first, second = script.shots[3:5]
    times_s = [first.start_s + 1.5, first.start_s + 2.5, second.start_s + 1.5]
    shown = sketch.frames(video.video_id, times_s)
    part = Segment(0, video.video_id, first.start_s, second.end_s)
    reply = replied(sketch, DescribeSegment(segment=part, frames=shown))
    assert reply.caption == "; then ".join(plain_wording(full_claim(shot.scene)) for shot in (first, second))
    assert 0 < reply.confidence <= 100


def test_frames_are_told_apart_one_by_one(sketch, script):
    (video,) = sketch.videos
    shots = script.shots[3:5]
    shown = sketch.frames(video.video_id, [shot.start_s + 1.5 for shot in shots])
    truth = [plain_wording(full_claim(shot.scene)) for shot in shots]
    part = Segment(0, video.video_id, 0.0, 99.0)
    about = {"videos": sketch.videos, "segment": part, "subtitles": (), "frames": shown}
    assert [each.description for each in replied(sketch, OverviewVideo(**about)).frames] == truth
    query = f"Is there {truth[1]}?"
    assert [each.relevant for each in replied(sketch, SkimRange(query=query, **about)).frames] == [None, truth[1]]
    found = replied(sketch, FocusClip(query=query, **about))
    assert (found.found, found.answer, found.frames) == (True, truth[1], [2])
    assert not replied(sketch, FocusClip(query="the giant squid", **about)).found
    reading_them = ReadFrames(query=query, clips=(), frames=shown)
    assert replied(sketch, reading_them).observation == "; then ".join(truth)


def test_a_caption_has_a_confidence_for_each_clause(sketch, script):
    (video,) = sketch.videos
    shown = sketch.frames(video.video_id, [script.shots[3].start_s + 1.5])
    request = CaptionFrames(frames=shown)
    reply = replied(sketch, request)
    request.check(reply)
    (caption,) = reply.captions
    assert " ".join(clause.text for clause in caption.clauses) == plain_wording(full_claim(script.shots[3].scene))
    assert all(0.8 < clause.confidence <= 1 for clause in caption.clauses)
    (unasked,) = replied(sketch, replace(request, confidence=False)).captions
    assert [clause.confidence for clause in unasked.clauses] == [None, None]
    with pytest.raises(NeedsLanguage, match="not enlarged parts"):
        replied(sketch, replace(request, box=(0.0, 0.0, 0.5, 0.5)))


def test_it_has_no_words_for_other_spaces(elsewhere):
    (video,) = elsewhere.videos
    shown = elsewhere.frames(video.video_id, [3.0])
    with pytest.raises(NeedsLanguage, match="only for libraries in the built-in space, and this one is in words; give"):
        replied(elsewhere, DescribeSegment(segment=Segment(0, video.video_id, 0.0, 4.0), frames=shown))


@pytest.mark.parametrize("agent", ["blind", "videoseek"])
def test_agents_that_reason_in_words_are_refused(elsewhere, agent):
    events: list[Event] = []
    with pytest.raises(NeedsLanguage, match="needs a language model; give --model and --base-url"):
        asyncio.run(ask(KITE, elsewhere, RuleBasedModel(elsewhere), agent=agent, on_event=events.append))
    assert not any(isinstance(event, Exchanged) for event in events)


def test_a_summary_is_refused(elsewhere):
    with pytest.raises(NeedsLanguage, match="no language for Summarize"):
        replied(elsewhere, Summarize(videos=elsewhere.videos, notes=notes("a kite")))


@pytest.mark.parametrize(
    ("question", "said", "answer", "evidence"),
    [
        (KITE, ("a red car at sea", "a blue kite in the desert"), "B", [2]),
        (Question("How many boats are at sea?", ("two", "three")), ("three red boats at sea by day",), "B", [1]),
        (Question("Where is the red kite?", ("at sea", "in the snow")), ("a red kite in the snow at night",), "B", [1]),
        (Question("Which of these appears?", ("a red car", "a pink hat")), ("x", "a pink hat", "a red hat"), "B", [2]),
        (Question("Which of these is seen first?", ("a car", "a hat")), ("a hat", "a car", "a hat"), "B", [1]),
        (Question("Which of these is seen last?", ("a car", "a hat")), ("a hat", "a car", "a bus"), "A", [2]),
        (
            Question("What appears right after the red kite at sea?", ("a car", "a hat")),
            ("a car", "a red kite at sea", "a hat", *["x"] * 6, "a car"),
            "B",
            [3],
        ),
    ],
)
def test_notes_answer_by_their_words(elsewhere, question, said, answer, evidence):
    reply = replied(elsewhere, AnswerNotes(question=question, videos=(), notes=notes(*said)))
    assert (reply.action, reply.option, reply.evidence) == ("answer", answer, evidence)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (KITE, ()),
        (KITE, ("a red car in the desert", "a kite at sea")),
        (KITE, ("a kite in the desert",)),
        (Question("Which of these appears?", ("a red car", "a pink hat")), ("a red bus",)),
        (KITE, ("a red kite in the desert", "a blue kite in the desert")),
        (Question("What appears right after the red kite at sea?", ("a car", "a hat")), ("a hat", "a car")),
        (Question("Which of these is seen first?", ("a car", "a hat")), ("a bus",)),
    ],
)
def test_notes_that_do_not_tell_are_no_answer(elsewhere, question, said):
    reply = replied(elsewhere, AnswerNotes(question=question, videos=(), notes=notes(*said)))
    assert (reply.action, reply.option) == ("insufficient_evidence", None)


def test_open_questions_are_answered_from_notes_with_a_word_or_a_time(elsewhere):
    told = notes("a bus", "a blue kite in the desert")
    colour = replied(elsewhere, AnswerNotes(question=Question("What colour is the kite?"), videos=(), notes=told))
    when = replied(elsewhere, AnswerNotes(question=Question("When is the kite shown?"), videos=(), notes=told))
    assert (colour.answer, when.answer) == ("blue", "kite at 10.0 s")


def test_confidence_follows_what_the_notes_say_and_how_sure_they_are(elsewhere):
    levels = [
        replied(elsewhere, ReflectOnAnswer(question=KITE, videos=(), notes=told, answer="B. blue")).confidence
        for told in (
            notes("a blue kite in the desert"),
            notes("a blue kite in the desert", confidence=0.5),
            notes("a blue kite at sea"),
        )
    ]
    assert levels == [3, 2, 1]


def test_relevance_has_three_levels(elsewhere):
    told = notes("a red kite in the desert", "a red kite at sea", "a red car at sea")
    reply = replied(elsewhere, JudgeRelevance(question=KITE, videos=(), notes=told))
    assert [(each.cluster, each.relevance) for each in reply.clusters] == [(1, 3), (2, 2), (3, 1)]


def seeking(question, told, segments, most=5):
    return FindMissing(question=question, videos=(), notes=told, segments=segments, most=most)


def test_what_is_missing_is_looked_for_in_the_longest_segments(elsewhere):
    parts = (Segment(1, "v" * 32, 0.0, 5.0), Segment(2, "v" * 32, 5.0, 50.0), Segment(3, "v" * 32, 50.0, 70.0))
    request = seeking(KITE, (), parts, most=2)
    reply = replied(elsewhere, request)
    request.check(reply)
    assert [(each.segment, each.description) for each in reply.frames] == [
        (2, "red kite in the desert"),
        (3, "blue kite in the desert"),
    ]


def test_what_comes_after_a_moment_is_looked_for_beside_it(elsewhere):
    question = Question("What appears right after the red kite at sea?", ("a car", "a hat"))
    parts = (Segment(1, "v" * 32, 0.0, 10.0), Segment(2, "v" * 32, 10.0, 20.0), Segment(3, "v" * 32, 20.0, 99.0))
    before = replied(elsewhere, seeking(question, (), parts))
    found = replied(elsewhere, seeking(question, notes("a bus", "a red kite at sea"), parts))
    assert {each.description for each in before.frames} == {"red kite at sea"}
    assert [(each.segment, each.description) for each in found.frames] == [(2, "car"), (2, "hat")]


def test_frames_are_chosen_where_least_was_seen(elsewhere):
    (video,) = elsewhere.videos
    choosing = ChooseFrames(question=KITE, videos=(video,), frames=(), seen=((video.video_id, 40.0),), count=1)
    reply = replied(elsewhere, choosing)
    choosing.check(reply)
    assert (reply.action, reply.times_s) == ("look", [20.0])


def test_a_follow_up_is_answered_from_notes_only_if_they_say_it_outright(elsewhere):
    (video,) = elsewhere.videos
    shown = elsewhere.frames(video.video_id, [3.0])
    replies = [
        replied(elsewhere, Recall(question=KITE, videos=(video,), frames=shown, notes=told))
        for told in (notes("a bus", "a blue kite in the desert"), notes("a blue kite in the desert", confidence=0.5))
    ]
    assert [(each.action, each.option, each.evidence) for each in replies] == [
        ("answer", "B", [3]),
        ("insufficient_evidence", None, []),
    ]


@pytest.mark.parametrize("agent", ["videoagent", "videotree"])
def test_it_plays_the_baselines_in_the_sketch_world(sketch, script, agent):
    """Captions of a few frames miss much, but what is answered is mostly right."""
    right, wrong = 0, 0
    for asked in write_questions(script, "film.mp4", 0)[:8]:
        question = Question(asked.question, asked.options)
        answer = asyncio.run(ask(question, sketch, RuleBasedModel(sketch), agent=agent))
        right += answer.option == asked.answer
        wrong += answer.option not in (asked.answer, None)
        assert answer.ledger.invalid_replies == 0
    assert right >= 2
    assert right > wrong


def test_words_in_one_and_in_many_are_the_same():
    assert judge_notes.relevances(Question("Is there a boat at sea?"), notes("two boats at sea")) == [3]
