"""The built-in model: answers and words from embeddings, verdicts on notes, and requests that it refuses."""

from __future__ import annotations

import asyncio
from itertools import product

import pytest

from kinodex.agent.ask import ask
from kinodex.agent.environment import Environment
from kinodex.agent.errors import NeedsLanguage
from kinodex.agent.models import rules
from kinodex.agent.models.rules import (
    RuleBasedModel,
    Verdict,
    cloze_statements,
    is_talk,
    read_screen,
    screen_reply,
    to_reply,
)
from kinodex.agent.protocol import SCREEN_TEXT, Note, Question
from kinodex.agent.requests.answer import AnswerNotes, Conclusion
from kinodex.agent.trace import Event, Exchanged
from kinodex.sketch import scenes as world
from tests.sketch.vocabulary import DAY, NIGHT
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


@pytest.mark.slow
@pytest.mark.parametrize(("text", "options", "right", "start_s", "end_s"), QUESTIONS)
def test_search_finds_twelve_seconds_in_an_hour(environment, text, options, right, start_s, end_s):
    answer, _ = answered(environment, text, options)
    assert (answer.status, answer.text) == ("answered", right)
    assert all(start_s <= each.start_s < each.end_s <= end_s + 1 for each in answer.evidence)
    assert answer.ledger.frames < 40
    assert answer.ledger.input_tokens == answer.ledger.invalid_replies == 0


def test_what_is_nowhere_is_not_made_up(environment):
    answer, _ = answered(environment, "What comes after the giant squid?", ("a boat", "a car"))
    assert (answer.status, answer.text, answer.evidence) == ("insufficient_evidence", None, ())


def test_open_questions_get_a_word_or_a_time(environment):
    assert answered(environment, "What colour is the kite over the desert?")[0].text == "red"
    when = answered(environment, "When is the purple rocket shown?")[0]
    assert 1246 <= float(when.text.removeprefix("purple rocket at ").removesuffix(" s")) <= 1256


@pytest.mark.parametrize("agent", ["blind", "videoseek"])
def test_agents_that_reason_in_words_are_refused(elsewhere, agent):
    events: list[Event] = []
    with pytest.raises(NeedsLanguage, match="needs a language model; give --model and --base-url"):
        asyncio.run(ask(KITE, elsewhere, RuleBasedModel(elsewhere), agent=agent, on_event=events.append))
    assert not any(isinstance(event, Exchanged) for event in events)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory) -> Environment:
    return environment_of(make_library(tmp_path_factory.mktemp("words"), {"film": film(1, 60)}))


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


WRITTEN_CARD = Note("v", 10.0, 13.0, SCREEN_TEXT, "MAPLE")
WRITTEN_SIGN = Note("v", 30.0, 60.0, SCREEN_TEXT, "LIBRARY 40")
SAID = Note("v", 40.0, 43.0, "subtitle", "RIVER, I said")
WORDS = ("RIVER", "MAPLE", "ECHO")


def test_the_option_that_stands_on_screen_is_the_answer_with_its_note_as_evidence() -> None:
    question = Question("Which word does the title card show?", WORDS)
    reply = screen_reply(question, [SAID, WRITTEN_CARD, WRITTEN_SIGN], frames=4)
    assert reply == {"action": "answer", "option": "B", "answer": "MAPLE", "evidence": (6,)}


@pytest.mark.parametrize(
    ("question", "notes"),
    [
        (Question("Which word does the title card show?", WORDS), [SAID]),
        (Question("Which word does the title card show?", ("LIBRARY 40", "MAPLE")), [WRITTEN_CARD, WRITTEN_SIGN]),
        (Question("Which of these passes by?", WORDS), [WRITTEN_CARD]),
        (Question("Which code word is spoken?", WORDS), [WRITTEN_CARD]),
        (Question("What does the sign say?", ("LIBRARY 4", "STATION 1")), [WRITTEN_SIGN]),
    ],
)
def test_nothing_is_read_where_it_is_not_asked_for_or_not_clear(question: Question, notes: list[Note]) -> None:
    assert read_screen(question, notes).choice is None


def test_a_code_word_is_that_of_the_door_that_is_asked_for() -> None:
    cellar = Note("v", 4.0, 7.0, "subtitle", "Whoever wants to get into the cellar has to say velvet.")
    vault = Note("v", 9.0, 12.0, "subtitle", "Remember, for the vault the code word is tango.")
    question = Question("What is the code word for the cellar?", ("tango", "velvet"))
    verdict = read_screen(question, [vault, cellar])
    assert (verdict.choice, verdict.evidence) == (1, (2,))
    assert read_screen(question, [vault]).choice is None
    bare = read_screen(Question("What is the code word?", ("tango", "velvet")), [cellar, vault])
    assert (bare.choice, bare.evidence) == (0, (2,)), "the line that speaks of one"
    assert is_talk(question) and not is_talk(Question(question.text)), "the line itself answers without options"


CAPTIONS = (
    "C picks a plate from the sink",
    "C washes the plate with a sponge",
    "C rinses the plate",
    "C opens the tap",
    "C washes a spoon with the sponge",
)
THEME = Question("What is C busy with?", ("C is painting a wall.", "C is washing plates.", "C is opening doors."))


def told(*texts: str, confidence: float | None = None) -> list[Note]:
    return [Note("v", float(at), at + 1.0, "caption", text, confidence) for at, text in enumerate(texts)]


def test_the_option_that_the_notes_hold_most_of_is_chosen_with_the_notes_that_hold_it():
    verdict = rules.judge(THEME, told(*CAPTIONS))
    assert (verdict.choice, verdict.evidence) == (1, (1, 2, 3, 5))
    assert 0 < verdict.lead < verdict.score
    assert not rules.is_settled(verdict)


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


TIMES_S = [3.0, 12.5]


@pytest.mark.parametrize(
    ("question", "verdict", "reply"),
    [
        (Question("Which?", ("a car", "a hat")), Verdict(1, 3.0, 1.0, (2,)), ("answer", "B", "a hat", [2])),
        (Question("What colour is the kite?"), Verdict(0, 3.0, 1.0, (1,)), ("answer", None, "red", [1])),
        (Question("When is the kite shown?"), Verdict(0, 3.0, 1.0, (2,)), ("answer", None, "kite at 12.5 s", [2])),
        (Question("Which?", ("a car", "a hat")), Verdict(), ("insufficient_evidence", None, None, [])),
    ],
)
def test_a_verdict_becomes_a_valid_reply(question: Question, verdict: Verdict, reply: tuple) -> None:
    parsed = Conclusion.model_validate(to_reply(question, verdict, TIMES_S))
    assert (parsed.action, parsed.option, parsed.answer, parsed.evidence) == reply


def test_the_words_are_those_of_the_sketch_world():
    assert rules.THINGS == world.THING_NAMES
    assert rules.COLOURS == world.COLOUR_NAMES
    assert tuple(world.WHERE.values()) == rules.PLACES
    assert rules.TITLES == world.TITLE_WORDS
    assert world.NUMBERS[1:] == rules.NUMBERS
    assert (DAY[0], NIGHT[0]) == rules.HOURS
    for colour, thing in product(rules.COLOURS, rules.THINGS):
        assert rules.counted(1, colour, thing) == world.with_article(f"{colour} {thing}")
        assert rules.counted(3, colour, thing) == f"three {colour} {world.plural(thing)}"
