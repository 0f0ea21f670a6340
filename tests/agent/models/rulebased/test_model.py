"""The built-in model: statements from questions, and honest answers from embeddings alone."""

from __future__ import annotations

import asyncio

import pytest

from agent.ask_questions import ask
from agent.core.budget import Budget
from agent.core.question import Question
from agent.models.rulebased import judge_frames
from agent.models.rulebased.model import RuleBasedModel
from agent.models.rulebased.statements import cloze_statements
from agent.requests.tree import Decide
from agent.trace.events import Event, Exchanged
from agent.variants.baselines.uniform import UniformParameters
from tests.support.agent_library import environment_of, film, make_library


@pytest.mark.parametrize(
    ("text", "option", "statement"),
    [
        ("What colour is the kite over the desert?", "red", "red kite over the desert"),
        ("Which color does the old car have?", "a Blue", "blue old car"),
        ("How many boats are on the sea?", "three", "three boats on the sea"),
        ("How many boats are there on the sea?", "3", "three boats on the sea"),
        ("Where is the red kite?", "in the desert", "red kite in the desert"),
        ("In which place is the clock?", "the forest", "clock in the forest"),
        ("Which of these appears in the video?", "a red car", "red car"),
        ("Which of the following animals can be seen at night?", "an owl", "owl at night"),
        ("Is there a dog in the snow?", "yes", "dog in the snow"),
        ("Is there a dog in the snow?", "No", "no dog in the snow"),
    ],
)
def test_options_become_statements(text, option, statement):
    assert cloze_statements(Question(text, (option, "something else"))).options[0] == statement


def test_a_moment_is_told_from_what_is_asked():
    asked = cloze_statements(Question("What appears right after the red kite over the desert?", ("a boat", "a car")))
    assert (asked.order, asked.moment, asked.options) == ("after", "red kite over the desert", ("boat", "car"))
    assert asked.queries == ("red kite over the desert",)


def test_colours_and_numbers_stand_in_for_options():
    assert "green kite" in cloze_statements(Question("What colour is the kite?")).options
    assert "two boats at sea" in cloze_statements(Question("How many boats are at sea?")).options
    assert cloze_statements(Question("What happens?")).options == ()


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


def test_the_order_of_four_is_settled_once_all_were_seen(tmp_path):
    shown = {20: ("orange kite desert", 5), 60: ("purple rocket", 5), 100: ("pink frog", 5), 140: ("grey snail", 5)}
    environment = environment_of(make_library(tmp_path / "four", {"four": film(1, 200, shown)}))
    question = Question("Which of these is seen first?", ("a pink frog", "a grey snail", "a purple rocket", "a kite"))
    video_id = environment.videos[0].video_id
    verdict = judge_frames.judge(environment, question, environment.frames(video_id, list(shown)))
    assert (verdict.choice, judge_frames.is_settled(verdict)) == (3, True)
    verdict = judge_frames.judge(environment, question, environment.frames(video_id, [20, 60, 100]))
    assert (verdict.choice, judge_frames.is_settled(verdict)) == (3, False)


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


def test_search_is_quick(environment):
    answer, events = answered(environment, QUESTIONS[0][0], QUESTIONS[0][1])
    assert answer.ledger.seconds < 5
    assert any(isinstance(event.request, Decide) for event in events if isinstance(event, Exchanged))
