"""The built-in model: answers and words from embeddings, verdicts on notes, and requests that it refuses."""

from __future__ import annotations

import asyncio
from itertools import product

import pytest

from kinodex.agent.answer_rules import AnswerRules
from kinodex.agent.errors import NeedsLanguage
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.question import Question
from kinodex.agent.requests.answer import AnswerNotes, Conclusion
from tests.sketch.vocabulary import DAY, NIGHT
from tests.support.libraries.agent_library import environment_of, film, make_library
from tests.support.runs.kite_runs import asked
from tests.world.rules import sketch_words
from tests.world.rules.model import RuleBasedModel
from tests.world.rules.notes import is_settled, judge, relevances
from tests.world.rules.quoted_lines import is_talk, read_screen, screen_reply
from tests.world.rules.statements import Verdict, cloze_statements, to_reply
from tests.world.rules.word_overlap import judge_by_overlap
from tests.world.sketch import scenes as world

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


def answered(environment, text, options=()):
    rules = AnswerRules(force_choice=False)
    return asked(environment, RuleBasedModel(environment), question=Question(text, options), rules=rules).answer


def notes(*texts: str) -> tuple[Note, ...]:
    return tuple(Note("v" * 32, 10.0 * at, 10.0 * at + 1, "captions", text) for at, text in enumerate(texts))


@pytest.mark.slow
def test_search_finds_twelve_seconds_in_an_hour(environment):
    for text, options, right, start_s, end_s in QUESTIONS:
        answer = answered(environment, text, options)
        assert (answer.status, answer.text) == ("answered", right)
        assert all(start_s <= each.start_s < each.end_s <= end_s + 1 for each in answer.evidence), text
        assert answer.ledger.frames < 40, text
        assert answer.ledger.input_tokens == answer.ledger.invalid_replies == 0, text
    nowhere = answered(environment, "What comes after the giant squid?", ("a boat", "a car"))
    assert (nowhere.status, nowhere.text, nowhere.evidence) == ("insufficient_evidence", None, ())
    assert answered(environment, "What colour is the kite over the desert?").text == "red"
    when = answered(environment, "When is the purple rocket shown?")
    assert 1246 <= float(when.text.removeprefix("purple rocket at ").removesuffix(" s")) <= 1256


def test_agents_that_reason_in_words_are_refused(kites):
    for agent in ("blind", "videoseek"):
        with pytest.raises(NeedsLanguage, match="needs a language model; give --model and --base-url"):
            asked(kites, RuleBasedModel(kites), agent)


def test_notes_answer_by_their_words_or_do_not_tell(kites):
    places = Question("Where is the red kite?", ("at sea", "in the snow"))
    several = Question("Which of these appears?", ("a red car", "a pink hat"))
    first, last = (Question(f"Which of these is seen {which}?", ("a car", "a hat")) for which in ("first", "last"))
    after = Question("What appears right after the red kite at sea?", ("a car", "a hat"))
    for question, said, option, evidence in (
        (KITE, ("a red car at sea", "a blue kite in the desert"), "B", [2]),
        (Question("How many boats are at sea?", ("two", "three")), ("three red boats at sea by day",), "B", [1]),
        (places, ("a red kite in the snow at night",), "B", [1]),
        (several, ("x", "a pink hat", "a red hat"), "B", [2]),
        (first, ("a hat", "a car", "a hat"), "B", [1]),
        (last, ("a hat", "a car", "a bus"), "A", [2]),
        (after, ("a car", "a red kite at sea", "a hat", *["x"] * 6, "a car"), "B", [3]),
        (KITE, (), None, []),
        (KITE, ("a red car in the desert", "a kite at sea"), None, []),
        (KITE, ("a kite in the desert",), None, []),
        (several, ("a red bus",), None, []),
        (KITE, ("a red kite in the desert", "a blue kite in the desert"), None, []),
        (after, ("a hat", "a car"), None, []),
        (first, ("a bus",), None, []),
    ):
        request = AnswerNotes(question=question, videos=(), notes=notes(*said))
        reply = asyncio.run(RuleBasedModel(kites).ask(request)).reply
        action = "answer" if option else "insufficient_evidence"
        assert reply and (reply.action, reply.option, reply.evidence) == (action, option, evidence), said


WRITTEN_CARD = Note("v", 10.0, 13.0, "screen_text", "MAPLE")
WRITTEN_SIGN = Note("v", 30.0, 60.0, "screen_text", "LIBRARY 40")
SAID = Note("v", 40.0, 43.0, "speech", "RIVER, I said")
WORDS = ("RIVER", "MAPLE", "ECHO")


