"""The built-in model: honest answers from embeddings alone, and requests that it refuses."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from kinodex.agent.ask import ask
from kinodex.agent.errors import NeedsLanguage
from kinodex.agent.limits import Budget
from kinodex.agent.models.rules import RuleBasedModel, find_moment, frames_settle, judge_frames
from kinodex.agent.models.rules_words import cloze_statements
from kinodex.agent.protocol import Note, Question, Segment
from kinodex.agent.requests.answer import AnswerFrames, Recall
from kinodex.agent.requests.describe import Summarize
from kinodex.agent.requests.tree import Decide
from kinodex.agent.trace import Event, Exchanged
from kinodex.agent.variants.baselines import UniformParameters
from kinodex.agent.variants.vca import ChooseFrames
from kinodex.agent.variants.videoagent import FindMissing
from tests.support.libraries.agent_library import environment_of, film, make_library

KITE = Question("What colour is the kite in the desert?", ("red", "blue"))
QUESTIONS = [
    ("What colour is the kite over the desert?", ("blue", "red", "green", "black"), "red", 1234, 1246),
    (
        "Which of these appears in the film?",
        ("a pink snail", "a green frog", "a white king"),
        "a green frog",
        2900,
        2908,
    ),
    ("Where is the rocket?", ("in the forest", "in the city"), "in the city", 1246, 1256),
    ("What comes after the red kite?", ("a white snail", "a purple rocket"), "a purple rocket", 1246, 1256),
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    events = {1234: ("red kite desert", 12), 1246: ("purple rocket city", 10), 2900: ("green frog forest", 8)}
    return environment_of(make_library(tmp_path_factory.mktemp("builtin"), {"hour": film(1, 3600, events)}))


def answered(environment, text, options=(), agent="eea", **more):
    events: list[Event] = []
    answer = asyncio.run(
        ask(
            Question(text, options),
            environment,
            RuleBasedModel(environment),
            agent=agent,
            on_event=events.append,
            **more,
        )
    )
    return answer, events


def replied(environment, request):
    return asyncio.run(RuleBasedModel(environment).ask(request)).reply


def notes(*texts: str, confidence: float | None = None) -> tuple[Note, ...]:
    return tuple(Note("v" * 32, 10.0 * at, 10.0 * at + 1, "caption", text, confidence) for at, text in enumerate(texts))


@pytest.mark.parametrize(("text", "options", "right", "start_s", "end_s"), QUESTIONS)
def test_search_finds_twelve_seconds_in_an_hour(environment, text, options, right, start_s, end_s):
    answer, _ = answered(environment, text, options)
    assert (answer.status, answer.text) == ("answered", right)
    assert all(start_s <= each.start_s < each.end_s <= end_s + 1 for each in answer.evidence)
    assert answer.ledger.frames < 40
    assert answer.ledger.input_tokens == answer.ledger.invalid_replies == 0


def test_uniform_frames_miss_what_search_finds(environment):
    right = [
        answered(environment, text, options, "uniform", parameters=UniformParameters(30))[0].text == expected
        for text, options, expected, _, _ in QUESTIONS
    ]
    assert sum(right) < len(right)


def test_what_is_nowhere_is_not_made_up(environment):
    answer, _ = answered(environment, "What comes after the giant squid?", ("a boat", "a car"))
    assert (answer.status, answer.text, answer.evidence) == ("insufficient_evidence", None, ())


def test_order_of_appearance(environment):
    options = ("a green frog", "a purple rocket")
    assert answered(environment, "Which of these is seen first?", options)[0].text == "a purple rocket"
    assert answered(environment, "Which of these is seen last?", options)[0].text == "a green frog"


def test_open_questions_get_a_word_or_a_time(environment):
    assert answered(environment, "What colour is the kite over the desert?")[0].text == "red"
    when = answered(environment, "When is the purple rocket shown?")[0]
    assert 1246 <= float(when.text.removeprefix("purple rocket at ").removesuffix(" s")) <= 1256


def test_only_frames_that_were_shown_count(environment):
    answer, events = answered(
        environment,
        "What colour is the kite over the desert?",
        ("blue", "red"),
        "uniform",
        parameters=UniformParameters(3),
        budget=Budget(frames=3),
    )
    (exchanged,) = [event for event in events if isinstance(event, Exchanged)]
    shown = {frame.time_s for frame in exchanged.request.frames}
    assert {each.start_s for each in answer.evidence} <= shown


def test_answers_do_not_depend_on_the_order_of_asking(environment):
    text, options = QUESTIONS[0][:2]
    assert answered(environment, text, options)[0].evidence == answered(environment, text, options)[0].evidence


def test_search_takes_few_calls(environment):
    answer, events = answered(environment, QUESTIONS[0][0], QUESTIONS[0][1])
    assert answer.ledger.calls <= 4
    assert any(isinstance(event.request, Decide) for event in events if isinstance(event, Exchanged))


@pytest.mark.parametrize("agent", ["blind", "videoseek"])
def test_agents_that_reason_in_words_are_refused(elsewhere, agent):
    events: list[Event] = []
    with pytest.raises(NeedsLanguage, match="needs a language model; give --model and --base-url"):
        asyncio.run(ask(KITE, elsewhere, RuleBasedModel(elsewhere), agent=agent, on_event=events.append))
    assert not any(isinstance(event, Exchanged) for event in events)


def test_a_summary_is_refused(elsewhere):
    with pytest.raises(NeedsLanguage, match="no language for Summarize"):
        replied(elsewhere, Summarize(videos=elsewhere.videos, notes=notes("a kite")))


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


def test_the_order_of_four_is_settled_once_all_were_seen(tmp_path):
    shown = {20: ("orange kite desert", 5), 60: ("purple rocket", 5), 100: ("pink frog", 5), 140: ("grey snail", 5)}
    environment = environment_of(make_library(tmp_path / "four", {"four": film(1, 200, shown)}))
    question = Question("Which of these is seen first?", ("a pink frog", "a grey snail", "a purple rocket", "a kite"))
    video_id = environment.videos[0].video_id
    verdict = judge_frames(environment, question, environment.frames(video_id, list(shown)))
    assert (verdict.choice, frames_settle(verdict)) == (3, True)
    verdict = judge_frames(environment, question, environment.frames(video_id, [20, 60, 100]))
    assert (verdict.choice, frames_settle(verdict)) == (3, False)


@pytest.mark.parametrize(
    ("order", "shown_s", "moment_s", "answer_s"),
    [("after", (64, 67), 67, 72), ("before", (61, 64), 61, 52), ("after", (64, 67, 90), 67, 72)],
)
def test_frames_that_show_the_moment_show_no_answer(tmp_path, order, shown_s, moment_s, answer_s):
    # Of the frames of the shoe, the one at 64 s matches it best. A snail of its colour and a hat look a little like it.
    events = {50: ("grey rocket", 10), 60: ("scarlet shoe tunnel", 10), 70: ("grey rocket", 10), 90: ("scarlet hat", 5)}
    environment = environment_of(make_library(tmp_path / "shoe", {"shoe": film(1, 200, events)}))
    video_id = environment.videos[0].video_id
    text = f"What appears right {order} the scarlet shoe in the tunnel?"
    question = Question(text, ("a scarlet snail", "a grey rocket"))
    moment = find_moment(environment, cloze_statements(question), environment.frames(video_id, list(shown_s)))
    assert moment is not None
    assert moment.time_s == moment_s
    assert not frames_settle(judge_frames(environment, question, environment.frames(video_id, list(shown_s[:2]))))
    with_answer = environment.frames(video_id, sorted([*shown_s[:2], answer_s]))
    verdict = judge_frames(environment, question, with_answer)
    assert (verdict.choice, frames_settle(verdict)) == (1, True)


def test_where_an_option_has_to_be_chosen_it_is_the_one_that_the_frames_show_best(environment):
    question = Question("What colour is the zeppelin in the tunnel?", ("purple", "orange", "grey"))
    shown = environment.frames(environment.videos[0].video_id, environment.times(environment.videos[0].video_id)[:1])
    request = AnswerFrames(question=question, videos=environment.videos, frames=shown)
    assert replied(environment, request).declines
    forced = replied(environment, replace(request, declining="never"))
    assert (forced.action, forced.option in "ABC") == ("answer", True)
    open_ended = replace(request, question=Question("What is there?"), declining="never")
    assert replied(environment, open_ended).declines