def test_the_option_that_stands_on_screen_is_the_answer_where_it_is_asked_for_and_clear() -> None:
    question = Question("Which word does the title card show?", WORDS)
    reply = screen_reply(question, [SAID, WRITTEN_CARD, WRITTEN_SIGN], frames=4)
    assert reply == {"action": "answer", "option": "B", "answer": "MAPLE", "evidence": (6,)}
    for unclear, shown in (
        (question, [SAID]),
        (Question("Which word does the title card show?", ("LIBRARY 40", "MAPLE")), [WRITTEN_CARD, WRITTEN_SIGN]),
        (Question("Which of these passes by?", WORDS), [WRITTEN_CARD]),
        (Question("Which code word is spoken?", WORDS), [WRITTEN_CARD]),
        (Question("What does the sign say?", ("LIBRARY 4", "STATION 1")), [WRITTEN_SIGN]),
    ):
        assert read_screen(unclear, shown).choice is None, unclear


def test_a_code_word_is_that_of_the_door_that_is_asked_for() -> None:
    cellar = Note("v", 4.0, 7.0, "speech", "Whoever wants to get into the cellar has to say velvet.")
    vault = Note("v", 9.0, 12.0, "speech", "Remember, for the vault the code word is tango.")
    question = Question("What is the code word for the cellar?", ("tango", "velvet"))
    verdict = read_screen(question, [vault, cellar])
    assert (verdict.choice, verdict.evidence) == (1, (2,))
    assert read_screen(question, [vault]).choice is None
    bare = read_screen(Question("What is the code word?", ("tango", "velvet")), [cellar, vault])
    assert (bare.choice, bare.evidence) == (0, (2,)), "the line that speaks of one"
    assert is_talk(question) and not is_talk(Question(question.text)), "the line itself answers without options"


def test_the_option_that_the_notes_hold_most_of_is_chosen_with_the_notes_that_hold_it():
    deeds = ("picks a plate from the sink", "washes the plate with a sponge", "rinses the plate", "opens the tap")
    said = notes(*(f"C {deed}" for deed in (*deeds, "washes a spoon with the sponge")))
    options = ("C is painting a wall.", "C is washing plates.", "C is opening doors.")
    verdict = judge(Question("What is C busy with?", options), said)
    assert (verdict.choice, verdict.evidence) == (1, (1, 2, 3, 5))
    assert 0 < verdict.lead < verdict.score and not is_settled(verdict)
    nothing = judge_by_overlap(Question("What is C busy with?", ("painting", "snow")), said)
    assert (nothing.choice, nothing.evidence) == (None, ())
    rated = relevances(Question("What is C busy with?", options), said)
    assert rated == [2, 3, 2, 3, 2]


def test_options_become_statements():
    for text, option, statement in (
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
    ):
        assert cloze_statements(Question(text, (option, "something else"))).options[0] == statement


def test_a_verdict_becomes_a_valid_reply() -> None:
    which = Question("Which?", ("a car", "a hat"))
    colour, when = Question("What colour is the kite?"), Question("When is the kite shown?")
    for question, verdict, reply in (
        (which, Verdict(1, 3.0, 1.0, (2,)), ("answer", "B", "a hat", [2])),
        (colour, Verdict(0, 3.0, 1.0, (1,)), ("answer", None, "red", [1])),
        (when, Verdict(0, 3.0, 1.0, (2,)), ("answer", None, "kite at 12.5 s", [2])),
        (which, Verdict(), ("insufficient_evidence", None, None, [])),
    ):
        parsed = Conclusion.model_validate(to_reply(question, verdict, [3.0, 12.5]))
        assert (parsed.action, parsed.option, parsed.answer, parsed.evidence) == reply


def test_the_words_are_those_of_the_sketch_world():
    assert sketch_words.THINGS == world.THING_NAMES
    assert sketch_words.COLOURS == world.COLOUR_NAMES
    assert tuple(world.WHERE.values()) == sketch_words.PLACES
    assert sketch_words.TITLES == world.TITLE_WORDS
    assert world.NUMBERS[1:] == sketch_words.NUMBERS
    assert (DAY[0], NIGHT[0]) == sketch_words.HOURS
    for colour, thing in product(sketch_words.COLOURS, sketch_words.THINGS):
        assert sketch_words.counted(1, colour, thing) == world.with_article(f"{colour} {thing}")
        assert sketch_words.counted(3, colour, thing) == f"three {colour} {world.plural(thing)}"
